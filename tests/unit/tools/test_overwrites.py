"""Overwriting a file: a person sees what is lost, and a yes holds for that content alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.app.approvals import approve
from podium.core.decisions import Approval, CallOutcome, Effect, Refusal
from podium.core.errors import BadArguments
from podium.core.model import Json
from podium.render.approval import what_lines
from podium.testing import ScriptedGate, SteadyIds, decision
from podium.tools import LocalToolbox
from tests.unit.tools.toolbox_harness import RUN, SECRET, Harness, make_harness

OLD = "host: db\nport: 5432\nuser: app\n"
NEW = "host: db\nport: 1\nuser: app\n"


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    """A gate that asks until a person has said yes."""
    made = make_harness(
        tmp_path,
        gate=ScriptedGate(
            lambda call, context: decision(Effect.ALLOW if context.approval else Effect.ASK)
        ),
    )
    (made.root / "app.yaml").write_text(OLD)
    return made


async def asked(harness: Harness, content: str = NEW) -> Approval:
    answer = await harness.toolbox.perform(
        harness.call("write_file", path="app.yaml", content=content)
    )
    assert isinstance(answer, Refusal)
    approval_id = answer.approval_id
    assert approval_id is not None, answer.say
    approval = await harness.store.read(lambda view: view.approval(approval_id))
    assert approval is not None
    return approval


async def say_yes(harness: Harness, approval: Approval) -> None:
    await approve(harness.store, harness.clock, SteadyIds(), approval.id, by="ann")


async def test_the_person_sees_removed_and_added_lines(harness: Harness) -> None:
    shown = "\n".join(what_lines(await asked(harness)))
    assert "-port: 5432\n" in shown
    assert "+port: 1\n" in shown
    assert "replaces the file: -1 +1 lines" in shown


async def test_nobody_is_asked_about_a_file_that_is_too_large_to_be_replaced(
    harness: Harness,
) -> None:
    with (harness.root / "app.yaml").open("wb") as file:
        file.truncate(35_000_000)
    with pytest.raises(BadArguments, match="is larger than 20000000 bytes"):
        await harness.toolbox.perform(harness.call("write_file", path="app.yaml", content=NEW))


async def test_secrets_of_the_old_content_are_not_shown(harness: Harness) -> None:
    (harness.root / "app.yaml").write_text(f"key: {SECRET}\n")
    assert SECRET not in (await asked(harness)).model_dump_json()


async def test_a_yes_holds_for_the_content_that_was_shown(harness: Harness) -> None:
    await say_yes(harness, await asked(harness))
    outcome = await harness.use("write_file", path="app.yaml", content=NEW)
    assert outcome.ok, outcome.error
    assert (harness.root / "app.yaml").read_text() == NEW


async def test_a_yes_is_void_once_the_file_has_changed(harness: Harness) -> None:
    first = await asked(harness)
    await say_yes(harness, first)
    (harness.root / "app.yaml").write_text("host: other\n")
    second = await asked(harness)
    assert second.id != first.id
    assert "-host: other\n" in second.diff
    assert (harness.root / "app.yaml").read_text() == "host: other\n"


async def test_a_file_that_changes_between_the_permit_and_the_act_is_not_overwritten(
    harness: Harness,
) -> None:
    await say_yes(harness, await asked(harness))
    call = harness.call("write_file", path="app.yaml", content=NEW)
    (harness.root / "app.yaml").write_text("host: other\n")
    answer = await harness.toolbox.perform(call)
    assert isinstance(answer, CallOutcome)
    assert "was changed by someone else" in answer.error
    assert (harness.root / "app.yaml").read_text() == "host: other\n"


async def test_a_write_cut_off_after_the_act_is_finished_without_a_second_question(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say_yes(harness, await asked(harness))

    async def killed(self: LocalToolbox, *_: Json) -> Json:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        # The process ends here: nothing of ours runs between the act and its record.
        patch.setattr(LocalToolbox, "_settle", killed)
        with pytest.raises(KeyboardInterrupt):
            await harness.use("write_file", path="app.yaml", content=NEW)
    assert (harness.root / "app.yaml").read_text() == NEW
    assert (await harness.use("write_file", path="app.yaml", content=NEW)).ok
    assert len(await harness.store.read(lambda view: view.approvals(run_id=RUN))) == 1


async def test_a_new_file_has_no_diff(harness: Harness) -> None:
    (harness.root / "app.yaml").unlink()
    assert (await asked(harness)).diff == ""


async def test_a_binary_file_is_named_as_such(harness: Harness) -> None:
    (harness.root / "app.yaml").write_bytes(bytes(range(256)))
    assert (
        await asked(harness)
    ).diff == f"[binary file: 256 bytes are replaced by {len(NEW)} bytes]"


async def test_a_long_diff_is_cut_and_counted_whole(harness: Harness) -> None:
    (harness.root / "app.yaml").write_text("".join(f"line {n} {'x' * 40}\n" for n in range(4000)))
    shown = "\n".join(what_lines(await asked(harness)))
    assert "replaces the file: -4000 +3 lines, not all shown" in shown


async def test_old_values_of_a_file_of_secrets_are_not_shown(tmp_path: Path) -> None:
    class Careful(ScriptedGate):
        def passed_over(self, real_path: str, root: str) -> bool:
            return real_path.endswith(".env")

    harness = make_harness(tmp_path, gate=Careful(lambda call, context: decision(Effect.ASK)))
    (harness.root / ".env").write_text("DB_PASSWORD=swordfish-77\nplain-swordfish-77\n")
    call = harness.call("write_file", path=".env", content="A=1\n")
    answer = await harness.toolbox.perform(call)
    assert isinstance(answer, Refusal)
    [approval] = await harness.store.read(lambda view: view.approvals(run_id=RUN))
    assert "-DB_PASSWORD=[hidden]" in approval.diff
    assert "swordfish" not in approval.model_dump_json()
