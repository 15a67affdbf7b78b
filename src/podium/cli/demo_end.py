"""What the demo has to show for itself, and whether that is all that it promised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from podium.cli.demo_sample import Sample
from podium.cli.demo_story import Story
from podium.cli.pipeline_report import look_back, result_of
from podium.cli.pipeline_words import check_words
from podium.cli.screen import Screen
from podium.domain.events import ChecksRan, StageEnded
from podium.domain.gating import Receipt, Usage
from podium.domain.model import Noun
from podium.telling.event_words import about, usage_words
from podium.telling.wording import counted
from podium.usecases import Verdict, show_run, verify_receipts
from podium.wiring import Podium

PHASES = ("0.1", "0.2", "A.1", "A.2", "B", "C", "D")


class Told(Noun):
    """How the run went, as its record and the repository have it."""

    run: str
    task: str
    status: str
    kills: int
    approved: tuple[str, ...]
    denied: tuple[str, ...]
    stages: tuple[StageEnded, ...]
    checks: tuple[ChecksRan, ...]
    branch: str
    holds_base: bool
    """What was committed to the base meanwhile is merged into the branch."""
    graph: tuple[str, ...]
    workspace: str
    pull_request: str
    """The file that stands for one."""
    merge_command: str
    receipts: tuple[Receipt, ...]
    verdict: Verdict
    usage: Usage
    trace: str
    seconds: float

    def counts(self) -> Counter[tuple[str, str]]:
        """How often each role left with each verdict."""
        return Counter((each.role, each.verdict) for each in self.stages)

    def record(self) -> dict[str, object]:
        return {**self.model_dump(mode="json"), "missing": missing(self)}


async def look_at(podium: Podium, story: Story, sample: Sample, seconds: float) -> Told:
    """Gather it while Podium is open."""
    store = await podium.store()
    run = (await show_run(store, story.run_id, last_events=0)).run
    back = await look_back(podium, run)
    request = result_of(run).get("pull_request")
    request = request if isinstance(request, Mapping) else {}
    return Told(
        run=run.id,
        task=run.task,
        status=run.status.value,
        kills=story.kills,
        approved=tuple(story.approvals),
        denied=tuple(f"{each.tool} {about(each.arguments)}" for each in story.denied),
        stages=back.passage.stages,
        checks=tuple({each.commit: each for each in story.checks}.values()),
        branch=back.branch,
        holds_base=sample.holds_base(back.branch),
        graph=sample.graph(back.branch),
        workspace=back.workspace,
        pull_request=str(request.get("file") or ""),
        merge_command=str(request.get("merge_command") or ""),
        receipts=tuple(await store.read(lambda view: view.receipts(run.id))),
        verdict=await verify_receipts(store, await podium.verifier()),
        usage=back.usage,
        trace=str(podium.folders.state / "runs" / run.id / "execution_trace.jsonl"),
        seconds=round(seconds, 1),
    )


def missing(told: Told) -> list[str]:
    """What was to be shown and was not; empty when all of it happened."""
    counts, phases = told.counts(), {each.phase for each in told.stages}
    happened = {
        "the run succeeded": told.status == "succeeded",
        f"every phase of {', '.join(PHASES)}": phases >= set(PHASES),
        "a REJECT of the lead analyst": bool(counts["lead_analyst", "REJECT"]),
        "a FAIL of the auditor": bool(counts["auditor", "FAIL"]),
        "a conflict solved by the integration specialist": bool(
            counts["integration_specialist", "DONE"] and told.holds_base
        ),
        "a call that is denied": bool(told.denied),
        "a person's approval": bool(told.approved),
        "a process killed with kill -9": told.kills == 1,
        "green checks": bool(told.checks) and told.checks[-1].passed,
        "receipts that can be verified": bool(told.receipts) and told.verdict.sound,
        "a file that stands for the pull request": Path(told.pull_request).is_file(),
    }
    return [what for what, is_so in happened.items() if not is_so]


def show(screen: Screen, told: Told, *, kept: bool) -> None:
    """The end of the demo, in words."""
    screen.line(f"\n  $ git log --oneline --graph {told.branch}\n")
    for line in told.graph:
        screen.line(f"  {line}")
    screen.line()
    sound = "every one is in place" if told.verdict.sound else "NOT SOUND"
    gone = "" if kept else " (gone with the sample; `podium demo --keep DIR` keeps it)"
    screen.facts(
        [
            *((f"checks on {ran.commit[:7]}", _checks(ran)) for ran in told.checks),
            ("receipts", f"{told.verdict.receipts} verified, chained and sealed: {sound}"),
            ("cost", usage_words(told.usage)),
            ("pull request", f"{told.pull_request}{gone}"),
            ("to merge", told.merge_command),
        ]
    )
    screen.line(f"\n{_summary(told)}")


def _checks(ran: ChecksRan) -> str:
    return ", ".join(check_words(each) for each in ran.results) or "none were found"


def _summary(told: Told) -> str:
    counts = told.counts()
    met = [
        counted(sum(n for (_, verdict), n in counts.items() if verdict == "REJECT"), "REJECT"),
        counted(sum(n for (_, verdict), n in counts.items() if verdict == "FAIL"), "FAIL"),
        counted(counts["integration_specialist", "DONE"], "conflict") + " resolved",
        counted(len(told.denied), "call") + " denied",
        counted(len(told.approved), "call") + " approved",
        f"{told.kills} kill -9",
    ]
    return f"{', '.join(met)}; delivered all the same, in {told.seconds} s."
