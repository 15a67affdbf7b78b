"""The demo's story: a sample project, a run that is killed, and a person who answers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from shutil import copytree
from textwrap import wrap

from podium.cli.event_words import about, describe
from podium.cli.screen import Screen
from podium.domain.errors import PodiumError
from podium.domain.events import (
    AgentReplied,
    Event,
    RunFailed,
    RunNeededHuman,
    RunStarted,
    RunSucceeded,
    StepCompleted,
    ToolCompleted,
    ToolFailed,
    ToolRefused,
    ToolRequested,
)
from podium.domain.ids import short_id
from podium.ports import EventQuery, Journal

KILLED_AFTER = "write_file"
"""The run's process is killed when its first call of this tool was performed."""


class DemoFailed(PodiumError):
    """The demo did not go as it must. Its folder is kept to look at."""


@dataclass
class Story:
    """One telling: a child process works on the run, this one watches the journal and acts."""

    folder: Path
    environ: Mapping[str, str]
    screen: Screen
    run_id: str = ""
    kills: int = 0
    approvals: list[str] = field(default_factory=list)
    _calls: dict[str, str] = field(default_factory=dict)
    """What was asked for under each call's key."""
    _worker: asyncio.subprocess.Process | None = None

    async def tell(self, journal: Journal) -> None:
        """Start the run and see it to its end. Raises `DemoFailed` when it ends badly."""
        await self._work("rehearse", "--wait")
        try:
            async for event in journal.follow(EventQuery()):
                self.run_id = event.run_id
                self._show(event)
                if await self._act_on(event):
                    return
        finally:
            await self._stop_worker()

    async def _act_on(self, event: Event) -> bool:
        """React as the demo's person would. True when the run is over."""
        match event.body:
            case ToolCompleted(tool=tool) if tool == KILLED_AFTER and self.kills == 0:
                await self._kill_and_resume()
            case ToolRefused(effect="ask", approval_id=str(approval)):
                await self._approve(approval)
            case RunFailed() | RunNeededHuman():
                raise DemoFailed(f"run {event.run_id}: {describe(event.body)}")
            case RunSucceeded():
                await self._let_worker_end()
                return True
        return False

    async def _kill_and_resume(self) -> None:
        assert self._worker is not None  # noqa: S101 - started before the first event
        self.screen.line(
            f"\n  $ kill -9 {self._worker.pid}                # in the middle of a step"
        )
        os.kill(self._worker.pid, signal.SIGKILL)
        await self._worker.wait()
        self.kills += 1
        self.screen.line(f"  $ podium resume {short_id(self.run_id)} --wait\n")
        await self._work("resume", self.run_id, "--wait")

    async def _approve(self, approval: str) -> None:
        self.screen.line(f"\n  $ podium approve {short_id(approval)}      # from another process\n")
        await asyncio.to_thread(self._podium, "approve", approval)
        self.approvals.append(approval)

    async def _work(self, *arguments: str) -> None:
        self._worker = await asyncio.create_subprocess_exec(
            *self._command(*arguments),
            env=dict(self.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    async def _let_worker_end(self) -> None:
        if self._worker is not None and await self._worker.wait() != 0:
            raise DemoFailed(f"the run's process left with {self._worker.returncode}, not 0")

    async def _stop_worker(self) -> None:
        if self._worker is not None and self._worker.returncode is None:
            self._worker.terminate()
            await self._worker.wait()

    def _podium(self, *arguments: str) -> None:
        subprocess.run(
            self._command(*arguments), env=dict(self.environ), check=True, capture_output=True
        )

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "podium", *arguments, "--project", str(self.folder)]

    def _show(self, event: Event) -> None:
        match event.body:
            case RunStarted(fence=fence):
                self._say("run", f"process {fence} takes {short_id(event.run_id)}")
            case ToolRequested(call=call, tool=tool, arguments=arguments):
                self._calls[call] = f"{tool} {about(arguments)}".rstrip()
            case ToolCompleted(call=call, receipt=receipt):
                self._say("performed", f"{self._calls.get(call, call)} (receipt {receipt})")
            case ToolFailed(call=call, error=error, receipt=receipt):
                self._say("failed", f"{self._calls.get(call, call)}: {error} (receipt {receipt})")
            case ToolRefused(effect="deny", tool=tool, arguments=arguments, reason=reason):
                self._say("denied", f"{tool} {about(arguments)}: {reason}")
            case ToolRefused(effect="ask", tool=tool, arguments=arguments, reason=reason):
                self._say("asks", f"{tool} {about(arguments)}: {reason}")
            case AgentReplied(role=role, text=text) if text:
                self._say("says", f"{role}: {text}")
            case StepCompleted(step=step, seconds=seconds):
                self._say("step", f"{step} done in {seconds:.1f} s\n")
            case RunSucceeded():
                self._say("run", "done")

    def _say(self, mark: str, words: str) -> None:
        for line in wrap(words, 96, initial_indent=f"  {mark:<10}", subsequent_indent=" " * 12):
            self.screen.line(line)
        if words.endswith("\n"):
            self.screen.line()


def make_sample(folder: Path, environ: Mapping[str, str]) -> None:
    """Write the sample project and make it a git repository on a branch of its own."""
    with as_file(files("podium.cli") / "sample") as sample:
        copytree(sample, folder, dirs_exist_ok=True)
    (folder / ".gitignore").write_text(".podium/\n__pycache__/\n")
    identity = ("-c", "user.name=Podium demo", "-c", "user.email=demo@podium.invalid")
    for command in (
        ("init", "--quiet", "--initial-branch=polite"),
        (*identity, "add", "--all"),
        (*identity, "commit", "--quiet", "--message", "A sample project"),
        ("config", "user.name", "Podium demo"),
        ("config", "user.email", "demo@podium.invalid"),
    ):
        subprocess.run(
            ["git", *command], cwd=folder, env=dict(environ), check=True, capture_output=True
        )
