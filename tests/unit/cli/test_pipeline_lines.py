"""Events of a pipeline's run that get a line of output, and the text of it."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from itertools import count

from podium.cli.progress import Progress
from podium.core import events as e
from podium.core.decisions import Usage
from podium.core.ids import short_id
from podium.core.work import Failure
from podium.core.workspaces import Violation
from podium.jobs.pipeline.events import StageBegan, StageEnded
from podium.jobs.pipeline.run_view import PipelineLines, duration, money
from podium.render.event import describe

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
RUN = "run_0199f3c2a7b87c3e9d1f5a6b7c8d9e0f"
APPROVAL = "apr_0199f3c2a7b87c3e9d1f5a6b7c8d9e0f"
BEGAN = StageBegan(stage="develop", phase="B", role="developer")
ENDED = StageEnded(stage="develop", phase="B", role="developer", verdict="DONE", commit="7f3a2b1c")


def rendered(*bodies: e.AnyEvent, words: PipelineLines | None = None) -> list[str]:
    """The lines without their times; each event comes a minute after the one before."""
    words, number = words or PipelineLines(), count()
    events = [
        e.Event(run_id=RUN, seq=n + 1, position=n + 1, at=NOON + timedelta(minutes=n), body=body)
        for n, body in zip(number, bodies, strict=False)
    ]
    return [line.split("] ", 1)[1] for event in events for line in words.lines(event)]


def test_a_line_begins_with_the_time_as_the_persons_own_clock_shows_it() -> None:
    (line,) = PipelineLines().lines(
        e.Event(run_id=RUN, seq=1, position=1, at=NOON, body=e.NoteTaken(text="Hello."))
    )
    assert line == f"[{NOON.astimezone():%H:%M:%S}] PODIUM: Hello."


def test_small_events_are_worth_no_line() -> None:
    small: tuple[e.AnyEvent, ...] = (
        e.RunStarted(owner="wrk_1", fence=1),
        e.StepStarted(step="plan-1"),
        e.StepCompleted(step="plan-1"),
        e.AgentAsked(role="developer", agent="a", prompt="p"),
        e.AgentProgressed(role="developer", agent="a", kind="text", text="thinking"),
        e.ToolRequested(
            call="c", tool="read_file", arguments={}, digest="d", tier="T0", rule="r", reason=""
        ),
        e.UsageRecorded(source="agent:a", usage=Usage()),
        e.WorkspaceChecked(workspace="w", refs_before="a", refs_after="a"),
        e.RunSucceeded(result={}),
    )
    assert rendered(*small) == []


def test_stage_is_reported_with_the_time_it_took_from_start_to_end() -> None:
    spent = ENDED.model_copy(update={"usage": Usage(usd=0.25), "document": "docs/report.md"})
    assert rendered(BEGAN, spent) == [
        "PODIUM: Spawning DEVELOPER (B)...",
        "DEVELOPER: DONE. 'docs/report.md', commit 7f3a2b1 (1 min 00 s, $0.2500)",
    ]


def test_a_stage_of_podium_itself_shows_what_it_did() -> None:
    merged = StageEnded(stage="integrate", role="podium", verdict="DONE", words="Merged main.")
    assert rendered(merged) == ["PODIUM: Merged main."]


def test_stage_reported_by_an_earlier_process_is_not_reported_again() -> None:
    words = PipelineLines()
    words.know([ENDED])
    assert rendered(ENDED, words=words) == []
    again = ENDED.model_copy(update={"round": 2, "seconds": 3.0})
    assert rendered(again, words=words) == ["DEVELOPER: DONE (3.0 s, $0.0000)"]


def test_persons_notes_and_restored_files_are_reported() -> None:
    began = BEGAN.model_copy(update={"notes": ("use tabs",), "round": 2})
    ended = ENDED.model_copy(update={"discarded": ("src/a.py", "src/b.py"), "round": 2})
    assert rendered(began)[1] == "PODIUM: Your note goes to DEVELOPER: use tabs"
    put_back = "PODIUM: Reverted changes that DEVELOPER must not make: src/a.py, src/b.py"
    assert rendered(ended)[-1] == put_back


def test_rejection_is_reported_with_the_first_of_its_words() -> None:
    ended = ENDED.model_copy(update={"verdict": "FAIL", "words": "- no test\n" + "x" * 9_000})
    line = rendered(ended)[-1]
    assert line.startswith("DEVELOPER: Reason: - no test xxx")
    assert len(line) < 500


def test_what_holds_a_run_up_is_reported() -> None:
    refused = e.ToolRefused(
        call="c",
        tool="run_command",
        arguments={"command": "git push\x1b[2J"},
        effect="deny",
        tier="T2",
        rule="git-firewall",
        reason="not yours",
    )
    switched = e.AgentSwitched(role="developer", agent="a", next_agent="b", reason="down")
    limited = e.RunWaiting(signal="timer:rate-limit:plan-1", deadline=NOON)
    asked = e.ApprovalRequested(
        approval_id=APPROVAL,
        call="c",
        tool="t",
        summary="write x",
        digest="d",
        tier="T2",
        deadline=NOON,
    )
    tampered = e.WorkspaceChecked(
        workspace="w",
        refs_before="a",
        refs_after="b",
        violations=(Violation(what="refs/heads/main", restored=True),),
    )
    failure = Failure(kind="AgentLost", message="went away")
    broke = e.StepBroke(step="plan-1", attempt=1, failure=failure, final=False)
    assert rendered(BEGAN, refused, switched, limited, asked, tampered, broke)[1:] == [
        r"PODIUM: Denied DEVELOPER: run_command git push\x1b[2J (not yours)",
        "PODIUM: Switched DEVELOPER from agent a to b: down",
        f"PODIUM: Rate limited until {NOON.astimezone():%H:%M}, waiting; Ctrl-C leaves it resumable",
        f"PODIUM: Approval needed [T2]: write x; approve it with `podium approve {short_id(APPROVAL)}`",
        "PODIUM: Tampered with by DEVELOPER: w: changed refs/heads/main, put back",
        "PODIUM: Trying again: plan-1: AgentLost: went away; will be retried",
    ]


def test_every_red_check_has_a_line_with_the_last_that_it_wrote() -> None:
    green = {"command": "make lint", "exit_code": 0, "seconds": 1.0}
    red = {"command": "make test", "exit_code": 2, "seconds": 61.0, "tail": "one\n2 failed\n\n"}
    late = {"command": "slow", "exit_code": None, "timed_out": True, "seconds": 5.0}
    assert rendered(e.ChecksRan(commit="7f3a2b1c", results=(green, red, late), passed=False)) == [
        "PODIUM: Checks on 7f3a2b1 FAILED: `make lint` exit 0 (1.0 s), "
        "`make test` exit 2 (1 min 01 s), `slow` timed out (5.0 s)",
        "PODIUM: Failed: `make test` exit 2 (1 min 01 s): 2 failed",
        "PODIUM: Failed: `slow` timed out (5.0 s): no output",
    ]


def test_what_goes_on_is_known_and_until_when_nothing_will() -> None:
    words = PipelineLines()
    rendered(BEGAN, words=words)
    assert words.doing.what == "DEVELOPER (B)"
    rendered(e.RunWaiting(signal="timer:rate-limit:plan-1", deadline=NOON), words=words)
    assert (words.doing.what, words.doing.until) == ("rate limited", NOON)
    rendered(e.WaitExpired(name="timer:rate-limit:plan-1", step="s"), words=words)
    assert words.doing.what == "DEVELOPER"


def test_looks_at_a_pull_request_without_news_are_one_line() -> None:
    words = PipelineLines()
    look = e.RunWaiting(signal="pull_request:7", deadline=NOON)
    passed = e.WaitExpired(name="pull_request:7", step="s")
    news = e.NoteTaken(text="Round 1.")
    assert rendered(look, passed, look, passed, look, news, look, words=words) == [
        "PODIUM: Waiting for news of pull request 7.",
        "PODIUM: Round 1.",
        "PODIUM: Waiting for news of pull request 7.",
    ]
    assert words.doing.what == "following the pull request"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_counts_down_to_the_end_of_a_wait() -> None:
    terminal = Terminal()
    with Progress(terminal) as progress:
        progress.doing("rate limited", datetime.now(UTC) + timedelta(seconds=3_725))
    assert "rate limited, continues in 1:02:0" in terminal.getvalue()


def test_a_wait_that_is_over_counts_no_further() -> None:
    terminal = Terminal()
    with Progress(terminal) as progress:
        progress.doing("rate limited", datetime.now(UTC) - timedelta(seconds=5))
    assert "continues in 0:00" in terminal.getvalue()


def test_durations_and_costs_are_short_and_honest() -> None:
    assert [duration(number) for number in (0.04, 9.94, 43.4, 59.9, 272)] == [
        "0.0 s",
        "9.9 s",
        "43 s",
        "1 min 00 s",
        "4 min 32 s",
    ]
    assert money(Usage(usd=0.5)) == "$0.5000"
    assert money(Usage(usd=0.5, complete=False)) == "at least $0.5000"


def test_events_of_stages_are_one_line_in_the_log_too() -> None:
    check = {"command": "make test", "exit_code": 2}
    assert describe(BEGAN) == "develop (developer), round 1"
    assert describe(ENDED) == "develop (developer), round 1: DONE at 7f3a2b1c"
    ran = e.ChecksRan(commit="7f3a2b1c", results=(check,), passed=False)
    assert describe(ran) == "FAILED on 7f3a2b1c: make test exit 2"
    delivered = e.BranchDelivered(branch="task/x", commit="7f3a2b1c", url="https://forge.example/1")
    assert describe(delivered) == "task/x at 7f3a2b1c https://forge.example/1"
