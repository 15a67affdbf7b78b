"""Command `podium demo`, and the proof that it kept every promise."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from podium.app.app import Podium, open_podium
from podium.app.receipts import Verdict, verify_receipts
from podium.app.run_report import show_run
from podium.cli.app import command_app
from podium.cli.context import run_to_end
from podium.cli.screen import Screen
from podium.config.configuration import load_configuration
from podium.core.decisions import Receipt, Usage
from podium.core.errors import BadInput, ToolMissing
from podium.core.events import ChecksRan
from podium.core.model import FrozenModel
from podium.jobs.pipeline.demo_run import (
    DemoFailed,
    DemoRun,
    Sample,
    demo_environ,
    done,
    podium_command,
)
from podium.jobs.pipeline.event_text import check_line
from podium.jobs.pipeline.events import StageEnded
from podium.jobs.pipeline.run_view import look_back, result_of
from podium.render.event import about, usage_words
from podium.render.text import counted

PHASES = ("0.1", "0.2", "A.1", "A.2", "B", "C", "D")


class DemoReport(FrozenModel):
    """Result of the demo's run, from its record and the repository."""

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
    """Commits made to the base meanwhile are merged into the branch."""
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
        """Count the verdicts of each role."""
        return Counter((stage.role, stage.verdict) for stage in self.stages)

    def record(self) -> dict[str, object]:
        return {**self.model_dump(mode="json"), "missing": missing(self)}


async def look_at(podium: Podium, demo_run: DemoRun, sample: Sample, seconds: float) -> DemoReport:
    """Gather it while Podium is open."""
    store = await podium.store()
    run = (await show_run(store, demo_run.run_id, last_events=0)).run
    back = await look_back(podium, run)
    request = result_of(run).get("pull_request")
    request = request if isinstance(request, Mapping) else {}
    return DemoReport(
        run=run.id,
        task=run.task,
        status=run.status.value,
        kills=demo_run.kills,
        approved=tuple(demo_run.approvals),
        denied=tuple(f"{refusal.tool} {about(refusal.arguments)}" for refusal in demo_run.denied),
        stages=back.history.stages,
        checks=tuple({check.commit: check for check in demo_run.checks}.values()),
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


def missing(report: DemoReport) -> list[str]:
    """List the events that the demo promises and that did not happen."""
    counts, phases = report.counts(), {stage.phase for stage in report.stages}
    happened = {
        "the run succeeded": report.status == "succeeded",
        f"every phase of {', '.join(PHASES)}": phases >= set(PHASES),
        "a REJECT of the lead analyst": bool(counts["lead_analyst", "REJECT"]),
        "a FAIL of the auditor": bool(counts["auditor", "FAIL"]),
        "a conflict solved by the integration specialist": bool(
            counts["integration_specialist", "DONE"] and report.holds_base
        ),
        "a call that is denied": bool(report.denied),
        "a person's approval": bool(report.approved),
        "a process killed with kill -9": report.kills == 1,
        "green checks": bool(report.checks) and report.checks[-1].passed,
        "receipts that can be verified": bool(report.receipts) and report.verdict.sound,
        "a file that stands for the pull request": Path(report.pull_request).is_file(),
    }
    return [what for what, is_so in happened.items() if not is_so]


def show(screen: Screen, report: DemoReport, *, keeps_sample: bool) -> None:
    """The end of the demo, in words."""
    screen.line(f"\n  $ git log --oneline --graph {report.branch}\n")
    for line in report.graph:
        screen.line(f"  {line}")
    screen.line()
    sound = "every one is in place" if report.verdict.sound else "NOT SOUND"
    gone = "" if keeps_sample else " (gone with the sample; `podium demo --keep DIR` keeps it)"
    screen.facts(
        [
            *((f"checks on {ran.commit[:7]}", _checks(ran)) for ran in report.checks),
            ("receipts", f"{report.verdict.receipts} verified, chained and sealed: {sound}"),
            ("cost", usage_words(report.usage)),
            ("pull request", f"{report.pull_request}{gone}"),
            ("to merge", report.merge_command),
        ]
    )
    screen.line(f"\n{_summary(report)}")


def _checks(ran: ChecksRan) -> str:
    return ", ".join(check_line(result) for result in ran.results) or "none were found"


def _summary(report: DemoReport) -> str:
    counts = report.counts()
    met = [
        counted(sum(n for (_, verdict), n in counts.items() if verdict == "REJECT"), "REJECT"),
        counted(sum(n for (_, verdict), n in counts.items() if verdict == "FAIL"), "FAIL"),
        counted(counts["integration_specialist", "DONE"], "conflict") + " resolved",
        counted(len(report.denied), "call") + " denied",
        counted(len(report.approved), "call") + " approved",
        f"{report.kills} kill -9",
    ]
    return f"{', '.join(met)}; delivered all the same, in {report.seconds} s."


app = command_app()


@app.command()
def demo(
    context: typer.Context,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="DIR", help="Make the sample project here and keep it."),
    ] = None,
) -> None:
    """See a bug become a reviewed branch, offline and without keys, whatever gets in the way.

    Scripted agents play every role of `podium run` in a sample project that is made for them: work is
    rejected and fails its audit, a call is denied, a person is asked, the process is killed and
    resumed, and main moves meanwhile. Git, checks, receipts and the kill are real.

    \b
    Example:
      podium demo
      podium demo --keep sample && cd sample && podium runs
    """
    if shutil.which("git") is None:
        raise ToolMissing("the demo needs git; install it and run this again")
    screen = Screen(json=context.obj.json)
    folder = _folder(keep)
    keeps_sample = keep is not None
    try:
        report = run_to_end(_perform(folder, screen, keeps_sample=keeps_sample))
        if lacks := missing(report):
            raise DemoFailed(f"it did not show {', '.join(lacks)}")
        screen.answer(report.record(), lambda: show(screen, report, keeps_sample=keeps_sample))
    except DemoFailed as error:
        keeps_sample = True
        raise DemoFailed(f"{error}; the sample project is kept in {folder}") from error
    finally:
        if not keeps_sample:
            shutil.rmtree(folder, ignore_errors=True)
    if keep is not None and not screen.json:
        there = shlex.quote(str(keep))
        screen.line(f"\nLook around: cd {there} && {_program()} show {report.run}")


