"""The terminals that commands of `podium duet` speak to: of another Podium, of the project's daemon, or of this process."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from types import ModuleType

from podium.cli.duet_pairing import variables_of
from podium.cli.screen import Screen
from podium.domain.errors import ToolMissing
from podium.ports import Terminals
from podium.wiring import Podium


def found_terminals(
    podium: Podium, screen: Screen, at: str = "", papers: Path | None = None
) -> AbstractAsyncContextManager[Terminals]:
    """Those at `at`; else those of the daemon that serves this project, or its own. Why a daemon is not used is told."""
    from podium.wiring.duet_api import is_served, terminals_of_project

    variables = variables_of(None)

    def tell(words: str) -> None:
        screen.aside(f"podium: {words}")

    if at or is_served(podium):
        try:
            found: AbstractAsyncContextManager[Terminals]
            found = typed_api().found_terminals(podium, variables, at, papers, tell=tell)
            return found
        except ToolMissing as missing:
            if at:
                raise
            tell(f"going on without the daemon of `podium duet serve`: {missing}")
    return nullcontext(terminals_of_project(podium, variables))


def typed_api() -> ModuleType:
    """Late, and only for those who installed it."""
    try:
        from podium.rpc import finding
    except ModuleNotFoundError as error:
        raise ToolMissing(
            f"this needs the package {error.name!r}: `pip install 'podium[duet]'`"
        ) from None
    return finding
