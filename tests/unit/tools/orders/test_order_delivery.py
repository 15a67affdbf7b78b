"""An order becomes a file exactly once, whoever takes it away meanwhile."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from podium.core.decisions import Call
from podium.core.model import Json
from tests.unit.tools.orders.order_harness import (
    CANDIDATES,
    INBOX,
    act_and_crash,
    order_harness,
    perform,
)
from tests.unit.tools.toolbox_harness import Harness

CONTENT = "id: WO-1\ntitle: Tidy up\ntarget: health\ntier: T1\nzones: [logs]\n"


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return order_harness(tmp_path)


def delivery(harness: Harness, index: int = 0, **changes: Json) -> Call:
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
    return harness.call("deliver_order", index, **arguments | changes)


def delivered(harness: Harness) -> Path:
    return harness.root / INBOX / "WO-1.yaml"


async def test_an_order_lies_in_the_inbox_whole_and_alone(harness: Harness) -> None:
    outcome = await perform(harness, delivery(harness))

    assert outcome.ok, outcome.error
    assert os.listdir(harness.root / INBOX) == ["WO-1.yaml"]
    assert delivered(harness).read_text() == CONTENT
    assert (await harness.receipts())[-1].fields["path"] == f"{INBOX}/WO-1.yaml"


async def test_an_order_that_was_taken_before_its_delivery_was_recorded_does_not_come_again(
    harness: Harness,
) -> None:
    first = await act_and_crash(harness, delivery(harness))
    delivered(harness).unlink()

    second = await perform(harness, delivery(harness))

    assert second.result == first.result
    assert os.listdir(harness.root / INBOX) == []


async def test_an_order_that_was_only_drafted_is_delivered_at_the_next_try(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
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
                await act_and_crash(harness, delivery(harness))
        assert not delivered(harness).exists()
    assert all(name.startswith(".") for name in os.listdir(harness.root / INBOX))

    outcome = await perform(harness, delivery(harness))

    assert outcome.ok, outcome.error
    assert os.listdir(harness.root / INBOX) == ["WO-1.yaml"]


async def test_another_order_of_that_name_is_not_replaced(harness: Harness) -> None:
    delivered(harness).parent.mkdir(parents=True)
    delivered(harness).write_text("id: WO-1\ntitle: Mine\n")

    outcome = await perform(harness, delivery(harness))

    assert "exists with other content" in outcome.error
    assert delivered(harness).read_text() == "id: WO-1\ntitle: Mine\n"


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
    harness: Harness, changes: dict[str, Json], word: str
) -> None:
    outcome = await perform(harness, delivery(harness, **changes))

    assert word in outcome.error
    assert not list(harness.root.rglob("*.yaml"))


async def test_a_candidate_is_filed_for_review(harness: Harness) -> None:
    path = f"{CANDIDATES}/WO-1.yaml"

    first = await harness.use("file_candidate", wo_id="WO-1", path=path, content=CONTENT)
    again = await harness.use("file_candidate", 1, wo_id="WO-1", path=path, content=CONTENT)
    elsewhere = await harness.use(
        "file_candidate", 2, wo_id="WO-1", path=f"{INBOX}/WO-1.yaml", content=CONTENT
    )

    assert first.ok, first.error
    assert again.result == first.result
    assert (harness.root / path).read_text() == CONTENT
    assert "belongs at" in elsewhere.error
    assert not (harness.root / INBOX).exists()


def test_a_dry_run_files_candidates_and_only_asks_about_deliveries(harness: Harness) -> None:
    specs = {spec.name: spec for spec in harness.registry.specs()}

    assert specs["file_candidate"].in_dry_run == "act"
    assert specs["deliver_order"].in_dry_run == "ask"
    assert {spec.in_dry_run for spec in specs.values() if "_file" in spec.name} == {"nothing"}
