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
from tests.integration.cli.asking import (
    NEW_LEAD,
    commands_in,
    done,
    five_blocks,
    nothing_was_made,
    object_of,
)
from tests.integration.cli.desk import Desk

PODIUM = ("--pack", "podium")
BOTH = (*PODIUM, "--pack", "roofing")


@pytest.fixture(autouse=True)
def without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)


def _status(desk: Desk, run: Run) -> RunStatus:
    async def work(podium: Podium) -> RunStatus:
        found = await (await podium.store()).read(lambda view: view.run(run.id))
        assert found is not None
        return found.status

    return desk.within(work)


def _git_project(desk: Desk, checks: str) -> None:
    desk.says(checks)
    for words in (
        ("init", "-q", "-b", "main"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "first"),
    ):
        subprocess.run(["git", *words], cwd=desk.project, check=True)


def test_a_question_is_answered_at_once_and_leaves_a_receipt(desk: Desk) -> None:
    approval = desk.add_approval(desk.add_run(task="tidy up"), summary="write notes.txt")
    said = desk.run("ask", "what is waiting for me", *PODIUM)
    blocks = five_blocks(said)
    assert said.code == 0
    assert "inbox.list: completed (receipt 1) count=1" in blocks["RESULT"]
    assert short_id(approval.id) in blocks["RESULT"]
    assert "write notes.txt" in blocks["RESULT"]


def test_what_changes_something_is_only_planned_until_somebody_says_how_far(desk: Desk) -> None:
    said = desk.run("ask", "fix the failing discount test", *PODIUM)
    plan = five_blocks(said)["PLAN"]
    assert "Status: analyzed" in plan
    assert "project.start_task (T2) task=fix the failing discount test" in plan
    assert nothing_was_made(desk)


def test_the_last_failure_is_told_with_its_reason(desk: Desk) -> None:
    assert done(desk, "why did the last run fail", *PODIUM)["reason"] == "no run has failed"
    failed = Run(
        id=desk.ids.new("run"),
        flow="pipeline",
        task="add a button",
        status=RunStatus.FAILED,
        failure=Failure(kind="AgentLost", message="the agent went away"),
        created_at=datetime.now(UTC),
    )

    async def add(podium: Podium) -> None:
        await (await podium.store()).write(lambda tx: tx.add_run(failed))

    desk.within(add)
    fields = done(desk, "why did the last run fail", *PODIUM)
    assert (fields["run_id"], fields["reason"]) == (failed.id, "the agent went away")
    assert done(desk, f"show run {failed.id}", *PODIUM)["task"] == "add a button"


def test_asking_what_was_spent_is_not_itself_counted_as_spending(desk: Desk) -> None:
    run = desk.add_run()
    spent = UsageRecorded(source="agent:claude", usage=Usage(input_tokens=100, usd=0.5))

    async def add(podium: Podium) -> None:
        await (await podium.store()).write(lambda tx: tx.append(run.id, spent))

    desk.within(add)
    for message in ("how much did we spend this week", f"show run {run.id}"):
        done(desk, message, *PODIUM)
    answer = object_of(desk.run("ask", "how much did we spend this week", "--json", *PODIUM))
    assert answer["results"][0]["fields"]["usd"] == 0.5
    assert answer["results"][0]["usd"] == 0
    assert "Cost: no cost" in answer["text"]


def test_the_run_that_is_cancelled_is_the_one_that_was_approved(desk: Desk) -> None:
    meant = desk.add_run(task="the last one")
    answer = object_of(desk.run("ask", "cancel the last run", "-M", "execute", "--json", *PODIUM))
    assert (answer["status"], answer["plan"]["steps"][0]["arguments"]) == (
        "awaiting_approval",
        {"run_id": meant.id},
    )
    newer = desk.add_run(task="begun meanwhile")
    assert desk.run("ask", f"APPROVE: {answer['action_id']}", *PODIUM).code == 0
    assert _status(desk, meant) is RunStatus.CANCELLED
    assert _status(desk, newer) is RunStatus.WAITING


@pytest.mark.parametrize(("check", "code"), [("true", 0), ("echo 1 test was red; exit 3", 1)])
def test_the_checks_run_on_the_commit_and_leave_no_workspace(
    desk: Desk, check: str, code: int
) -> None:
    _git_project(desk, f"checks: [{{name: all, run: {check!r}}}]\n")
    said = desk.run("ask", "run the tests", "-M", "execute", *PODIUM)
    result = five_blocks(said)["RESULT"]
    assert said.code == code, said.out + said.err
    assert ("1 test was red" in result) is bool(code)
    listed = ["git", "-C", str(desk.project), "worktree", "list"]
    assert len(subprocess.check_output(listed).splitlines()) == 1