def _folder(keep: Path | None) -> Path:
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="podium-demo-")).resolve()
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise BadInput(f"{str(keep)!r} is there already; name a new folder for the sample project")
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"{str(keep)!r} cannot be made: {error.strerror}; name a folder you may write to"
        ) from None
    return keep.resolve()


async def _perform(folder: Path, screen: Screen, *, keeps_sample: bool) -> DemoReport:
    began = time.monotonic()
    # What is thrown away lies in one folder, worktrees and home included. What is kept must still be
    # proved later, so its key lies where the person's own do.
    project = folder if keeps_sample else folder / "shop"
    environ = demo_environ(os.environ, None if keeps_sample else folder / "home")
    log = screen.stderr_line if screen.json else screen.line
    sample = Sample(project, environ)
    await asyncio.to_thread(sample.make)
    log(f"A sample project in {project}; scripted agents play every role.")
    await asyncio.to_thread(_trust_where_nothing_confines, project, environ)
    demo_run = DemoRun(sample, environ, log)
    async with open_podium(load_configuration(environ, project=project), environ) as podium:
        await demo_run.play(await podium.journal())
        return await look_at(podium, demo_run, sample, time.monotonic() - began)


def _trust_where_nothing_confines(project: Path, environ: Mapping[str, str]) -> None:
    """The sample's checks are Podium's own words; elsewhere they run confined and need no trust."""
    if load_configuration(environ, project=project).sandbox.kind == "none":
        done(podium_command(project, "trust", "--yes"), project, environ)


def _program() -> str:
    """Name of the `podium` program if a shell would find it, else its path."""
    beside = Path(sys.executable).with_name("podium")
    return "podium" if shutil.which("podium") or not beside.exists() else str(beside)
