"""The demo's story: a run that is killed, a person who answers, and a colleague who gets in the way."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Mapping

from podium.cli.demo_host import DemoFailed, Host, done, podium_command
from podium.cli.demo_sample import BASE, MEANWHILE, TASK, Sample
from podium.cli.pipeline_words import PipelineWords
from podium.domain import events as e
from podium.domain.ids import short_id
from podium.ports import EventQuery, Journal
from podium.telling.event_words import describe

MOST_SECONDS = 300.0
KILLED_IN, KILLED_AFTER = "develop", "write_file"
"""The process is killed when an agent's first call of this tool was performed in this stage."""


class Story:
    """One telling: other processes host the run, this one watches the journal and acts."""

    def __init__(
        self, sample: Sample, environ: Mapping[str, str], tell: Callable[[str], None]
    ) -> None:
        self._sample = sample
        self._environ = environ
        self._tell = tell
        self._typing = False
        """What was told last is something that a person typed."""
        self._words = PipelineWords()
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
        both = [asyncio.create_task(each) for each in work]
        try:
            await asyncio.wait(both, timeout=MOST_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            # Once each: a second time would cut off the wait for a process that is about to end.
            late = [each.cancel() for each in both]
            ends = await asyncio.gather(*both, return_exceptions=True)
        for failure in ends:
            if isinstance(failure, Exception):
                raise failure
        if any(late):
            raise DemoFailed(f"the run has not ended after {MOST_SECONDS:.0f} s")

    async def _have_it_hosted(self) -> None:
        """By one process after the other, until one comes to the run's end."""
        words: tuple[str, ...] = ("run", TASK, "--mode", "bugfix", "--wait")
        while words:
            typed = [short_id(word) if word == self.run_id else shlex.quote(word) for word in words]
            self._show(f"podium {' '.join(typed)}")
            command = podium_command(self._sample.folder, *words)
            async with Host.started(command, self._environ) as self._host:
                await self._host.end()
            words = ("resume", self.run_id, "--wait") if self._host.was_killed else ()

    async def _follow(self, journal: Journal) -> None:
        async for event in journal.follow(EventQuery()):
            self.run_id = event.run_id
            for line in self._words.lines(event):
                self._say(line)
            await self._act_on(event.body)
            if isinstance(event.body, e.RunSucceeded):
                return

    async def _act_on(self, body: e.EventBody) -> None:
        """React as the demo's people would."""
        match body:
            case e.StageBegan(stage=stage):
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
        self._tell(line if typed is self._typing else f"\n{line}")
        self._typing = typed
