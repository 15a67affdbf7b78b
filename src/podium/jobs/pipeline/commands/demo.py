"""Command `podium demo`: a sample project, a run that is killed and resumed, and the proof that it kept every promise."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.resources import as_file, files
from pathlib import Path
from shutil import copytree
from typing import IO, Annotated

import typer

from podium.app.app import Podium, open_podium
from podium.app.receipts import Verdict, verify_receipts
from podium.app.run_report import show_run
from podium.cli.app import command_app
from podium.cli.context import run_to_end
from podium.cli.screen import Screen
from podium.config.configuration import load_configuration
from podium.core import events as e
from podium.core.decisions import Receipt, Usage
from podium.core.errors import BadInput, PodiumError, ToolMissing
from podium.core.events import ChecksRan
from podium.core.ids import short_id
from podium.core.model import FrozenModel
from podium.jobs.pipeline.events import StageBegan, StageEnded
from podium.jobs.pipeline.run_view import PipelineLines, check_line, look_back, result_of
from podium.ports import EventQuery, Journal
from podium.render.event import about, describe, usage_text
from podium.render.text import counted


class DemoFailed(PodiumError):
    """The demo did not go as it must. Its folder is kept to look at."""


class Host:
    """A process that hosts the run. What it shows is left aside; its complaints are kept."""

    def __init__(self, process: asyncio.subprocess.Process, stderr: IO[bytes]) -> None:
        self._process = process
        self._stderr = stderr
        self.was_killed = False

    @classmethod
    @asynccontextmanager
    async def started(
        cls, command: Sequence[str], environ: Mapping[str, str]
    ) -> AsyncIterator[Host]:
        """A process that is asked to end, and has ended, when the context does."""
        with tempfile.TemporaryFile() as stderr:
            process = await asyncio.create_subprocess_exec(
                *command,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )
            try:
                yield cls(process, stderr)
            finally:
                if process.returncode is None:
                    process.terminate()
                await process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """As `kill -9` does."""
        self.was_killed = True
        self._process.kill()

    async def end(self) -> None:
        """Wait for its end. Raises `DemoFailed` for a bad one that nobody brought about."""
        code = await self._process.wait()
        if code != 0 and not self.was_killed:
            self._stderr.seek(0)
            raise DemoFailed(
                f"the run's process exited with {_failure_line(code, self._stderr.read())}"
            )


def podium_command(folder: Path, *arguments: str) -> list[str]:
    """This very Podium, in the project."""
    return [sys.executable, "-m", "podium", *arguments, "--project", str(folder)]


def done(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> str:
    """Run a command and give its output. Raises `DemoFailed` with its last error line when it fails."""
    ended = subprocess.run(
        command,
        cwd=folder,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if ended.returncode == 0:
        return ended.stdout.decode(errors="replace")
    how = _failure_line(ended.returncode, ended.stderr)
    raise DemoFailed(f"`{' '.join(command)}` exited with {how}")


def _failure_line(code: int, stderr: bytes) -> str:
    lines = [line for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    return f"{code}: {lines[-1]}" if lines else f"{code} without an error message"


TASK = "Discounts are wrong"
"""The documents' names in the sample's script are made of it."""
BASE = "main"
MEANWHILE = "Add shipping to totals"

_PASSED_ON = ("PODIUM_HOME", "PODIUM_SANDBOX")
_ALONE = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
"""Nobody's hooks, templates and signing keys have a part in the play."""


def demo_environ(environ: Mapping[str, str], home: Path | None) -> dict[str, str]:
    """The person's environment without what would make another play of it.

    With a `home` nothing is left in the person's own.
    """
    variables = {
        name: value
        for name, value in environ.items()
        if name in _PASSED_ON or not name.startswith(("PODIUM_", "GIT_"))
    }
    return variables if home is None else {**variables, "PODIUM_HOME": str(home)}


