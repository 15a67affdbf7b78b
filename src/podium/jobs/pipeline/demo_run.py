"""Script of the demo: a sample project, a run that is killed and resumed, a colleague who interferes."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.resources import as_file, files
from pathlib import Path
from shutil import copytree
from typing import IO

from podium.core import events as e
from podium.core.errors import PodiumError
from podium.core.ids import short_id
from podium.jobs.pipeline.event_text import PipelineLines
from podium.jobs.pipeline.events import StageBegan
from podium.ports import EventQuery, Journal
from podium.render.event import describe


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
                f"the run's process left with {_failure_line(code, self._stderr.read())}"
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
    raise DemoFailed(f"`{' '.join(command)}` left with {how}")


def _failure_line(code: int, stderr: bytes) -> str:
    lines = [line for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    return f"{code}: {lines[-1]}" if lines else f"{code} and said nothing"


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
