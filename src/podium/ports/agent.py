"""Agent port: prompt and contract in, validated reply out; and the terminals that agents run in."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from podium.core.keyboards import KeyboardHold
    from podium.core.terminals import (
        KeyboardRequest,
        KeysPressed,
        PairSize,
        PaneView,
        Terminal,
        TerminalPicture,
        TerminalState,
        TerminalUpdate,
        TextPasted,
    )
    from podium.core.turns import Reply, Turn


class Agent(Protocol):
    """A brain. It thinks; it never acts but through the tool door it was handed."""

    @property
    def name(self) -> str: ...

    async def ask(self, turn: Turn) -> Reply:
        """Put one turn to the agent.

        Raises `AgentLost` when it went away without an answer and `TimedOut` when the turn's
        seconds ran out. Cancelling ends its whole process tree before it returns.
        """
        ...


class TerminalPairs(Protocol):
    """Pairs of programs on terminals, by their names.

    All raise `BadInput` for a pair that nobody knows, and `NotPossibleNow` or `AgentLost` when a program has to be up
    for it and is not.
    """

    async def start(self, pair: str) -> list[TerminalState]:
        """Have both programs of the pair up and ready, planner first. Harmless when they are.

        Raises `ToolMissing` without tmux, `NeedsHuman` when a program asks something, `TimedOut` when one does not
        become ready.
        """
        ...

    async def states(self, pair: str) -> list[TerminalState]:
        """States of both programs now, planner first. Starts nothing; one that is not up is `gone`."""
        ...

    async def send_keys(self, pressed: KeysPressed) -> None:
        """Press keys, whatever the program is at. Raises `NotPossibleNow` unless the keyboard is as they say."""
        ...

    async def capture(self, terminal: Terminal, *, whole: bool) -> TerminalPicture:
        """Screen of the program; with `whole` everything that its pane still has."""
        ...

    async def resize(self, size: PairSize) -> None: ...

    async def resume(self, terminal: Terminal) -> TerminalState:
        """Start the program again in its conversation. Raises as `start` does."""
        ...

    def watch(self, pair: str) -> AsyncGenerator[TerminalUpdate, None]:
        """Yield the states of both programs now, then whatever changes, until the iterator is closed. Starts nothing.

        Whoever reads slowly misses what lay between, and never the last.
        """
        ...


class PaneMirror(Protocol):
    """Panes of pairs for people who look on, and now and then take the keyboard. Starts nothing.

    All raise `BadInput` for a pair that nobody knows.
    """

    def look(self, terminal: Terminal) -> AsyncGenerator[PaneView, None]:
        """Yield the pane as it is now, then whenever it changes, until the iterator is closed.

        Many may look at once at the price of one. Whoever reads slowly misses what lay between, and never the last.
        """
        ...

    async def press(self, pressed: KeysPressed) -> None:
        """Press keys for whoever has the keyboard. Raises `NotPossibleNow` when that is somebody else."""
        ...

    async def paste(self, pasted: TextPasted) -> None:
        """Put in words as one paste, in brackets where the program asked for them. Raises as `press` does."""
        ...

    async def take(self, request: KeyboardRequest) -> KeyboardHold:
        """Have the keyboard, or more time with it. On return Podium types nothing there; that survives a crash.

        Raises `NotPossibleNow` when another person has it, or the pair is not up.
        """
        ...

    async def give(self, terminal: Terminal, who: str = "") -> KeyboardHold | None:
        """Return it; without a name whoever's it is. None: nobody had it.

        Raises `NotPossibleNow` when another person has it.
        """
        ...