class Sample:
    """The project, as its owner and a colleague use it."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.folder = folder
        self._environ = {**environ, **_ALONE}

    def make(self) -> None:
        """Write it down and commit it on the base branch."""
        self._copy("project")
        (self.folder / ".gitignore").write_text(".podium/\n__pycache__/\n")
        self.git("init", "--quiet", "--template=", f"--initial-branch={BASE}")
        self.git("config", "user.name", "Podium demo")
        self.git("config", "user.email", "demo@podium.invalid")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "A small shop")

    def move_base(self) -> None:
        """Commit as a colleague would while the agents work, on the lines that they change."""
        self._copy("meanwhile")
        self.git("commit", "--quiet", "--all", "--message", MEANWHILE)

    def graph(self, branch: str) -> tuple[str, ...]:
        output = self.git("log", "--oneline", "--graph", f"refs/heads/{branch}", "--")
        return tuple(line.rstrip() for line in output.splitlines())

    def holds_base(self, branch: str) -> bool:
        """True when the base, with the colleague's commit, is merged into the branch."""
        return not self.git("log", "--oneline", f"refs/heads/{branch}..refs/heads/{BASE}", "--")

    def git(self, *arguments: str) -> str:
        return done(["git", *arguments], self.folder, self._environ)

    def _copy(self, part: str) -> None:
        with as_file(files("podium.cli") / "sample" / part) as content:
            copytree(content, self.folder, dirs_exist_ok=True)


MAX_SECONDS = 300.0
KILLED_IN, KILLED_AFTER = "develop", "write_file"
"""The process is killed when an agent's first call of this tool was performed in this stage."""


class DemoRun:
    """One telling: other processes host the run, this one watches the journal and acts."""

    def __init__(
        self, sample: Sample, environ: Mapping[str, str], log: Callable[[str], None]
    ) -> None:
        self._sample = sample
        self._environ = environ
        self._log = log
        self._typing = False
        """The last line printed is one that a person typed."""
        self._lines = PipelineLines()
        self._stage = ""
        self._asked: list[str] = []
        self._host: Host | None = None
        self.run_id = ""
        self.kills = 0
        self.approvals: list[str] = []
        self.denied: list[e.ToolRefused] = []
        self.checks: list[e.ChecksRan] = []

    async def play(self, journal: Journal) -> None:
        """Start the run and see it to its end. Raises `DemoFailed` when it ends badly, or not at all."""
        work = self._follow(journal), self._have_it_hosted()
        both = [asyncio.create_task(coroutine) for coroutine in work]
        try:
            await asyncio.wait(both, timeout=MAX_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            # Once each: a second time would cut off the wait for a process that is about to end.
            late = [task.cancel() for task in both]
            ends = await asyncio.gather(*both, return_exceptions=True)
        for failure in ends:
            if isinstance(failure, Exception):
                raise failure
        if any(late):
            raise DemoFailed(f"the run has not ended after {MAX_SECONDS:.0f} s")

    async def _have_it_hosted(self) -> None:
        """By one process after the other, until one comes to the run's end."""
        arguments: tuple[str, ...] = ("run", TASK, "--mode", "bugfix", "--wait")
        while arguments:
            typed = [
                short_id(argument) if argument == self.run_id else shlex.quote(argument)
                for argument in arguments
            ]
            self._show(f"podium {' '.join(typed)}")
            command = podium_command(self._sample.folder, *arguments)
            async with Host.started(command, self._environ) as self._host:
                await self._host.end()
            arguments = ("resume", self.run_id, "--wait") if self._host.was_killed else ()

    async def _follow(self, journal: Journal) -> None:
        async for event in journal.follow(EventQuery()):
            self.run_id = event.run_id
            for line in self._lines.lines(event):
                self._say(line)
            await self._act_on(event.body)
            if isinstance(event.body, e.RunSucceeded):
                return

    async def _act_on(self, body: e.EventBody) -> None:
        """React as the demo's people would."""
        match body:
            case StageBegan(stage=stage):
                self._stage = stage
            case e.ToolCompleted(tool=tool) if tool == KILLED_AFTER and self._stage == KILLED_IN:
                self._kill()
            case e.ApprovalRequested(approval_id=approval):
                self._asked.append(approval)
            case e.RunWaiting():
                await self._move_base()
                while self._asked:
                    await self._approve(self._asked.pop())
            case e.ToolRefused(effect="deny"):
                self.denied.append(body)
            case e.ChecksRan():
                self.checks.append(body)
            case e.RunFailed() | e.RunNeededHuman() | e.RunCancelled():
                raise DemoFailed(f"run {self.run_id}: {describe(body)}")

    async def _move_base(self) -> None:
        """While nobody is at work: where nothing confines an agent, it would be taken for the culprit."""
        if not self.approvals:
            self._show(f"git commit --all -m {shlex.quote(MEANWHILE)}", f"a colleague, on {BASE}")
            await asyncio.to_thread(self._sample.move_base)

    def _kill(self) -> None:
        if self.kills or self._host is None:
            return
        self.kills += 1
        self._show(f"kill -9 {self._host.pid}", "in the middle of the developer's turn")
        self._host.kill()

    async def _approve(self, approval: str) -> None:
        self._show(f"podium approve {short_id(approval)}", "a person, from another process")
        command = podium_command(self._sample.folder, "approve", approval)
        await asyncio.to_thread(done, command, self._sample.folder, self._environ)
        self.approvals.append(approval)

    def _show(self, typed: str, why: str = "") -> None:
        remark = f"    # {why}" if why else ""
        self._say(f"  $ {typed}{remark}", typed=True)

    def _say(self, line: str, *, typed: bool = False) -> None:
        """A line, with a gap between what people type and what comes of it."""
        self._log(line if typed is self._typing else f"\n{line}")
        self._typing = typed


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
        "a conflict resolved by the integration specialist": bool(
            counts["integration_specialist", "DONE"] and report.holds_base
        ),
        "a denied call": bool(report.denied),
        "a person's approval": bool(report.approved),
        "a process killed with kill -9": report.kills == 1,
        "green checks": bool(report.checks) and report.checks[-1].passed,
        "receipts that can be verified": bool(report.receipts) and report.verdict.sound,
        "a pull request file": Path(report.pull_request).is_file(),
    }
    return [what for what, is_so in happened.items() if not is_so]


