"""Podium's command line in processes that kill themselves at one place. Orders come as lines of JSON.

The series `after` and `before` count commits of the store, `after TYPE` and `before TYPE` events of one
type. `acting` counts what happens outside of it: a file put in its place, a command that has ended;
`put NAME` counts files of one name. `pairs` dies before the first commit whose event follows one that it
has not followed in any process so far. In the other series number 0 means that nobody dies. Each commit
adds a line to the order's log: the types of the events that it made durable.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from podium.cli.error_report import run
from podium.core.events import EventBody
from podium.core.processes import ProcessExit, ProcessSpec
from podium.sandbox.launcher import ProcessLauncher
from podium.store.sqlite_store import SqliteDriver
from podium.store.transaction import SqlTransaction

WARM = (
    "podium.agents.api",
    "podium.app",
    "podium.cli",
    "podium.config",
    "podium.engine",
    "podium.git",
    "podium.jobs.playbook",
    "podium.policy",
    "podium.store",
    "podium.tools",
)
"""Packages with all that is in them, but for what only other databases need."""
WARM_MODULES = ("anyio._backends._asyncio", "genai_prices.data", "pydantic_ai.models.google")
PROGRESS = "agent_progressed"


COMMITTING = threading.RLock()
"""Held from a commit until its line is in the log. The writer commits on a thread of its own, and a kill on another must not fall between the two."""


class Death:
    """Comes in one series, when so many of its moments are there."""

    def __init__(self, series: str, number: int, pairs: Path) -> None:
        self._series = series
        self._left = number
        self._pairs = pairs
        self._last = ""

    def may_come(self, series: str) -> None:
        if series == self._series:
            self._left -= 1
            if self._left == 0:
                with COMMITTING:
                    os.kill(os.getpid(), signal.SIGKILL)

    def may_come_between(self, types: list[str]) -> None:
        """Before these events are durable."""
        messages = [item for item in types if item != PROGRESS]
        if self._series != "pairs" or not messages:
            return
        pair, self._last = f"{self._last} {messages[0]}", messages[-1]
        known = self._pairs.read_text().splitlines() if self._pairs.exists() else []
        if pair not in known:
            self._pairs.write_text("\n".join([*known, pair]))
            os.kill(os.getpid(), signal.SIGKILL)


# What follows is patched: a kill has to fall between two statements, where no program has guests.


def watch_commits(death: Death, log: Path) -> None:
    append, commit, take_back = SqlTransaction.append, SqliteDriver.commit, SqliteDriver.take_back
    types: list[str] = []

    def appending(self: SqlTransaction, run_id: str, body: EventBody) -> int:
        types.append(body.type)
        return append(self, run_id, body)

    def committing(self: SqliteDriver) -> None:
        for series in ("before", *(f"before {item}" for item in types)):
            death.may_come(series)
        death.may_come_between(types)
        with COMMITTING:
            commit(self)
            with log.open("a") as file:
                file.write(f"{' '.join(types)}\n")
        messages = [*types]
        types.clear()
        for series in ("after", *(f"after {item}" for item in messages)):
            death.may_come(series)

    def taking_back(self: SqliteDriver) -> None:
        take_back(self)
        types.clear()

    SqlTransaction.append = appending  # type: ignore[method-assign]
    SqliteDriver.commit = committing  # type: ignore[method-assign]
    SqliteDriver.take_back = taking_back  # type: ignore[method-assign]


def watch_acts(death: Death) -> None:
    run_to_the_end = ProcessLauncher.run

    async def running(self: ProcessLauncher, spawn: ProcessSpec) -> ProcessExit:
        ended = await run_to_the_end(self, spawn)
        death.may_come("acting")
        return ended

    def then_death(act: Callable[..., None]) -> Callable[..., None]:
        def acting(*arguments: Any, **named: Any) -> None:
            act(*arguments, **named)
            death.may_come("acting")
            death.may_come(f"put {Path(arguments[1]).name}")

        return acting

    ProcessLauncher.run = running  # type: ignore[method-assign]
    os.rename = then_death(os.rename)
    os.replace = then_death(os.replace)


def perform(order: dict[str, Any]) -> int:
    """One command of Podium, in this process."""
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    for number, name in enumerate((os.devnull, order["out"], order["err"])):
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(handle, number)
    death = Death(order["series"], order["number"], Path(order["pairs"]))
    watch_commits(death, Path(order["log"]))
    watch_acts(death)
    return run(order["arguments"])


def perform_apart(order: dict[str, Any]) -> int:
    """The same in a process of its own, which has its imports behind it: they take seconds."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 70
    try:
        code = perform(order)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def warm_up() -> None:
    for name in WARM:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if "postgres" not in module.name and "distribut" not in module.name:
                importlib.import_module(module.name)
    for name in WARM_MODULES:
        importlib.import_module(name)


if __name__ == "__main__":
    warm_up()
    for line in sys.stdin:
        print(perform_apart(json.loads(line)), flush=True)
