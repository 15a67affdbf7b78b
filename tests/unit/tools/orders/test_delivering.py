"""An order becomes a file exactly once, whoever takes it away meanwhile."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from podium.core.decisions import Call
from podium.core.model import Json
from tests.unit.tools.orders.order_rig import (
    CANDIDATES,
    INBOX,
    act_and_crash,
    order_rig,
    perform,
)
from tests.unit.tools.rig import Rig

CONTENT = "id: WO-1\ntitle: Tidy up\ntarget: health\ntier: T1\nzones: [logs]\n"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return order_rig(tmp_path)


def delivery(rig: Rig, index: int = 0, **changes: Json) -> Call:
    content = str(changes.get("content", CONTENT))
    arguments: dict[str, Json] = {
        "wo_id": "WO-1",
        "path": f"{INBOX}/WO-1.yaml",
        "content": content,
        "sha256": hashlib.sha256(content.encode()).hexdigest(),
        "target": "health",
        "zones": ["logs"],
        "tier": "T1",
    }
    return rig.call("deliver_order", index, **arguments | changes)


def delivered(rig: Rig) -> Path:
    return rig.root / INBOX / "WO-1.yaml"


async def test_an_order_lies_in_the_inbox_whole_and_alone(rig: Rig) -> None:
    outcome = await perform(rig, delivery(rig))

    assert outcome.ok, outcome.error
    assert os.listdir(rig.root / INBOX) == ["WO-1.yaml"]
    assert delivered(rig).read_text() == CONTENT
    assert (await rig.receipts())[-1].fields["path"] == f"{INBOX}/WO-1.yaml"


async def test_an_order_that_was_taken_before_its_delivery_was_recorded_does_not_come_again(
    rig: Rig,
) -> None:
    first = await act_and_crash(rig, delivery(rig))
    delivered(rig).unlink()

    second = await perform(rig, delivery(rig))

    assert second.result == first.result
    assert os.listdir(rig.root / INBOX) == []


async def test_an_order_that_was_only_drafted_is_delivered_at_the_next_try(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*args: object, **kwargs: object) -> None:
        raise Killed

    for at in ("write_below", "rename_below"):
        with monkeypatch.context() as patched:
            # The moment of the crash: patched because a real one cannot be aimed between two lines.
            patched.setattr(f"podium.jobs.sense.orders.order_tools.{at}", killed)
            with pytest.raises(Killed):
                await act_and_crash(rig, delivery(rig))
        assert not delivered(rig).exists()
    assert all(name.startswith(".") for name in os.listdir(rig.root / INBOX))

    outcome = await perform(rig, delivery(rig))

    assert outcome.ok, outcome.error
    assert os.listdir(rig.root / INBOX) == ["WO-1.yaml"]


async def test_another_order_of_that_name_is_not_replaced(rig: Rig) -> None:
    delivered(rig).parent.mkdir(parents=True)
    delivered(rig).write_text("id: WO-1\ntitle: Mine\n")

    outcome = await perform(rig, delivery(rig))

    assert "exists with other content" in outcome.error
    assert delivered(rig).read_text() == "id: WO-1\ntitle: Mine\n"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"sha256": "0" * 64}, "sha256"),
        ({"path": f"{INBOX}/other.yaml"}, "belongs at"),
        ({"path": "g/docs/WO-1.yaml"}, "belongs at"),
        ({"wo_id": "WO-2", "path": f"{INBOX}/WO-2.yaml"}, "wo_id is 'WO-1'"),
        ({"tier": "T0"}, "tier is 'T1'"),
        ({"zones": []}, "zones is ['logs']"),
        ({"target": "else"}, "target is 'health'"),
        ({"content": "- no order"}, "not a work order"),
        ({"content": "id: [broken"}, "not a work order"),
        ({"content": "id: WO-1\ntitle: x\nops: [{op: dance}]"}, "not a work order"),
    ],
)
async def test_what_was_judged_must_be_what_is_delivered(
    rig: Rig, changes: dict[str, Json], word: str
) -> None:
    outcome = await perform(rig, delivery(rig, **changes))

    assert word in outcome.error
    assert not list(rig.root.rglob("*.yaml"))


async def test_a_candidate_is_filed_for_review(rig: Rig) -> None:
    path = f"{CANDIDATES}/WO-1.yaml"

    first = await rig.use("file_candidate", wo_id="WO-1", path=path, content=CONTENT)
    again = await rig.use("file_candidate", 1, wo_id="WO-1", path=path, content=CONTENT)
    elsewhere = await rig.use(
        "file_candidate", 2, wo_id="WO-1", path=f"{INBOX}/WO-1.yaml", content=CONTENT
    )

    assert first.ok, first.error
    assert again.result == first.result
    assert (rig.root / path).read_text() == CONTENT
    assert "belongs at" in elsewhere.error
    assert not (rig.root / INBOX).exists()


def test_a_dry_run_files_candidates_and_only_asks_about_deliveries(rig: Rig) -> None:
    specs = {spec.name: spec for spec in rig.registry.specs()}

    assert specs["file_candidate"].in_dry_run == "act"
    assert specs["deliver_order"].in_dry_run == "ask"
    assert {spec.in_dry_run for spec in specs.values() if "_file" in spec.name} == {"nothing"}
