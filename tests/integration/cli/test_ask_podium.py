"""`podium ask` about Podium itself and the project: the pack `podium`, alone and beside another."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime

import pytest

from podium.app.app import Podium
from podium.core.decisions import Usage
from podium.core.events import UsageRecorded
from podium.core.ids import short_id
from podium.core.work import Failure, Run, RunStatus
from podium.jobs.operator.composition import OperatorSetup, build_operator
from podium.jobs.operator.models import OperatorAnswer
from tests.integration.cli.ask_harness import (
    NEW_LEAD,
    commands_in,
    done,
    five_blocks,
    nothing_was_made,
    object_of,
)
from tests.integration.cli.command_runner import CommandRunner

PODIUM = ("--pack", "podium")
BOTH = (*PODIUM, "--pack", "roofing")


@pytest.fixture(autouse=True)
def without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)


def _status(cli: CommandRunner, run: Run) -> RunStatus:
    async def work(podium: Podium) -> RunStatus:
        found = await (await podium.store()).read(lambda view: view.run(run.id))
        assert found is not None
        return found.status

    return cli.within(work)


def _git_project(cli: CommandRunner, checks: str) -> None:
    cli.says(checks)
    for words in (
        ("init", "-q", "-b", "main"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "first"),
    ):
        subprocess.run(["git", *words], cwd=cli.project, check=True)


def test_a_question_is_answered_at_once_and_leaves_a_receipt(cli: CommandRunner) -> None:
    approval = cli.add_approval(cli.add_run(task="tidy up"), summary="write notes.txt")
    result = cli.run("ask", "what is waiting for me", *PODIUM)
    blocks = five_blocks(result)
    assert result.code == 0
    assert "inbox.list: completed (receipt 1) count=1" in blocks["RESULT"]
    assert short_id(approval.id) in blocks["RESULT"]
    assert "write notes.txt" in blocks["RESULT"]


def test_what_changes_something_is_only_planned_until_somebody_says_how_far(
    cli: CommandRunner,
) -> None:
    result = cli.run("ask", "fix the failing discount test", *PODIUM)
    plan = five_blocks(result)["PLAN"]
    assert "Status: analyzed" in plan
    assert "project.start_task (T2) task=fix the failing discount test" in plan
    assert nothing_was_made(cli)


def test_last_failure_is_reported_with_its_reason(cli: CommandRunner) -> None:
    assert done(cli, "why did the last run fail", *PODIUM)["reason"] == "no run has failed"
    failed = Run(
        id=cli.ids.new("run"),
        flow="pipeline",
        task="add a button",
        status=RunStatus.FAILED,
        failure=Failure(kind="AgentLost", message="the agent went away"),
        created_at=datetime.now(UTC),
    )

    async def add(podium: Podium) -> None:
        await (await podium.store()).write(lambda tx: tx.add_run(failed))

    cli.within(add)
    fields = done(cli, "why did the last run fail", *PODIUM)
    assert (fields["run_id"], fields["reason"]) == (failed.id, "the agent went away")
    assert done(cli, f"show run {failed.id}", *PODIUM)["task"] == "add a button"


def test_asking_what_was_spent_is_not_itself_counted_as_spending(cli: CommandRunner) -> None:
    run = cli.add_run()
    spent = UsageRecorded(source="agent:claude", usage=Usage(input_tokens=100, usd=0.5))

    async def add(podium: Podium) -> None:
        await (await podium.store()).write(lambda tx: tx.append(run.id, spent))

    cli.within(add)
    for message in ("how much did we spend this week", f"show run {run.id}"):
        done(cli, message, *PODIUM)
    answer = object_of(cli.run("ask", "how much did we spend this week", "--json", *PODIUM))
    assert answer["results"][0]["fields"]["usd"] == 0.5
    assert answer["results"][0]["usd"] == 0
    assert "Cost: no cost" in answer["text"]


def test_the_run_that_is_cancelled_is_the_one_that_was_approved(cli: CommandRunner) -> None:
    meant = cli.add_run(task="the last one")
    answer = object_of(cli.run("ask", "cancel the last run", "-M", "execute", "--json", *PODIUM))
    assert (answer["status"], answer["plan"]["steps"][0]["arguments"]) == (
        "awaiting_approval",
        {"run_id": meant.id},
    )
    newer = cli.add_run(task="begun meanwhile")
    assert cli.run("ask", f"APPROVE: {answer['action_id']}", *PODIUM).code == 0
    assert _status(cli, meant) is RunStatus.CANCELLED
    assert _status(cli, newer) is RunStatus.WAITING


@pytest.mark.parametrize(("check", "code"), [("true", 0), ("echo 1 test was red; exit 3", 1)])
def test_the_checks_run_on_the_commit_and_leave_no_workspace(
    cli: CommandRunner, check: str, code: int
) -> None:
    _git_project(cli, f"checks: [{{name: all, run: {check!r}}}]\n")
    outcome = cli.run("ask", "run the tests", "-M", "execute", *PODIUM)
    result = five_blocks(outcome)["RESULT"]
    assert outcome.code == code, outcome.out + outcome.err
    assert ("1 test was red" in result) is bool(code)
    listed = ["git", "-C", str(cli.project), "worktree", "list"]
    assert len(subprocess.check_output(listed).splitlines()) == 1


def test_a_task_is_put_into_the_queue_in_the_words_of_the_person(cli: CommandRunner) -> None:
    _git_project(cli, "agents: {player: {kind: scripted, script: script.yaml}}\n")
    task = "fix the failing discount test"

    async def ask(podium: Podium) -> tuple[OperatorAnswer, Run | None]:
        operator = await build_operator(podium, OperatorSetup("podium", user="ann"))
        answer = await operator.process(task, "execute", explicit_approval=True)
        run_id = answer.results[0].fields["run_id"]
        return answer, await (await podium.store()).read(lambda view: view.run(run_id))

    answer, run = cli.within(ask)
    assert answer.status == "succeeded", answer.reason
    assert run is not None
    assert (run.flow, run.task, run.queue) == ("pipeline", task, "default")
    assert run.settings["asked_by"] == "ann"


def test_of_two_packs_the_one_that_fits_answers(cli: CommandRunner) -> None:
    assert done(cli, NEW_LEAD, *BOTH)["suburb"] == "Clayton"
    assert done(cli, "what is running", *BOTH)["runs"] == []


def test_packs_that_fit_alike_are_asked_about_and_one_word_decides(cli: CommandRunner) -> None:
    answer = object_of(cli.run("ask", "system status", "--json", *BOTH))
    assert (answer["status"], answer["exit_code"]) == ("clarify", 3)
    assert "system.status of pack podium" in answer["classification"]["question"]
    assert "os.health_check of pack roofing" in answer["classification"]["question"]
    assert nothing_was_made(cli)
    first, second = commands_in(answer)
    assert first[-4:] == ["--pack", "podium", "--project", str(cli.project)]
    assert "os.health_check" in cli.run(*second).out


def test_a_refusal_names_the_pack_that_has_a_tool_for_it(cli: CommandRunner) -> None:
    answer = object_of(cli.run("ask", "finalize quote abc123", "--json", *PODIUM))
    assert (answer["status"], answer["exit_code"]) == ("refused", 4)
    assert answer["next_actions"][0].startswith(
        "Pack roofing has a matching tool, quote.finalize: podium ask -m 'finalize quote abc123' --pack roofing"
    )
    unsafe = object_of(cli.run("ask", "void all invoices", "--json", *PODIUM))
    assert not any("--pack" in action for action in unsafe["next_actions"])


def test_the_first_thing_that_is_known_is_podium_itself(cli: CommandRunner) -> None:
    assert done(cli, "system status")["mode"] == "supervised"
    assert cli.run("ask", NEW_LEAD).code == 4


def test_a_project_with_records_of_the_roofing_pack_keeps_it(cli: CommandRunner) -> None:
    done(cli, NEW_LEAD, "--pack", "roofing")
    assert len(done(cli, "list new leads")["leads"]) == 1
    assert "healthy" in done(cli, "system status"), "as it was read before"
    assert done(cli, "what is waiting for me")["waiting"] == []
    cli.says("flows: {operator: {pack: podium}}\n")
    assert cli.run("ask", "list new leads").code == 4


@pytest.mark.parametrize("named", ["roofing", "[podium, roofing]"])
def test_podium_yaml_names_one_pack_or_several(cli: CommandRunner, named: str) -> None:
    cli.says(f"flows: {{operator: {{pack: {named}}}}}\n")
    assert done(cli, NEW_LEAD)["suburb"] == "Clayton"
    assert cli.run("ask", "system status").code == (0 if named == "roofing" else 3)


def test_a_new_project_can_begin_as_a_roofing_office(cli: CommandRunner) -> None:
    result = cli.run("init", "--example", "roofing")
    assert (result.code, result.out.splitlines()[-1]) == (0, 'next: podium ask "system status"')
    assert "os.health_check" in cli.run("ask", "system status").out
    assert cli.run("init", "roofing").code == 2


def test_the_prompt_changes_packs(cli: CommandRunner) -> None:
    lines = b":pack podium roofing\n:pack\nsystem status\n:pack nothing\n:pack default\n"
    result = cli.run("ask", "--interactive", *PODIUM, stdin=lines)
    assert result.out.count("Packs: podium, roofing") == 2
    assert "Which one do you mean" in result.out
    assert "unknown pack 'nothing'" in result.err
