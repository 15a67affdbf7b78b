"""Issues become runs: claimed once, worked on as pinned, and answered once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from podium.app.work_request import queues_of
from podium.core.errors import BadInput, ForgeUnavailable, NotPossibleNow, RateLimited
from podium.core.work import Run, RunStatus
from podium.jobs.pipeline import intake, issue_claim, issue_report
from podium.jobs.pipeline.intake import IssueIntake, job_of_issue
from podium.jobs.pipeline.issue import IssueClaim
from podium.ports import RunQuery
from podium.testing import retry_until
from tests.integration.forge import description
from tests.integration.forge.github_server import (
    Asked,
    GitHubResponse,
    GitHubServer,
    serving,
    trouble,
)
from tests.integration.pipeline.followed_project import FIXED, repairs
from tests.integration.pipeline.issue_project import IssueProject, issue_of
from tests.integration.pipeline.pipeline_harness import smooth

SETTINGS: dict[str, Any] = {"flows": {"pipeline": {"intake": {"mode": "quick"}}}}


@pytest.fixture(scope="module", autouse=True)
def _described() -> None:
    description.load()


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHubServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as server:
        yield server


@pytest.fixture
def project(tmp_path: Path, github: GitHubServer) -> IssueProject:
    return IssueProject(tmp_path / "one", github).build(smooth(), settings=SETTINGS)


def bodies(github: GitHubServer, number: int) -> list[str]:
    return [comment["body"] for comment in github.issue_comments.get(number, [])]


async def test_issue_becomes_a_claimed_run_a_pull_request_and_one_comment(
    project: IssueProject, github: GitHubServer
) -> None:
    github.issues.add(7)
    items = await project.look()
    assert [(item.number, item.action) for item in items] == [(7, "queued")]
    assert "podium:claimed" in github.issues.labels_of(7)
    (run,) = await project.work()
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    assert issue_of(run) == 7
    (pull,) = github.pulls
    assert pull["body"].rstrip().endswith("Closes #7")
    history = run.result["history"]
    assert f"(https://github.com/octo/hello/blob/{history}/docs/dev_docs/plans/" in pull["body"]
    assert history in project.refs()
    claim, result = bodies(github, 7)
    assert claim.startswith('<!-- podium:claim {"run":')
    assert '"state":"done"' in claim
    assert "opened https://github.com/octo/hello/pull/100 for this issue" in result
    assert github.issues.labels_of(7) == []
    assert [item.action for item in await project.look()] == []
    assert len(bodies(github, 7)) == 2


async def test_two_machines_claim_twenty_issues_once(tmp_path: Path, github: GitHubServer) -> None:
    one = IssueProject(tmp_path / "one", github).build([], settings=SETTINGS)
    two = IssueProject(tmp_path / "two", github, one.bare).build([], settings=SETTINGS)
    for number in range(1, 21):
        github.issues.add(number, f"Task {number}")
    both = await asyncio.gather(one.look(), two.look())
    # Whoever came late sees what the other has; nothing is lost and nothing done twice.
    await asyncio.gather(one.look(), two.look())
    runs = [issue_of(run) for project in (one, two) for run in await project.runs()]
    assert sorted(runs) == list(range(1, 21))
    assert {item.action for items in both for item in items} <= {"queued", "claimed_elsewhere"}
    for number in range(1, 21):
        (claim,) = bodies(github, number)
        assert claim.startswith("<!-- podium:claim ")


async def test_claim_that_ended_is_taken_over_and_its_run_stops(
    tmp_path: Path, github: GitHubServer
) -> None:
    one = IssueProject(tmp_path / "one", github).build(smooth(), settings=SETTINGS)
    two = IssueProject(tmp_path / "two", github, one.bare).build([], settings=SETTINGS)
    github.issues.add(7)
    await one.look()
    (mine,) = github.issue_comments[7]
    mine["body"] = re.sub(r'"until":"[^"]*"', '"until":"2026-01-01T00:00:00Z"', mine["body"])
    assert [item.action for item in await two.look()] == ["queued"]
    (run,) = await one.work()
    assert run.status is RunStatus.FAILED
    assert run.failure is not None
    assert "this run lost its issue" in run.failure.message
    assert github.pulls == []
    assert [item.action for item in await two.look()] == ["working"]


async def test_claim_that_is_lost_while_the_run_works_is_noticed_before_anything_is_pushed(
    project: IssueProject, github: GitHubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issue_claim, "_FRESH", timedelta(0))  # nobody has a minute
    github.issues.add(7)
    await project.look()
    (mine,) = github.issue_comments[7]

    def sleeps(asked: Asked) -> None:
        """When the run has begun, let this machine sleep until another one has the issue."""
        if asked.target.endswith("/protection"):
            github.after = lambda asked: None
            mine["body"] = re.sub(
                r'"until":"[^"]*"', '"until":"2026-01-01T00:00:00Z"', mine["body"]
            )
            until = datetime.now(UTC) + timedelta(hours=1)
            theirs = IssueClaim(run="run_2", worker="worker-2", until=until)
            github.comment(7, theirs.comment, author="uma", association="MEMBER")

    github.after = sleeps
    (run,) = await project.work()
    assert run.status is RunStatus.FAILED
    assert run.failure is not None
    assert "this run lost its issue: worker 'worker-2'" in run.failure.message
    assert github.pulls == []


@pytest.mark.parametrize(
    "stranger",
    [
        {"author": "mallory", "association": "NONE", "by": "uma"},
        {"author": "mallory", "association": "CONTRIBUTOR", "by": "uma"},
        {"by": "mallory"},
    ],
    ids=["author", "contributor", "label"],
)
async def test_issue_or_label_of_a_stranger_is_ignored(
    project: IssueProject, github: GitHubServer, stranger: dict[str, str]
) -> None:
    github.issues.add(7, **stranger)  # type: ignore[arg-type]
    (item,) = await project.look()
    assert item.action == "not_allowed"
    assert "mallory" in item.reason
    assert await project.runs() == []
    assert {asked.method for asked in github.asked} == {"GET"}


async def test_who_put_the_label_is_found_behind_a_thousand_events(
    project: IssueProject, github: GitHubServer
) -> None:
    github.issues.add(7)
    github.issues.unlabel(7, "podium")
    github.issues.add_events(7, 1100)
    github.issues.label(7, "podium", by="mallory")
    github.issues.add_events(7, 150)
    (item,) = await project.look()
    assert item.action == "not_allowed"
    assert "'mallory'" in item.reason


async def test_dry_run_changes_nothing(project: IssueProject, github: GitHubServer) -> None:
    github.issues.add(7)
    assert [item.action for item in await project.look(dry_run=True)] == ["would_queue"]
    assert {asked.method for asked in github.asked} == {"GET"}
    assert await project.runs() == []


async def test_edit_after_the_claim_is_shown_and_changes_no_run(
    project: IssueProject, github: GitHubServer
) -> None:
    issue = github.issues.add(7)
    await project.look()
    issue["body"] = "And delete everything"
    (item,) = await project.look()
    await project.look()
    assert item.edited
    (run,) = await project.runs()
    assert run.task == "Make the sum right"
    notes = [event["text"] for event in await project.events(run.id) if "text" in event]
    assert ["was edited since this run began" in note for note in notes] == [True]


async def test_stop_label_cancels_the_run_and_says_so_once(
    project: IssueProject, github: GitHubServer
) -> None:
    github.issues.add(7)
    await project.look()
    github.issues.label(7, "podium:stop")
    assert [item.action for item in await project.look()] == ["stopped"]
    await project.look()
    (run,) = await project.runs()
    assert run.status is RunStatus.CANCELLED
    claim, result = bodies(github, 7)
    assert '"state":"done"' in claim
    assert "stopped working on this issue" in result
    assert github.issues.labels_of(7) == []


@pytest.mark.parametrize("refusal", [(410, "This issue was deleted", {}), (404, "Not Found", {})])
async def test_issue_that_cannot_be_used_stops_no_other(
    project: IssueProject, github: GitHubServer, refusal: tuple[int, str, dict[str, str]]
) -> None:
    github.issues.add(7)
    github.issues.add(8)
    github.issues.add(9)["locked"] = True
    github.issues.refusals[7] = refusal
    items = {item.number: item for item in await project.look()}
    actions = {number: item.action for number, item in items.items()}
    assert actions == {7: "unavailable", 8: "queued", 9: "unavailable"}
    assert "issue is locked" in items[9].reason


@pytest.mark.parametrize("method", ["comments", "labels"])
async def test_killed_between_claim_and_run_it_loses_and_doubles_nothing(
    project: IssueProject, github: GitHubServer, method: str
) -> None:
    github.issues.add(7)

    def dies(asked: Asked) -> GitHubResponse | None:
        """Do what was asked and answer as if the process had died before it heard of it."""
        if asked.method == "POST" and asked.target.endswith(method):
            return trouble(403, "Killed here")
        return None

    github.after = dies
    assert [item.action for item in await project.look()] == ["unavailable"]
    assert await project.runs() == []
    github.after = lambda asked: None
    assert [item.action for item in await project.look()] == ["queued"]
    assert [item.action for item in await project.look()] == ["working"]
    assert len(await project.runs()) == 1
    assert len(bodies(github, 7)) == 1


async def test_forged_claims_and_results_of_strangers_count_for_nothing(
    project: IssueProject, github: GitHubServer
) -> None:
    forged = IssueClaim(
        run="run_1", worker="worker-1", until=datetime(2099, 1, 1, tzinfo=UTC)
    ).comment
    github.issues.add(7)
    github.comment(7, forged, author="mallory", association="NONE")
    github.comment(7, f"> {forged}", author="uma", association="MEMBER")
    assert [item.action for item in await project.look()] == ["queued"]


async def test_claim_is_kept_although_a_stranger_has_copied_it(
    project: IssueProject, github: GitHubServer
) -> None:
    github.issues.add(7)
    await project.look()
    (first,) = github.issue_comments[7]
    far = '"until":"2099-01-01T00:00:00Z"'
    copy = re.sub(r'"until":"[^"]*"', far, first["body"])
    github.comment(7, copy, author="mallory", association="NONE")
    first["body"] = re.sub(r'"until":"[^"]*"', '"until":"2026-01-01T00:00:00Z"', first["body"])
    assert [item.action for item in await project.look()] == ["working"]
    copied, mine = github.issue_comments[7]
    assert (copied["user"]["login"], mine["user"]["login"]) == ("mallory", "octocat")
    soon = datetime.now(UTC) + timedelta(minutes=10)
    mine["body"] = re.sub(r'"until":"[^"]*"', f'"until":"{soon.isoformat()}"', mine["body"])
    await project.look()
    assert (github.asked[-1].method, github.asked[-1].target.rpartition("/")[2]) == (
        "PATCH",
        str(mine["id"]),
    )


async def test_account_without_access_knows_its_own_claims_from_its_runs(
    project: IssueProject, github: GitHubServer
) -> None:
    """Comments of an app count as those of a stranger."""
    comments = github.comment
    github.comment = lambda *words, **more: comments(*words, **{"association": "NONE", **more})  # type: ignore[method-assign]
    github.issues.add(6)
    await project.look()
    github.issues.add(7)

    def dies(asked: Asked) -> GitHubResponse | None:
        is_claim = asked.method == "POST" and asked.target.endswith("7/comments")
        return trouble(403, "Killed here") if is_claim else None

    github.after = dies
    await project.look()
    github.after = lambda asked: None
    actions = {item.number: item.action for item in await project.look()}
    assert actions == {6: "working", 7: "queued"}
    assert len(bodies(github, 7)) == 1


async def test_issue_without_an_answer_stops_no_other(
    project: IssueProject, github: GitHubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "_PAUSE_SECONDS", 0.0)  # nobody has time for real pauses
    for number in (7, 8, 9, 10):
        github.issues.add(number)
    github.issues.refusals = {7: (502, "Bad gateway", {}), 8: (502, "Bad gateway", {})}
    actions = {item.number: item.action for item in await project.look()}
    assert actions == {7: "unavailable", 8: "unavailable", 9: "queued", 10: "queued"}
    github.issues.refusals[9] = (502, "Bad gateway", {})
    with pytest.raises(ForgeUnavailable):
        await project.look()


async def test_rate_limit_says_when_to_look_again(
    project: IssueProject, github: GitHubServer
) -> None:
    github.everything = trouble(429, "Slow down", retry_after="120")
    with pytest.raises(RateLimited, match="is exceeded until"):
        await project.look()
    assert len(github.asked) == 1


async def test_label_added_again_starts_the_issue_anew(
    project: IssueProject, github: GitHubServer
) -> None:
    github.issues.add(7)
    await project.look()
    (first,) = await project.runs()
    async with project.podium() as podium:
        await (await podium.engine()).cancel(first.id, by="Ann", why="not now")
    assert [item.action for item in await project.look()] == ["finished"]
    assert "not now" in bodies(github, 7)[-1] or "cancelled" in bodies(github, 7)[-1]
    assert github.issues.labels_of(7) == []
    github.issues.label(7, "podium", at="2098-01-01T00:00:00Z")
    assert [item.action for item in await project.look()] == ["queued"]
    assert len(await project.runs()) == 2


async def test_run_that_needs_a_person_says_so_on_the_issue_once(
    tmp_path: Path, github: GitHubServer
) -> None:
    settings = {**SETTINGS, "checks": ["no-such-program --all"]}
    project = IssueProject(tmp_path / "one", github).build([], settings=settings)
    github.issues.add(7)
    await project.look()
    (run,) = await project.work()
    assert run.status is RunStatus.NEEDS_HUMAN, run.failure
    assert [item.action for item in await project.look()] == ["reported"]
    assert [item.action for item in await project.look()] == ["working"]
    claim, result = bodies(github, 7)
    assert "Podium needs a person to continue" in result
    # With what this comment shows, nobody can write the mark of another.
    (nonce,) = [run.input["issue"]["nonce"] for run in await project.runs()]
    assert nonce not in result
    until = re.search(r'"until":"([^"]*)"', claim)
    assert until is not None
    assert datetime.fromisoformat(until[1]) > datetime.now(UTC) + timedelta(days=6)


async def test_run_that_follows_its_pull_request_needs_nobody_and_leaves_the_issue_alone(
    tmp_path: Path, github: GitHubServer
) -> None:
    options = {"intake": {"mode": "quick"}, "follow_up": {"enabled": True, "interval": 600.0}}
    project = IssueProject(tmp_path / "one", github).build(
        [*repairs(2, FIXED), *smooth()], settings={"flows": {"pipeline": options}}
    )
    github.head_of = lambda branch: project.head_of(branch)
    github.issues.add(7)
    await project.look()
    (run,) = await project.work()
    assert run.follows_pull_request, (run.status, run.failure)
    assert [item.action for item in await project.look()] == ["working"]
    # Another machine takes a new request while this run goes on.
    github.issues.label(7, "podium", "podium:claimed", at="2098-01-01T00:00:00Z")
    github.check_run(project.head_of(github.pulls[0]["head"]["ref"]), "lint", "failure")

    async def woken() -> Run:
        async with project.podium() as podium:
            engine = await podium.hosting_engine()
            async with engine.serve(queues_of(podium.configuration)):
                await engine.signal(run.id, "pull_request:100")
                return await engine.finish(run.id, stop_when_waiting=True)

    again = await woken()
    assert again.follows_pull_request, (again.status, again.failure)
    assert "# reviewed" in project.git("show", f"{github.pulls[0]['head']['ref']}:calc.py")
    assert ["podium:result" in body for body in bodies(github, 7)] == [False, True]
    assert github.issues.labels_of(7) == ["podium", "podium:claimed"]
    github.issues.refusals[7] = (410, "This issue was deleted", {})
    again = await woken()
    assert again.follows_pull_request, (again.status, again.failure)


async def test_labels_are_compared_as_github_does(
    project: IssueProject, github: GitHubServer
) -> None:
    github.issues.add(7, labels=("Podium",))
    assert [item.action for item in await project.look()] == ["queued"]
    github.issues.label(7, "PODIUM:stop")
    assert [item.action for item in await project.look()] == ["stopped"]
    assert github.issues.labels_of(7) == []


async def test_repository_that_was_renamed_still_has_its_issues(
    project: IssueProject, github: GitHubServer
) -> None:
    for number in (7, 8):
        github.issues.add(number)["repository_url"] = "https://api.github.com/repos/octo/renamed"
    await project.look()
    first, second = await project.work()
    assert {first.status, second.status} == {RunStatus.SUCCEEDED}
    assert "opened https://github.com/octo/hello/pull/" in bodies(github, 7)[-1]
    github.issues.rows[8]["repository_url"] = "https://api.github.com/repos/octo/another"
    async with project.podium() as podium:
        with pytest.raises(NotPossibleNow, match="was transferred"):
            await job_of_issue(podium, "8", mode="quick", agent="", base="")


async def test_claim_without_an_end_in_sight_is_a_claim(
    project: IssueProject, github: GitHubServer
) -> None:
    forever = IssueClaim(run="run_1", worker="worker-1", until=datetime.max.replace(tzinfo=UTC))
    github.issues.add(7)
    github.issues.add(8)
    github.comment(7, forever.comment, author="uma", association="MEMBER")
    items = {item.number: item.action for item in await project.look()}
    assert items == {7: "claimed_elsewhere", 8: "queued"}


async def test_label_after_the_end_is_a_new_request_although_this_clock_is_ahead(
    project: IssueProject, github: GitHubServer
) -> None:
    github.issues.add(7)
    ahead = IssueClaim(
        run="run_1", worker="worker-1", state="done", until=datetime(2098, 1, 1, tzinfo=UTC)
    )
    comment = github.comment(7, ahead.comment, author="uma", association="MEMBER")
    comment["updated_at"] = "2025-12-31T00:00:00Z"
    assert [item.action for item in await project.look()] == ["queued"]


async def test_claim_of_a_queued_run_is_renewed_and_unchanged_lists_cost_nothing(
    project: IssueProject, github: GitHubServer
) -> None:
    github.issues.add(7)
    await project.look()
    (mine,) = github.issue_comments[7]
    soon = datetime.now(UTC) + timedelta(minutes=10)
    mine["body"] = re.sub(r'"until":"[^"]*"', f'"until":"{soon.isoformat()}"', mine["body"])
    async with project.podium() as podium:
        intake = await IssueIntake.open(podium, settle_seconds=0)
        await intake.look()
        assert github.asked[-1].method == "PATCH"
        await intake.look()
        before = github.unchanged
        asked = len(github.asked)
        await intake.look()
    assert github.unchanged - before == len(github.asked) - asked == 3


@pytest.mark.soak
async def test_delivery_is_reported_once_although_an_answer_is_lost(
    project: IssueProject, github: GitHubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issue_report, "_PAUSE", timedelta(0))  # nobody has half a minute
    github.issues.add(7)
    await project.look()
    lost = iter([True])

    def lose(asked: Asked) -> GitHubResponse | None:
        is_result = asked.method == "POST" and "podium:result" in (asked.body or {}).get("body", "")
        return trouble(502, "Bad gateway") if is_result and next(lost, False) else None

    github.after = lose
    (run,) = await project.work()
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    assert ["podium:result" in body for body in bodies(github, 7)] == [False, True]
    assert github.issues.labels_of(7) == []


async def test_report_waits_as_long_as_the_rate_limit_lasts(
    project: IssueProject, github: GitHubServer
) -> None:
    github.issues.add(7)
    await project.look()

    def limited(asked: Asked) -> GitHubResponse | None:
        is_result = asked.method == "POST" and "podium:result" in (asked.body or {}).get("body", "")
        return trouble(429, "Slow down", retry_after="3000") if is_result else None

    github.after = limited
    async with project.podium() as podium:
        engine, store = await podium.hosting_engine(), await podium.store()

        async def parked() -> Run | None:
            (run,) = await store.read(lambda view: view.runs(RunQuery()))
            return run if run.waiting_for == "timer:issue" else None

        async with engine.serve(queues_of(podium.configuration)):
            run = await retry_until(parked, seconds=60)
    assert run is not None
    assert run.wake_at is not None
    assert run.wake_at > datetime.now(UTC) + timedelta(minutes=45)


async def test_person_names_an_issue_without_label_or_claim(
    project: IssueProject, github: GitHubServer
) -> None:
    github.issues.add(7, labels=(), author="mallory", association="NONE")
    async with project.podium() as podium:
        for text in (
            "https://github.com/octo/other/issues/7",
            "https://github.com/octo/hello/pull/7",
            "x",
        ):
            with pytest.raises(BadInput):
                await job_of_issue(podium, text, mode="quick", agent="", base="")
        url = "https://github.com/octo/hello/issues/7"
        job = await job_of_issue(podium, url, mode="quick", agent="", base="")
        engine = await podium.hosting_engine()
        run = await engine.start("pipeline", job.model_dump(mode="json"), task=job.task)
        run = await engine.finish(run.id, stop_when_waiting=True)
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    (result,) = bodies(github, 7)
    assert "opened https://github.com/octo/hello/pull/100" in result
    assert github.pulls[0]["body"].rstrip().endswith("Closes #7")