def show(screen: Screen, report: DemoReport, *, keeps_sample: bool) -> None:
    """The end of the demo, in words."""
    screen.line(f"\n  $ git log --oneline --graph {report.branch}\n")
    for line in report.graph:
        screen.line(f"  {line}")
    screen.line()
    sound = "chain and seals are intact" if report.verdict.sound else "NOT SOUND"
    gone = (
        "" if keeps_sample else " (deleted with the sample; keep it with `podium demo --keep DIR`)"
    )
    screen.facts(
        [
            *((f"checks on {ran.commit[:7]}", _checks(ran)) for ran in report.checks),
            ("receipts", f"{report.verdict.receipts} verified: {sound}"),
            ("cost", usage_text(report.usage)),
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
    return f"{', '.join(met)}; delivered in {report.seconds} s."


app = command_app()


@app.command()
def demo(
    context: typer.Context,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="DIR", help="Create the sample project in DIR and keep it."),
    ] = None,
) -> None:
    """Watch Podium turn a bug report into a reviewed branch, offline and without keys.

    Scripted agents play every role of `podium run` in a sample project. On the way a report is
    rejected, an audit fails, a call is denied, an approval is requested, the process is killed and
    resumed, and main gets a new commit. Git, checks, receipts and the kill are real.

    \b
    Example:
      podium demo
      podium demo --keep sample && cd sample && podium runs
    """
    if shutil.which("git") is None:
        raise ToolMissing("the demo needs git; install it and run `podium demo` again")
    screen = Screen(json=context.obj.json)
    folder = _folder(keep)
    keeps_sample = keep is not None
    try:
        report = run_to_end(_perform(folder, screen, keeps_sample=keeps_sample))
        if lacks := missing(report):
            raise DemoFailed(f"the demo did not show {', '.join(lacks)}")
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
        raise BadInput(f"{str(keep)!r} already exists and is not empty; choose another folder")
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"{str(keep)!r} cannot be created: {error.strerror}; choose another folder"
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
    log(f"Created a sample project in {project}; scripted agents play every role.")
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