def test_a_task_is_put_into_the_queue_in_the_words_of_the_person(desk: Desk) -> None:
    _git_project(desk, "agents: {player: {kind: scripted, script: script.yaml}}\n")
    task = "fix the failing discount test"

    async def ask(podium: Podium) -> tuple[OperatorAnswer, Run | None]:
        operator = await build_operator(podium, OperatorSetup("podium", user="ann"))
        answer = await operator.process(task, "execute", explicit_approval=True)
        run_id = answer.results[0].fields["run_id"]
        return answer, await (await podium.store()).read(lambda view: view.run(run_id))

    answer, run = desk.within(ask)
    assert answer.status == "succeeded", answer.reason
    assert run is not None
    assert (run.flow, run.task, run.queue) == ("pipeline", task, "default")
    assert run.settings["asked_by"] == "ann"


def test_of_two_packs_the_one_that_fits_answers(desk: Desk) -> None:
    assert done(desk, NEW_LEAD, *BOTH)["suburb"] == "Clayton"
    assert done(desk, "what is running", *BOTH)["runs"] == []


def test_packs_that_fit_alike_are_asked_about_and_one_word_decides(desk: Desk) -> None:
    answer = object_of(desk.run("ask", "system status", "--json", *BOTH))
    assert (answer["status"], answer["exit_code"]) == ("clarify", 3)
    assert "system.status of pack podium" in answer["classification"]["question"]
    assert "os.health_check of pack roofing" in answer["classification"]["question"]
    assert nothing_was_made(desk)
    first, second = commands_in(answer)
    assert first[-4:] == ["--pack", "podium", "--project", str(desk.project)]
    assert "os.health_check" in desk.run(*second).out


def test_a_refusal_names_the_pack_that_has_a_tool_for_it(desk: Desk) -> None:
    answer = object_of(desk.run("ask", "finalize quote abc123", "--json", *PODIUM))
    assert (answer["status"], answer["exit_code"]) == ("refused", 4)
    assert answer["next_actions"][0].startswith(
        "Pack roofing has a matching tool, quote.finalize: podium ask -m 'finalize quote abc123' --pack roofing"
    )
    unsafe = object_of(desk.run("ask", "void all invoices", "--json", *PODIUM))
    assert not any("--pack" in action for action in unsafe["next_actions"])


def test_the_first_thing_that_is_known_is_podium_itself(desk: Desk) -> None:
    assert done(desk, "system status")["mode"] == "supervised"
    assert desk.run("ask", NEW_LEAD).code == 4


def test_a_project_with_records_of_the_roofing_pack_keeps_it(desk: Desk) -> None:
    done(desk, NEW_LEAD, "--pack", "roofing")
    assert len(done(desk, "list new leads")["leads"]) == 1
    assert "healthy" in done(desk, "system status"), "as it was read before"
    assert done(desk, "what is waiting for me")["waiting"] == []
    desk.says("flows: {operator: {pack: podium}}\n")
    assert desk.run("ask", "list new leads").code == 4


@pytest.mark.parametrize("named", ["roofing", "[podium, roofing]"])
def test_podium_yaml_names_one_pack_or_several(desk: Desk, named: str) -> None:
    desk.says(f"flows: {{operator: {{pack: {named}}}}}\n")
    assert done(desk, NEW_LEAD)["suburb"] == "Clayton"
    assert desk.run("ask", "system status").code == (0 if named == "roofing" else 3)


def test_a_new_project_can_begin_as_a_roofing_office(desk: Desk) -> None:
    said = desk.run("init", "--example", "roofing")
    assert (said.code, said.out.splitlines()[-1]) == (0, 'next: podium ask "system status"')
    assert "os.health_check" in desk.run("ask", "system status").out
    assert desk.run("init", "roofing").code == 2


def test_the_prompt_changes_packs(desk: Desk) -> None:
    lines = b":pack podium roofing\n:pack\nsystem status\n:pack nothing\n:pack default\n"
    said = desk.run("ask", "--interactive", *PODIUM, stdin=lines)
    assert said.out.count("Packs: podium, roofing") == 2
    assert "Which one do you mean" in said.out
    assert "unknown pack 'nothing'" in said.err
