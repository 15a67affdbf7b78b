"""A process that dies at a chosen step of a flow, without another word to the record."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Literal, NoReturn

import pytest

from podium.core.model import FrozenModel
from podium.engine import FlowDefinition
from podium.ports import Checkpoint, Flow, FlowContext, StepContext, StepFunction, Transaction
from tests.dispatched import ENGINE

When = Literal["acted", "recorded"]
"""When it dies: the step's work is done and nothing of it recorded, or it is recorded."""


class Death:
    """Waits at the step of this number, counted from 1, for whoever abandons the engine."""

    def __init__(self, step: int, when: When) -> None:
        if ENGINE == "dbos":
            pytest.skip("on many machines the dead are waited for by their lease, too long here")
        self.step, self.when = step, when
        self._begun: set[tuple[str, int]] = set()
        self.steps: list[str] = []
        """Names of the steps that were begun, each once: what a run is woken for it replays."""
        self.has_come = asyncio.Event()

    def is_due(self, step: tuple[str, int]) -> bool:
        if step in self._begun:
            return False
        self._begun.add(step)
        self.steps.append(step[0])
        return len(self.steps) == self.step

    async def come(self) -> NoReturn:
        self.has_come.set()
        await asyncio.Event().wait()
        raise AssertionError("nothing happens after death")


class _Lost(Exception):
    """The transaction that this is raised in is not committed."""


class _Unrecorded:
    """A step whose call is performed and never settled."""

    def __init__(self, inner: StepContext) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def checkpoint(self) -> Checkpoint:
        def lose(tx: Transaction, outcome: FrozenModel) -> None:
            raise _Lost

        return lose


class _Doomed:
    """A context in which death comes."""

    def __init__(self, inner: FlowContext, death: Death) -> None:
        self._inner, self._death = inner, death

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def step(self, name: str, function: StepFunction[Any], **more: Any) -> Any:
        death = self._death
        if not death.is_due((name, more.get("index", 0))):
            return await self._inner.step(name, function, **more)

        async def act(step: StepContext) -> Any:
            with suppress(_Lost):
                await function(_Unrecorded(step))
            return await death.come()

        if death.when == "acted":
            return await self._inner.step(name, act, **more)
        await self._inner.step(name, function, **more)
        return await death.come()


def doomed(flow: Flow, death: Death) -> Flow:
    """The flow as a process runs it that dies."""

    async def body(ctx: FlowContext, given: Any) -> Any:
        return await flow.body(_Doomed(ctx, death), given)

    return FlowDefinition(flow.name, body, input_type=flow.input_type)
