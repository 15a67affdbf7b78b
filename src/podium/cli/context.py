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

MAX_PROBLEM_LINES = 5
"""Maximum number of problems printed one by one."""


class CliContext:
    """Context of a command: options, screen, configuration and the open application."""

    def __init__(self, options: Options, *, lenient: bool = False) -> None:
        """`lenient` is for reading and stopping: invalid settings are reported and ignored."""
        self.options = options
        self.screen = Screen(json=options.json)
        self._lenient = lenient

    @cached_property
    def configuration(self) -> Configuration:
        configuration = self._loaded()
        if note := elsewhere_notice(configuration.folders, os.environ):
            self._warn(note)
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
            self._warn_invalid(invalid, "using the defaults")
            return configuration
        try:
            _check_policy(configuration)
        except ConfigInvalid as unusable:
            self._warn_invalid(unusable, "ignored, because this command does not use the policy")
        return configuration

    def _warn_invalid(self, invalid: ConfigInvalid, what_now: str) -> None:
        problem, *others = invalid.problems
        more = f" (and {len(others)} more)" if others else ""
        self.screen.stderr_line(f"podium: {problem.sentence(invalid.file)}{more}; {what_now}")

    @property
    def user(self) -> str:
        return self.configuration.settings.user

    @property
    def names_user(self) -> bool:
        """True when a variable or the user's own file sets a name; a name proves nothing."""
        return self.user != os_user_name()

    @property
    def has_state(self) -> bool:
        """True when anything was recorded here. Does not create a database."""
        return Podium(self.configuration, os.environ).has_record

    @property
    def has_folder(self) -> bool:
        """True when the project has a state folder, with or without a database."""
        return self.configuration.folders.state.is_dir()

    def must_have_state(self, kind: str, identifier: str) -> None:
        """Raise `UnknownId` where nothing was ever recorded, without making a database to look in."""
        if not self.has_state:
            raise UnknownId(kind, identifier)

    def run(self, work: Callable[[Podium], Awaitable[T]]) -> T:
        """Run `work` with an open Podium, and close it, also when interrupted."""

        async def inside() -> T:
            async with self._opened() as podium:
                return await work(podium)

        return run_to_end(inside(), self._interrupting)

    def _interrupting(self) -> None:
        """Print the ending note at once on interruption: closing may take a while."""
        if self.options.ending_note:
            self.screen.stderr_line(f"podium: {self.options.ending_note}")

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Podium]:
        """Open a Podium; on closing, report problems of its outputs."""
        podium = Podium(
            self.configuration, os.environ, notify=self._warn, labels=self.options.labels
        )
        try:
            yield podium
        finally:
            await podium.close()
            self._report_problems(podium.problems)

    def _warn(self, text: str) -> None:
        self.screen.stderr_line(f"podium: {text}")

    def _report_problems(self, problems: Sequence[str]) -> None:
        for problem in problems[:MAX_PROBLEM_LINES]:
            self.screen.stderr_line(f"podium: {problem}")
        if problems:
            more = len(problems) - MAX_PROBLEM_LINES
            others = f"{more} more; " if more > 0 else ""
            self.screen.stderr_line(f"podium: {others}no event is lost; check with `podium doctor`")


def _check_policy(configuration: Configuration) -> None:
    """Raise `ConfigInvalid` for an invalid policy, before anything is done."""
    if configuration.has_policy:
        # Late: quick commands do without the gate where there is nothing to check.
        from podium.config.policy_layers import build_gate

        build_gate(configuration)


def run_to_end(work: Coroutine[Any, Any, T], interrupting: Callable[[], None] = lambda: None) -> T:
    """Run on a fresh loop. Ctrl-C and SIGTERM are the same: everything is closed first.

    `interrupting` is called at the first of them; a second one leaves at once.
    """
    return asyncio.run(_run_until_signal(work, interrupting))


async def _run_until_signal(work: Coroutine[Any, Any, T], interrupting: Callable[[], None]) -> T:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    asked: list[signal.Signals] = []

    def end(by: signal.Signals) -> None:
        asked.append(by)
        for signum in _ENDING:
            loop.remove_signal_handler(signum)
            signal.signal(signum, exit_at_once)
        interrupting()
        task.cancel()

    for signum in _ENDING:
        loop.add_signal_handler(signum, end, signum)
    try:
        return await task
    except asyncio.CancelledError:
        if asked:
            raise Interrupted("stopped by a signal") from None
        raise
    finally:
        if not asked:
            for signum in _ENDING:
                loop.remove_signal_handler(signum)


def exit_at_once(*_: object) -> None:
    """Exit like a killed process, which loses nothing: the record is complete and no child survives."""
    with suppress(OSError, ValueError):
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h")  # the sign of life had hidden the cursor
            sys.stderr.flush()
    os._exit(130)


_ENDING = (signal.SIGINT, signal.SIGTERM)


RootToo = Annotated[
    Path | None,
    typer.Option("--root", metavar="DIR", help="Same as --project.", show_default=False),
]


def root_option(root: Path) -> str:
    """Return the option that makes a command use this root; empty where it is the default."""
    return f" --project {shlex.quote(from_here(root))}" if is_elsewhere(root) else ""


def take_root(context: typer.Context, root: Path | None) -> None:
    """Take `--root` as `--project`."""
    if root is not None:
        context.obj.project = root.expanduser()


@contextmanager
def naming_root(root: Path) -> Iterator[None]:
    """Turn `UnknownId` into an error that names the root it was searched in."""
    try:
        yield
    except UnknownId as unknown:
        listed = f"podium {unknown.kind}s --all{root_option(root)}"
        raise BadInput(
            f"no {unknown.kind} {unknown.identifier!r} in {str(root)!r}; list them with `{listed}`, or "
            "name another root with --project"
        ) from None


def is_elsewhere(root: Path) -> bool:
    """True when a command typed here would use another root."""
    try:
        return find_folders(os.environ).project != root
    except PodiumError:
        return True


def from_here(root: Path) -> str:
    """Return the root's path, relative to the current folder where possible."""
    here = Path.cwd()
    return str(root.relative_to(here)) if root.is_relative_to(here) else str(root)
