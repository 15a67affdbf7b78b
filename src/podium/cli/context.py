"""Context of one invocation: global options, the project or root it is about, and the open application."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from podium.app.app import Podium
from podium.cli.app import Options
from podium.cli.screen import Screen
from podium.config.configuration import Configuration, load_configuration, load_readable
from podium.config.folders import elsewhere_notice, find_folders
from podium.config.os_user import os_user_name
from podium.core.errors import BadInput, ConfigInvalid, Interrupted, PodiumError, UnknownId

T = TypeVar("T")

FAULTS_TOLD = 5
"""How many faults beside the record are told one by one."""


class Door:
    """What a command works with."""

    def __init__(self, options: Options, *, lenient: bool = False) -> None:
        """`lenient` is for looking and stopping: broken settings are told and do not count."""
        self.options = options
        self.screen = Screen(json=options.json)
        self._lenient = lenient

    @cached_property
    def configuration(self) -> Configuration:
        configuration = self._loaded()
        if words := elsewhere_notice(configuration.folders, os.environ):
            self._tell_beside(words)
        return configuration

    def _loaded(self) -> Configuration:
        if not self._lenient:
            flags = {"mode": self.options.mode} if self.options.mode else None
            configuration = load_configuration(
                os.environ, project=self.options.project, flags=flags
            )
            _check_policy(configuration)
            return configuration
        configuration, invalid = load_readable(os.environ, project=self.options.project)
        if invalid is not None:
            self._tell_fault(invalid, "going on with the defaults")
            return configuration
        try:
            _check_policy(configuration)
        except ConfigInvalid as unusable:
            self._tell_fault(unusable, "going on, for nothing is judged here")
        return configuration

    def _tell_fault(self, invalid: ConfigInvalid, what_now: str) -> None:
        fault, *others = invalid.problems
        more = f" (and {len(others)} more)" if others else ""
        self.screen.aside(f"podium: {fault.sentence(invalid.file)}{more}; {what_now}")

    @property
    def user(self) -> str:
        return self.configuration.settings.user

    @property
    def names_user(self) -> bool:
        """Whether a variable or the user's own file says a name; what it says proves nothing."""
        return self.user != os_user_name()

    @property
    def has_state(self) -> bool:
        """Whether anything was ever recorded here. Looking must not make a database."""
        return Podium(self.configuration, os.environ).has_record

    @property
    def has_folder(self) -> bool:
        """Whether the project has a state folder, with or without a database in it."""
        return self.configuration.folders.state.is_dir()

    def must_have_state(self, kind: str, identifier: str) -> None:
        """Raise `UnknownId` where nothing was ever recorded, without making a database to look in."""
        if not self.has_state:
            raise UnknownId(kind, identifier)

    def run(self, work: Callable[[Podium], Awaitable[T]]) -> T:
        """Do something with an open Podium, and close it, also when interrupted."""

        async def inside() -> T:
            async with self._opened() as podium:
                return await work(podium)

        return run_to_end(inside(), self._interrupting)

    def _interrupting(self) -> None:
        """What is said at once when somebody interrupts: closing may take a while."""
        if self.options.ending_words:
            self.screen.aside(f"podium: {self.options.ending_words}")

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Podium]:
        """An open Podium. What it could not keep up is known, and told, once it is closed."""
        podium = Podium(
            self.configuration, os.environ, notify=self._tell_beside, labels=self.options.labels
        )
        try:
            yield podium
        finally:
            await podium.close()
            self._tell(podium.problems)

    def _tell_beside(self, text: str) -> None:
        self.screen.aside(f"podium: {text}")

    def _tell(self, faults: Sequence[str]) -> None:
        for fault in faults[:FAULTS_TOLD]:
            self.screen.aside(f"podium: {fault}")
        if faults:
            more = len(faults) - FAULTS_TOLD
            others = f"{more} more like it; " if more > 0 else ""
            self.screen.aside(f"podium: {others}no event is lost; `podium doctor` looks again")


def _check_policy(configuration: Configuration) -> None:
    """Raise `ConfigInvalid` for a policy that no gate can be made of, before anything is done."""
    if configuration.has_policy:
        # Late: quick commands do without the gate where there is nothing to check.
        from podium.config.policy_layers import build_gate

        build_gate(configuration)


def run_to_end(work: Coroutine[Any, Any, T], interrupting: Callable[[], None] = lambda: None) -> T:
    """Run on a fresh loop. Ctrl-C and a polite request to end are the same: everything is closed first.

    `interrupting` is called at the first of them; a second one leaves at once.
    """
    return asyncio.run(_ending_politely(work, interrupting))


async def _ending_politely(work: Coroutine[Any, Any, T], interrupting: Callable[[], None]) -> T:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    asked: list[signal.Signals] = []

    def end(by: signal.Signals) -> None:
        asked.append(by)
        for each in _ENDING:
            loop.remove_signal_handler(each)
            signal.signal(each, leave_at_once)
        interrupting()
        task.cancel()

    for each in _ENDING:
        loop.add_signal_handler(each, end, each)
    try:
        return await task
    except asyncio.CancelledError:
        if asked:
            raise Interrupted("asked to end") from None
        raise
    finally:
        if not asked:
            for each in _ENDING:
                loop.remove_signal_handler(each)


def leave_at_once(*_: object) -> None:
    """Leave as a killed process does, which loses nothing: the record is whole and no child survives."""
    with suppress(OSError, ValueError):
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h")  # the sign of life had hidden the cursor
            sys.stderr.flush()
    os._exit(130)


_ENDING = (signal.SIGINT, signal.SIGTERM)


RootToo = Annotated[
    Path | None,
    typer.Option("--root", metavar="DIR", help="Another word for --project.", show_default=False),
]


def root_words(root: Path) -> str:
    """What a command needs behind it to mean this root; empty where it does so anyway."""
    return f" --project {shlex.quote(from_here(root))}" if is_elsewhere(root) else ""


def take_root(context: typer.Context, root: Path | None) -> None:
    """Let `--root` say what `--project` says."""
    if root is not None:
        context.obj.project = root.expanduser()


@contextmanager
def naming_root(root: Path) -> Iterator[None]:
    """Whoever named what is not there is told where it was looked for."""
    try:
        yield
    except UnknownId as unknown:
        listed = f"podium {unknown.kind}s --all{root_words(root)}"
        raise BadInput(
            f"no {unknown.kind} {unknown.identifier!r} in {str(root)!r}; `{listed}` lists what there is, and "
            "--project names another root"
        ) from None


def is_elsewhere(root: Path) -> bool:
    """Whether a command said here would mean another root."""
    try:
        return find_folders(os.environ).project != root
    except PodiumError:
        return True


def from_here(root: Path) -> str:
    """The root's path as it is typed here."""
    here = Path.cwd()
    return str(root.relative_to(here)) if root.is_relative_to(here) else str(root)
