from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from pathlib import Path

import pytest

from podium.core.decisions import CallOutcome
from podium.testing import retry_until
from tests.unit.tools.toolbox_harness import SECRET, Harness, make_harness, parts_of_the_secret_in


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return make_harness(tmp_path)


async def test_a_list_is_a_program_with_its_words_and_no_shell_reads_it(harness: Harness) -> None:
    outcome = await harness.use("run_command", command=["echo", "a; $HOME"])

    assert outcome.ok
    assert outcome.result == {
        "exit_code": 0,
        "stdout": "a; $HOME\n",
        "stderr": "",
        "dropped_bytes": 0,
        "output_sha256": hashlib.sha256(b"a; $HOME\n\0").hexdigest(),
    }


async def test_a_text_is_a_shell_line(harness: Harness) -> None:
    outcome = await harness.use("run_command", command="echo one && echo two")

    assert outcome.result["stdout"] == "one\ntwo\n"


async def test_exit_code_is_a_failure_whose_output_is_still_reported(harness: Harness) -> None:
    outcome = await harness.use("run_command", command="echo why && exit 3")

    assert (outcome.ok, outcome.error) == (False, "exit code 3")
    assert (outcome.result["exit_code"], outcome.result["stdout"]) == (3, "why\n")
    (receipt,) = await harness.receipts()
    assert (receipt.status, receipt.fields["exit_code"]) == ("failed", 3)


async def test_a_signal_and_a_timeout_are_failures(harness: Harness) -> None:
    killed = await harness.use("run_command", command=["sh", "-c", "kill -9 $$"])
    slow = await harness.use("run_command", 1, command=["sleep", "60"], timeout_seconds=0.2)

    assert killed.error == "ended by signal 9"
    assert slow.error == "timed out after 0.2 seconds"


async def test_a_program_that_is_not_there_is_a_failure_in_words(harness: Harness) -> None:
    outcome = await harness.use("run_command", command=["no-such-program"])

    assert not outcome.ok
    assert "no-such-program" in outcome.error


async def test_the_environment_is_an_allow_list_plus_what_is_set_and_secrets_are_resolved_late(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARENTS_OWN", "hidden")
    show = (
        "import os; print(sorted(os.environ)); print(len(os.environ['TOKEN']), os.environ['TOKEN'])"
    )

    outcome = await harness.use(
        "run_command",
        command=[sys.executable, "-c", show],
        env={"TOKEN": "secret://DOOR_KEY", "CI": "1"},
    )

    assert "'CI'" in outcome.result["stdout"]
    assert "PARENTS_OWN" not in outcome.result["stdout"]
    assert f"{len(SECRET)} [redacted:DOOR_KEY]" in outcome.result["stdout"]
    assert not [event for event in await harness.events() if SECRET in event.model_dump_json()]


async def test_it_runs_in_the_named_folder_inside_the_workspace_only(harness: Harness) -> None:
    (harness.root / "sub").mkdir()

    inside = await harness.use("run_command", command=["pwd"], cwd="sub")
    outside = await harness.use("run_command", 1, command=["pwd"], cwd="..")

    assert inside.result["stdout"] == f"{harness.root / 'sub'}\n"
    assert "is outside the workspace" in outside.error


async def test_a_flood_is_cut_and_its_end_is_seen(harness: Harness) -> None:
    flood = "print('BEGIN' + 'x' * 100_000 + 'END')"

    outcome = await harness.use("run_command", command=[sys.executable, "-c", flood])

    assert outcome.result["stdout"].startswith("BEGIN")
    assert outcome.result["stdout"].endswith("END\n")
    assert "[cut: 100009 bytes in all]" in outcome.result["stdout"]


async def test_a_cancelled_command_is_dead_and_settled_before_the_cancellation_goes_on(
    harness: Harness,
) -> None:
    call = harness.call("run_command", command="echo $$ > pid; exec sleep 60")
    task = asyncio.create_task(harness.toolbox.perform(call))
    await retry_until(
        lambda: (harness.root / "pid").exists() and (harness.root / "pid").read_text()
    )

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    pid = int((harness.root / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    (receipt,) = await harness.receipts()
    assert (receipt.status, receipt.error[:9]) == ("failed", "cancelled")
    again = await harness.toolbox.perform(call)
    assert isinstance(again, CallOutcome)
    assert again.error == receipt.error


@pytest.mark.parametrize("ahead", [6, len(SECRET) - 1])
async def test_no_part_of_a_secret_is_left_where_the_output_is_cut(
    harness: Harness, ahead: int
) -> None:
    (harness.root / "out").write_text("." * (200_000 - ahead) + SECRET + "." * 1_000)

    outcome = await harness.use("run_command", command=["cat", "out"])

    assert outcome.result["dropped_bytes"] > 0
    assert not parts_of_the_secret_in(outcome, await harness.events())


async def test_a_script_that_was_changed_after_the_judgement_is_not_run(harness: Harness) -> None:
    (harness.root / "a.sh").write_text("echo one")
    call = harness.call("run_command", command="sh a.sh")
    (harness.root / "a.sh").write_text("echo two > ran")

    outcome = await harness.toolbox.perform(call)

    assert isinstance(outcome, CallOutcome)
    assert "'a.sh' was changed after the command was judged" in outcome.error
    assert not (harness.root / "ran").exists()


async def test_a_command_that_changed_the_file_it_names_is_not_done_again_after_a_crash(
    harness: Harness,
) -> None:
    (harness.root / "a.sh").write_text("echo run >> log; echo >> a.sh")
    first = await harness.use("run_command", command="sh a.sh")

    again = await harness.use("run_command", command="sh a.sh")

    assert first.ok, first.error
    assert again.result == first.result
    assert (harness.root / "log").read_text() == "run\n"
