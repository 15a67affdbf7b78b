"""A task becomes a reviewed branch: every edge of the pipeline, with agents who play a script."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from podium.app.approvals import approve
from podium.core.errors import ApprovalClosed
from podium.core.work import Run, RunStatus
from podium.testing import retry_until
from tests.integration.pipeline.pipeline_harness import (
    FEAT,
    PLAN,
    PLAN_PATH,
    RESEARCH_PATH,
    RIGHT,
    TASK,
    VERIFICATION_PATH,
    WRONG,
    Project,
    audits,
    develops,
    investigates_again,
    plans,
    plans_again,
    says,
    smooth,
    turn,
    writes,
)
from tests.soaking import in_soak

NOTES = "docs/dev_docs/HUMAN_REVIEW.md"
SUBTRACTS = "\n\ndef sub(one, two):\n    return one - two\n"


def stages(run: Run) -> list[tuple[str, str]]:
    """Stage and verdict of everything that an agent was asked for."""
    return [(stage["stage"], stage["verdict"]) for stage in run.result["stages"]]


def succeeded(run: Run) -> Run:
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    return run


class Done(NamedTuple):
    """A run that ended, for tests that only look at it."""

    project: Project
    run: Run
    events: list[dict[str, Any]]


def done(
    folder: Path,
    turns: list[dict[str, Any]],
    settings: dict[str, Any] | None = None,
    notes: str = "",
    **intent: Any,
) -> Done:
    async def work() -> Done:
        project = Project(folder).build(turns, settings=settings)
        if notes:
            (project.folder / NOTES).parent.mkdir(parents=True)
            (project.folder / NOTES).write_text(notes)
        run = succeeded(await project.run(**intent))
        return Done(project, run, await project.events(run.id))

    return asyncio.run(work())


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """The architect thinks aloud, has ideas and has learned something, and a person left notes."""
    ideas: dict[str, Any] = {
        "backlog_items": ["Support floats", "support floats."],
        "lessons": ["calc.py is imported by the tests as a top-level module"],
    }
    turns = smooth()
    turns[2] = plans(**ideas)
    turns[2]["acts"].insert(0, {"say": "The architect's private thought: zebra."})
    notes = "## For the developer\n\n- Keep it to one line.\n\n## All\n\n- Be brief.\n"
    return done(tmp_path_factory.mktemp("direct"), turns, notes=notes)


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """A bug is fixed although almost everything is sent back once."""
    meddles = turn(
        "plan_reviewer",
        writes("calc.py", "raise SystemExit\n"),
        writes("extra.py", "x = 1\n"),
        {"commit": "Just a little help"},
        writes(PLAN_PATH, "gone\n"),
        {"payload": {"verdict": "APPROVE"}},
    )
    forgets = turn(
        "developer",
        writes("calc.py", RIGHT),
        writes(VERIFICATION_PATH, "# Verified\n"),
        {"payload": {"commit_hash": "HEAD", "status": "success"}},
        when="Stage: develop, round 1",
    )
    commits = turn(
        "developer",
        {"run": "cp calc.py found.txt"},
        writes("calc.py", "def add(one, two):\n    return 5\n"),
        {"commit": "Add instead of subtracting"},
        {"payload": {"commit_hash": "HEAD", "status": "success"}},
        when="Stage: develop, round 2",
    )
    turns = [
        says("lead_analyst", "REJECT", "Stage: analyse, round 1", feedback="Name the line."),
        investigates_again(),
        meddles,
        forgets,
        commits,
        audits("PASS", number=1),
        develops(when="Stage: develop, round 3"),
        audits("FAIL", number=2, text="# Review\n\n## Findings\n- Say why in a comment\n"),
        develops(RIGHT + "\n# said\n", when="Stage: develop, round 4"),
        audits("PASS", number=3),
        *smooth(),
    ]
    tools = ["write_file", "git_commit", "run_command"]
    # The layout of the seed: all commits, and the documents in the archive.
    layout = {"commits": "all", "documents": "branch"}
    routes = {"develop": {"next": {"DONE": "audit", "RED": "audit"}}}
    settings = {
        "roles": {
            "default": {"agent": "player"},
            "plan_reviewer": {"agent": "player", "allowed_tools": tools},
        },
        "flows": {"pipeline": {**layout, "stages": routes}},
    }
    return done(tmp_path_factory.mktemp("troubled"), turns, settings=settings, mode="bugfix")


def test_a_direct_task_becomes_a_reviewed_branch(direct: Done) -> None:
    project, run, _ = direct
    tree = project.tree(run.result["branch"])
    assert tree["calc.py"] == RIGHT.strip()
    assert project.git("log", "--format=%s", "main") == "A project"
    assert project.git("status", "--porcelain", "-uall") == f"?? {NOTES}"
    assert run.result["checks"][0]["exit_code"] == 0
    assert stages(run) == [
        ("plan", "DONE"),
        ("plan_review", "APPROVE"),
        ("develop", "DONE"),
        ("audit", "PASS"),
        ("integrate", "DONE"),
    ]


def test_every_commit_of_the_supervisor_names_run_and_step(direct: Done) -> None:
    project, run, _ = direct
    log = project.git(
        "log",
        "--format=%an%x09%(trailers:key=Podium-Run,valueonly,separator=%x2C)",
        f"main..{run.result['history_ref']}",
    )
    for line in log.splitlines():
        author, _, named = line.partition("\t")
        assert named == (run.id if author == "Podium" else "")
    assert sum(line.startswith("Podium\t") for line in log.splitlines()) == 4


def test_backlog_items_and_lessons_are_kept_once_and_used_again(direct: Done) -> None:
    project, run, events = direct
    tree = project.tree(run.result["branch"])
    assert tree["docs/dev_docs/backlog.md"].lower().count("support floats") == 1
    assert "top-level module" in tree["AGENT_MEMORY.md"]
    began = [e for e in events if e["type"] == "stage_began" and e["role"] == "developer"]
    assert "top-level module" in began[0]["remembered"][0]


def test_notes_of_a_person_reach_the_addressed_role_from_their_own_checkout(direct: Done) -> None:
    project, _, events = direct
    asked = {e["role"]: e["prompt"] for e in events if e["type"] == "agent_asked"}
    assert "Keep it to one line." in asked["developer"]
    assert "Keep it to one line." not in asked["architect"]
    assert all("Be brief." in prompt for prompt in asked.values())
    began = [e for e in events if e["type"] == "stage_began"]
    assert [e["role"] for e in began if "Be brief." in e["notes"]] == ["architect"]
    assert (project.folder / NOTES).read_text().startswith("## For the developer")


def test_nothing_of_one_roles_chat_reaches_another(direct: Done) -> None:
    events = direct.events
    assert any("zebra" in str(e) for e in events if e["type"] == "agent_replied")
    assert not any("zebra" in e["prompt"] for e in events if e["type"] == "agent_asked")


def test_the_last_commit_archives_every_document_and_leaves_the_active_folders_clean(
    troubled: Done,
) -> None:
    project, run, _ = troubled
    tree = project.tree(run.result["branch"])
    documents = {path for path in tree if path.startswith("docs/dev_docs/")}
    assert documents == set(run.result["documents"])
    assert all(path.startswith("docs/dev_docs/archived/") for path in documents)
    assert {path.split("/")[3] for path in documents} == {"plans", "reviews", "research"}


def test_a_rejected_report_goes_back_with_the_feedback(troubled: Done) -> None:
    assert stages(troubled.run)[:4] == [
        ("investigate", "DONE"),
        ("analyse", "REJECT"),
        ("investigate", "DONE"),
        ("analyse", "APPROVE"),
    ]
    asked = [e for e in troubled.events if e["type"] == "agent_asked"]
    assert "Name the line." in asked[2]["prompt"]
    assert "Name the line." not in asked[0]["prompt"]


def test_a_failed_audit_goes_back_to_the_developer_with_the_review(troubled: Done) -> None:
    assert stages(troubled.run)[9:] == [
        ("develop", "DONE"),
        ("audit", "FAIL"),
        ("develop", "DONE"),
        ("audit", "PASS"),
        ("integrate", "DONE"),
    ]
    asked = [e for e in troubled.events if e["type"] == "agent_asked"]
    again = [e["prompt"] for e in asked if e["role"] == "developer"][3]
    assert f"code_review_{FEAT}_v2.md" in again


def test_what_a_reviewer_changes_beside_its_verdict_is_put_back_and_recorded(
    troubled: Done,
) -> None:
    project, run, events = troubled
    (reviewed,) = [e for e in events if e["type"] == "stage_ended" and e["stage"] == "plan_review"]
    assert set(reviewed["discarded"]) == {"calc.py", "extra.py", PLAN_PATH}
    assert "Just a little help" not in project.git("log", "--format=%s", run.result["branch"])
    plan = project.git("show", f"{run.result['branch']}:{run.result['plan']}")
    assert plan == PLAN.strip()


def test_work_that_is_not_committed_is_sent_back_and_not_lost(troubled: Done) -> None:
    project, run, _ = troubled
    assert stages(run)[6:8] == [("develop", "SENT_BACK"), ("develop", "RED")]
    assert project.tree(run.result["branch"])["found.txt"] == RIGHT.strip()


def test_a_pass_against_red_checks_is_a_fail(troubled: Done) -> None:
    assert stages(troubled.run)[7:10] == [
        ("develop", "RED"),
        ("audit", "FAIL"),
        ("develop", "DONE"),
    ]


def test_investigations_are_committed_before_they_are_judged(troubled: Done) -> None:
    project, run, _ = troubled
    log = project.git("log", "--reverse", "--format=%s", f"main..{run.result['branch']}")
    subjects = log.splitlines()
    assert [text.startswith("Investigator") for text in subjects[:4]] == [True, False] * 2
    assert "REJECT" in subjects[1]
    assert "APPROVE" in subjects[3]


async def test_an_escalation_starts_the_researcher_and_a_second_one_needs_a_person(
    tmp_path: Path,
) -> None:
    researches = turn(
        "researcher",
        writes(RESEARCH_PATH, "# Theory\n"),
        {"payload": {"report_path": RESEARCH_PATH}},
    )
    escalates = says("lead_analyst", "ESCALATE")
    project = Project(tmp_path).build(
        [escalates, researches, *smooth()], settings={"budgets": {"run": {"turns": 5}}}
    )
    run = await project.run(mode="bugfix")
    assert run.status is RunStatus.NEEDS_HUMAN
    asked = [e["role"] for e in await project.events(run.id) if e["type"] == "agent_asked"]
    assert asked == ["investigator", "lead_analyst", "researcher", "lead_analyst"]
    project.play([researches, *smooth()])
    run = await project.resume(run.id, note="Sums are sums; go on.")
    events = await project.events(run.id)
    prompts = [e["prompt"] for e in events if e["type"] == "agent_asked"]
    assert "Sums are sums; go on." in prompts[4]
    last = [e for e in events if e["type"] == "stage_ended"][-1]
    assert (last["stage"], last["verdict"]) == ("research", "DONE")


@pytest.mark.soak
async def test_a_plan_without_its_parts_is_sent_back_with_the_missing_ones_named(
    tmp_path: Path,
) -> None:
    thin = PLAN.replace("## Test scenarios", "## Thoughts")
    first = {**plans(thin), "when": "Stage: plan, round 1"}
    project = Project(tmp_path).build([first, *smooth()])
    run = succeeded(await project.run())
    assert stages(run)[:2] == [("plan", "SENT_BACK"), ("plan", "DONE")]
    ended = [e for e in await project.events(run.id) if e["type"] == "stage_ended"]
    assert "test scenarios" in ended[0]["problems"][0]


async def test_person_is_shown_every_open_finding_with_the_round_that_it_is_from(
    tmp_path: Path,
) -> None:
    others = ["The name is wrong.", "The sum is slow."]
    reviews = [
        audits("FAIL", number=number, text=f"# Review\n\n## Findings\n\n- {text}\n")
        for number, text in enumerate(others, 1)
    ]
    again = develops(f"{RIGHT}\n# {others[0]}\n", when="Stage: develop, round 2")
    settings = {"flows": {"pipeline": {"rounds": 1}}}
    project = Project(tmp_path).build([again, *reviews, *smooth()], settings=settings)
    run = await project.run(mode="quick")
    assert run.status is RunStatus.NEEDS_HUMAN
    assert run.failure is not None
    assert run.failure.message.splitlines() == [
        f'audit returned FAIL 2 times (limit 1); review it, then continue with `podium resume {run.id} --note "…"`',
        "Open findings:",
        "- audit, round 1 (FAIL): The name is wrong.",
        "- audit, round 2 (FAIL): The sum is slow.",
    ]
    file = project.folder / "podium.yaml"
    settings = yaml.safe_load(file.read_text()) | {"budgets": {"run": {"turns": 5}}}
    file.write_text(yaml.safe_dump(settings))
    spent = await project.resume(run.id)
    assert spent.failure is not None
    assert spent.failure.kind == "BudgetSpent"
    assert "- audit, round 1 (FAIL): The name is wrong." in spent.failure.message


async def test_repeated_findings_need_a_person_who_is_shown_them(tmp_path: Path) -> None:
    rejects = says("plan_reviewer", "REJECT", feedback="- The plan forgets negative numbers.")
    project = Project(tmp_path).build(
        [rejects, *plans_again(), *smooth()], settings={"budgets": {"run": {"turns": 6}}}
    )
    run = await project.run()
    assert run.status is RunStatus.NEEDS_HUMAN
    messages = [e for e in await project.events(run.id) if e["type"] == "run_needed_human"][-1]
    finding = "- plan_review, round 1 (REJECT): The plan forgets negative numbers."
    assert finding in messages["reason"]
    asked = [e["role"] for e in await project.events(run.id) if e["type"] == "agent_asked"]
    assert asked.count("plan_reviewer") == 2
    project.play([*plans_again(), *smooth()])
    run = await project.resume(run.id, note="They are not in scope.")
    events = await project.events(run.id)
    assert [e["verdict"] for e in events if e["type"] == "stage_ended"][-1] == "APPROVE"
    asked_then = [e for e in events if e["type"] == "agent_asked"][4:6]
    assert [e["role"] for e in asked_then] == ["architect", "plan_reviewer"]
    assert all("They are not in scope." in e["prompt"] for e in asked_then)


@pytest.mark.soak
async def test_new_findings_in_every_round_end_after_the_allowed_rounds(tmp_path: Path) -> None:
    rejects = [
        says("plan_reviewer", "REJECT", f"Stage: plan_review, round {n}\\.", feedback=f"- {what}")
        for n, what in enumerate(["One thing.", "Another matter.", "A third idea.", "Yet more."], 1)
    ]
    project = Project(tmp_path).build(
        [*rejects, *plans_again(), *smooth()], settings={"flows": {"pipeline": {"rounds": 2}}}
    )
    run = await project.run()
    assert run.status is RunStatus.NEEDS_HUMAN
    asked = [e["role"] for e in await project.events(run.id) if e["type"] == "agent_asked"]
    assert asked.count("plan_reviewer") == 3


@pytest.mark.soak
async def test_version_and_changelog_have_to_be_brought_along_where_there_are_any(
    tmp_path: Path,
) -> None:
    files = {"VERSION": "1.0\n", "CHANGELOG.md": "# Changes\n"}
    output = develops(
        when="Stage: develop, round 2",
        files={"VERSION": "1.1\n", "CHANGELOG.md": "# Changes\n\n- Sums are right\n"},
    )
    project = Project(tmp_path).build([output, *smooth()], files=files)
    run = succeeded(await project.run())
    ended = [e for e in await project.events(run.id) if e["type"] == "stage_ended"]
    assert [problem.split()[0] for problem in ended[2]["problems"]] == ["VERSION", "CHANGELOG.md"]


@pytest.mark.soak
async def test_success_with_a_crash_in_the_feedback_is_no_success(tmp_path: Path) -> None:
    hides = develops(
        when="Stage: develop, round 1",
        feedback={"note": "The test suite crashes with a segmentation fault."},
    )
    again = develops(RIGHT + "# again\n", when="Stage: develop, round 2")
    project = Project(tmp_path).build([hides, again, *smooth()])
    run = succeeded(await project.run())
    assert stages(run)[2] == ("develop", "SENT_BACK")


@pytest.mark.parametrize(
    ("decision", "lands"),
    [("backlog", "docs/dev_docs/backlog.md"), in_soak("docs", "README.md"), in_soak("ignore", "")],
)
async def test_feedback_is_triaged(tmp_path: Path, decision: str, lands: str) -> None:
    notes = develops(feedback={"plan": "It was unclear about floats; I assumed integers."})
    project = Project(tmp_path).build(
        [
            notes,
            says("plan_reviewer", "APPROVE", feedback={"reason": "A test shows the cause."}),
            turn(
                "feedback_triager",
                {"payload": {"decision": decision, "entry": "Say what happens to floats"}},
            ),
            turn(
                "documenter",
                writes("README.md", "Integers only. Say what happens to floats.\n"),
                {"payload": {"status": "success"}},
            ),
            *smooth(),
        ]
    )
    run = succeeded(await project.run())
    tree = project.tree(run.result["branch"])
    found = {path for path, text in tree.items() if "Say what happens to floats" in text}
    assert found == ({lands} if lands else set())
    messages = [e["text"] for e in await project.events(run.id) if e["type"] == "note_taken"]
    assert any(decision in text for text in messages)
    history = project.tree(run.result["history_ref"])
    (review,) = [text for text in history.values() if text.startswith("# Plan reviewer: APPROVE")]
    assert "reason: A test shows the cause." in review


@pytest.mark.soak
async def test_remarks_are_decided_about_once_the_work_is_done_and_what_changes_is_checked_again(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path).build(
        [
            plans(feedback={"docs": "The README says nothing of negative numbers."}),
            turn("feedback_triager", {"payload": {"decision": "docs", "entry": "Say it there"}}),
            turn(
                "documenter", {"run": "echo Adds. >> README.md"}, {"payload": {"status": "success"}}
            ),
            develops("def add(one, two):\n    return 5\n", when="Stage: develop, round 1"),
            audits(feedback={"docs": "The README says nothing of floats."}),
            *smooth(),
        ]
    )
    run = succeeded(await project.run(mode="standard"))
    assert stages(run) == [
        ("plan", "DONE"),
        ("plan_review", "APPROVE"),
        ("develop", "RED"),
        ("develop", "DONE"),
        ("document", "DONE"),
        ("audit", "PASS"),
        ("document", "DONE"),
        ("integrate", "DONE"),
        ("merge_review", "PASS"),
    ]
    events = await project.events(run.id)
    assert [e["passed"] for e in events if e["type"] == "checks_ran"] == [False, True, True]
    prompts = [(e["role"], e["prompt"]) for e in events if e["type"] == "agent_asked"]
    asked = dict(reversed(prompts))
    assert "5 != 4" in [prompt for role, prompt in prompts if role == "developer"][1]
    triage = asked["feedback_triager"]
    assert f"The task, in the user's words:\n```text\n{TASK}\n" in triage
    assert "`add` subtracts; it has to add." in triage
    assert "* `calc.py`" in triage
    assert "The stage plan (role architect, round 1) ended with DONE." in triage
    assert "nothing of negative numbers" in triage
    assert "The remark about the documentation:\n```text\nSay it there" in asked["documenter"]
    assert "last attempt" not in asked["documenter"]


@pytest.mark.soak
async def test_a_conflict_is_solved_by_the_specialist_and_reviewed(tmp_path: Path) -> None:
    project = Project(tmp_path).build(smooth())
    project.play(
        [
            turn(
                "auditor",
                {"run": "true"},
                writes(f"docs/dev_docs/reviews/code_review_{FEAT}_v1.md", "# Review\n"),
                {
                    "payload": {
                        "verdict": "PASS",
                        "review_path": f"docs/dev_docs/reviews/code_review_{FEAT}_v1.md",
                    }
                },
                when="Stage: audit, round 1",
            ),
            turn(
                "integration_specialist",
                writes("calc.py", RIGHT + "\n\ndef sub(one, two):\n    return one - two\n"),
                {"commit": "Merge main"},
                {"payload": {"status": "success", "commit_hash": "HEAD"}},
            ),
            *smooth(),
        ]
    )
    run = await moved_in_between(project, "calc.py", WRONG + SUBTRACTS)
    succeeded(run)
    assert stages(run)[-2:] == [("integrate", "DONE"), ("merge_review", "PASS")]
    tree = project.tree(run.result["branch"])
    assert tree["calc.py"].count("def ") == 2
    assert "<<<<" not in tree["calc.py"]
    project.git("merge", "--quiet", "--no-edit", run.result["branch"])


async def moved_in_between(project: Project, name: str, content: str) -> Run:
    """Run, and move the base while the agents are at work: the workspace has been made by then."""
    working = asyncio.create_task(project.run())
    await retry_until(lambda: bool(project.git("branch", "--list", "task/*")))
    (project.folder / name).write_text(content)
    project.git("commit", "--quiet", "--all", "--message=Meanwhile")
    return await working


@pytest.mark.soak  # with a remote it is in test_remote_base.py
async def test_a_base_that_moved_without_conflict_is_merged_and_checked_again(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path).build(smooth(), files={"other.txt": "one\n"})
    run = succeeded(await moved_in_between(project, "other.txt", "two\n"))
    events = await project.events(run.id)
    assert len([e for e in events if e["type"] == "checks_ran"]) == 2
    assert project.tree(run.result["branch"])["other.txt"] == "two"


@pytest.mark.soak
async def test_two_tasks_with_the_same_words_never_collide(tmp_path: Path) -> None:
    project = Project(tmp_path).build(smooth())
    one = succeeded(await project.run())
    other = succeeded(await project.run())
    assert one.result["branch"] != other.result["branch"]


async def test_an_agent_that_cannot_be_read_is_asked_once_more_and_then_the_step_fails(
    tmp_path: Path,
) -> None:
    mumbles = turn("architect", writes(PLAN_PATH, PLAN), {"say": "I have written it."})
    project = Project(tmp_path).build([mumbles])
    run = await project.run()
    assert run.status is RunStatus.FAILED
    assert run.failure is not None
    assert "JSON" in run.failure.message


@pytest.mark.soak
async def test_two_conflicting_runs_are_both_notified(tmp_path: Path) -> None:
    project = Project(tmp_path).build(
        [develops("x = 1\n" + RIGHT), *smooth()], settings={"budgets": {"run": {"turns": 2}}}
    )
    one = await project.run(mode="quick")
    assert one.status is RunStatus.NEEDS_HUMAN, one.failure
    project.play([develops("y = 2\n" + RIGHT), *smooth()])
    other = await project.run(mode="quick")
    shown = subprocess.run(
        [sys.executable, "-m", "podium", "runs", "--json", "--project", project.folder],
        env=project.environ,
        check=True,
        capture_output=True,
    )
    (pair,) = json.loads(shown.stdout)["collisions"]
    assert {pair["run"], pair["other"]} == {one.id, other.id}
    for run, met in ((one, other), (other, one)):
        seen = [e for e in await project.events(run.id) if e["type"] == "collision_seen"]
        assert [(e["other_run"], e["paths"]) for e in seen] == [(met.id, ["calc.py"])]


def approval_of(run: Run) -> str:
    assert run.waiting_for is not None
    return run.waiting_for.removeprefix("approval:")


@pytest.mark.parametrize("says_yes", [True, in_soak(False)], ids=["approved", "rejected"])
async def test_skill_is_active_only_after_a_person_approved(tmp_path: Path, says_yes: bool) -> None:
    learned = develops(
        skill={"name": "Add numbers", "description": "Adds.", "steps": ["Write a plus sign."]}
    )
    project = Project(tmp_path).build(
        [learned, *smooth()], settings={"flows": {"pipeline": {"skills": "wait"}}}
    )
    run = await project.run(mode="quick")
    assert run.status is RunStatus.WAITING
    path = ".agents/skills/add-numbers/SKILL.md"
    branch = project.git("for-each-ref", "--format=%(refname:short)", "refs/heads/task/")
    assert path not in project.tree(branch)
    await project.answer(run, yes=says_yes)
    run = succeeded(await project.resume(run.id))
    assert (path in project.tree(run.result["branch"])) is says_yes


@pytest.mark.soak
async def test_a_branch_does_not_wait_for_a_skill_that_nobody_has_approved(tmp_path: Path) -> None:
    learned = develops(
        skill={"name": "Add numbers", "description": "Adds.", "steps": ["Write a plus sign."]}
    )
    project = Project(tmp_path).build([learned, *smooth()])
    run = succeeded(await project.run())
    assert run.result["skills"][0]["approval_id"]
    assert not [path for path in project.tree(run.result["branch"]) if path.startswith(".agents")]


@pytest.mark.soak
async def test_a_skill_approved_after_the_end_is_refused_and_asked_about_again_by_a_retry(
    tmp_path: Path,
) -> None:
    learned = develops(
        skill={"name": "Add numbers", "description": "Adds.", "steps": ["Write a plus sign."]}
    )
    project = Project(tmp_path).build([learned, *smooth()])
    run = succeeded(await project.run())
    asked = run.result["skills"][0]["approval_id"]
    async with project.podium() as podium:
        store = await podium.store()
        with pytest.raises(ApprovalClosed, match="--from take-skill"):
            await approve(store, podium.clock, podium.ids, asked, by="Ann")
        engine = await podium.hosting_engine()
        await engine.retry(run.id, from_step="take-skill", by="Ann")
        waiting = await engine.finish(run.id, stop_when_waiting=True)
        assert waiting.status is RunStatus.WAITING
        await approve(store, podium.clock, podium.ids, approval_of(waiting), by="Ann")
        run = succeeded(await engine.finish(run.id, stop_when_waiting=True))
    assert ".agents/skills/add-numbers/SKILL.md" in project.tree(run.result["branch"])


@pytest.mark.soak
async def test_a_document_that_is_handed_in_again_as_it_was_is_sent_back(tmp_path: Path) -> None:
    rejects = says("plan_reviewer", "REJECT", "Stage: plan_review, round 1", feedback="- More.")
    again = {**plans(PLAN + "\nMore.\n"), "when": "Stage: plan, round 3"}
    project = Project(tmp_path).build([rejects, again, *smooth()])
    run = succeeded(await project.run())
    assert stages(run)[:4] == [
        ("plan", "DONE"),
        ("plan_review", "REJECT"),
        ("plan", "SENT_BACK"),
        ("plan", "DONE"),
    ]


@pytest.mark.soak
async def test_files_that_git_ignores_do_not_make_checks_green(tmp_path: Path) -> None:
    cheats = turn(
        "developer",
        writes("calc.py", "from build.real import add\n"),
        writes("build/real.py", RIGHT),
        writes(VERIFICATION_PATH, "# Verified\n"),
        {"commit": "Import it"},
        {"payload": {"commit_hash": "HEAD", "status": "success"}},
        when="Stage: develop, round 1",
    )
    ignored = ".podium/\n__pycache__/\nbuild/\n"
    project = Project(tmp_path).build([cheats, *smooth()], files={".gitignore": ignored})
    run = succeeded(await project.run())
    assert stages(run)[2:4] == [("develop", "RED"), ("develop", "DONE")]


@pytest.mark.soak
async def test_a_conflict_that_is_solved_without_the_merge_is_sent_back(tmp_path: Path) -> None:
    drops = turn(
        "integration_specialist",
        {"run": 'rm -f "$(git rev-parse --git-path MERGE_HEAD)"', "ignore_the_gate": True},
        writes("calc.py", RIGHT),
        {"commit": "Just mine"},
        {"payload": {"status": "success", "commit_hash": "HEAD"}},
        when="Stage: integrate, round 1",
    )
    solves = turn(
        "integration_specialist",
        writes("calc.py", RIGHT + SUBTRACTS),
        {"commit": "Merge main"},
        {"payload": {"status": "success", "commit_hash": "HEAD"}},
    )
    project = Project(tmp_path).build([drops, solves, *smooth()])
    run = succeeded(await moved_in_between(project, "calc.py", WRONG + SUBTRACTS))
    assert ("integrate", "SENT_BACK") in stages(run)
    project.git("merge", "--quiet", "--no-edit", run.result["branch"])


@pytest.mark.soak
async def test_documents_of_others_are_not_the_developers_to_change(tmp_path: Path) -> None:
    meddles = develops(files={PLAN_PATH: "Do nothing.\n"}, when="Stage: develop, round 1")
    project = Project(tmp_path).build([meddles, *smooth()])
    run = succeeded(await project.run())
    assert stages(run)[2:4] == [("develop", "SENT_BACK"), ("develop", "DONE")]
    plan = project.git("show", f"{run.result['history_ref']}:{run.result['plan']}")
    assert plan == PLAN.strip()


@pytest.mark.soak
async def test_a_wrong_hash_can_be_put_right_without_another_commit(tmp_path: Path) -> None:
    wrong = develops(when="Stage: develop, round 1")
    wrong["acts"][-1] = {"payload": {"commit_hash": "deadbeef00", "status": "success"}}
    right = turn(
        "developer",
        {"payload": {"commit_hash": "HEAD", "status": "success"}},
        when="Stage: develop, round 2",
    )
    project = Project(tmp_path).build([wrong, right, *smooth()])
    run = succeeded(await project.run())
    assert stages(run)[2:4] == [("develop", "SENT_BACK"), ("develop", "DONE")]
