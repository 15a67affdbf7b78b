"""A CLI's own tools: edits and searches as a person can judge them, and a CLI that has none but Podium's toolbox (MCP only).

An MCP-only CLI works in an empty folder of its private home instead of the workspace. What lies in a
workspace could otherwise configure it, and what a prompt names there it would read by itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Protocol

from podium.agents.deps import AgentDeps
from podium.agents.headless.home import Home
from podium.agents.outcome import finished
from podium.core.decisions import Effect, HookAnswer
from podium.core.errors import NotPossibleNow
from podium.core.events import ProgressKind
from podium.core.model import Json
from podium.core.turns import Reply, Turn
from podium.ports import HookDoor

MAX_EDIT = 500_000


def whole_edit(text: str) -> str:
    """The edit as it is. A longer one is cut and told apart from others by the digest of its whole."""
    if len(text) <= MAX_EDIT:
        return text
    # Agents may write halves of surrogate pairs, which are no UTF-8.
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{text[:MAX_EDIT]}\nsha256:{digest}"


def change_text(old: Json, new: Json, more: Mapping[str, Json] | None = None) -> str:
    """Return removed lines, added lines, and what else has an effect. Different changes never read the same."""
    return whole_edit("\n".join([*_lines("-", old), *_lines("+", new), *_lines("=", more or None)]))


def _lines(sign: str, value: Json) -> Iterator[str]:
    if value is None:
        return
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    # By line feeds alone: with other ends of lines it is another change.
    yield from (f"{sign}{line}" for line in text.split("\n"))


_GLOB = re.compile(r"[*?\[{]")


def searched_folder(path: Json, pattern: Json) -> Json:
    """The folder to be judged: a pattern may lead out of the one that was named."""
    folder = path or "."
    if not isinstance(folder, str) or not isinstance(pattern, str):
        return folder
    match = _GLOB.search(pattern)
    plain = pattern[: match.start()] if match else pattern
    behind = pattern[match.start() :] if match else ""
    if ".." in PurePosixPath(behind).parts:
        return "/"
    base = plain.rpartition("/")[0]
    if pattern.startswith("/"):
        return base or "/"
    return str(PurePosixPath(folder, base)) if ".." in PurePosixPath(plain).parts else folder


SERVER = "podium"
"""The CLI's name for the server. Without an underscore: Gemini CLI's rules would take it for another."""
CALL_SECONDS = 2 * 3600
"""Seconds a CLI waits for one call: longer than the door, which gives up after an hour."""
START_SECONDS = 60
EMPTY_FOLDER = "desk"

ONLY_PODIUM = (
    "this agent has no tools of its own; use those of the MCP server podium, which do the same"
)


class OwnTools(Protocol):
    """The part of a turn's door that a CLI's use of its own tools is put before."""

    def expect(self, use: str) -> None: ...

    def expect_no_more(self, use: str) -> None: ...

    async def request(
        self, tool: str, arguments: Mapping[str, Json], *, ref: str = ""
    ) -> HookAnswer: ...

    async def settle(self, ref: str, *, ok: bool, result: Json = None, error: str = "") -> None: ...

    def report_progress(self, kind: ProgressKind, text: str) -> None: ...


class NoOwnTools:
    """Stands before a turn's door: nothing of the CLI's own is permitted, and the wish is recorded.

    Uses of the toolbox pass: they are judged where Podium performs them, and once is enough.
    """

    def __init__(self, door: HookDoor, toolbox_prefix: str) -> None:
        """`toolbox_prefix` is what the CLI puts before the names of Podium's tools."""
        self._door = door
        self._toolbox_prefix = toolbox_prefix

    def expect(self, use: str) -> None:
        """Not passed on: a hook that asks for a use nobody expects is told no."""

    def expect_no_more(self, use: str) -> None:
        pass

    async def request(
        self, tool: str, arguments: Mapping[str, Json], *, ref: str = ""
    ) -> HookAnswer:
        if tool.startswith(self._toolbox_prefix):
            return HookAnswer(decision=Effect.ALLOW)
        # Under a name that no registered tool has, whatever the CLI calls its own.
        await self._door.request(f"own {tool}", arguments, ref=ref)
        return HookAnswer(decision=Effect.DENY, say=ONLY_PODIUM)

    async def settle(self, ref: str, *, ok: bool, result: Json = None, error: str = "") -> None:
        """Nothing is open here: Podium settles what it performs."""

    def report_progress(self, kind: ProgressKind, text: str) -> None:
        self._door.report_progress(kind, text)


def without_own_tools(turn: Turn) -> Turn:
    """The turn as its door is opened for it: no role gives hands to an agent that has none."""
    return turn.model_copy(update={"own_tools": ()})


def in_empty_folder(turn: Turn, home: Home) -> Turn:
    """The turn as the CLI sees it: in an empty folder that is made anew for each."""
    folder = home.path / EMPTY_FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    return turn.model_copy(update={"workspace": str(folder)})


def toolbox_server(agent: str, deps: AgentDeps, door: HookDoor) -> dict[str, Json]:
    """Return the command of the CLI's only server, in the form that all of them take."""
    if not deps.toolbox_command:
        raise NotPossibleNow(
            f"agent {agent!r} is set to `hands: false`, and no toolbox is configured for it"
        )
    program, *arguments = deps.toolbox_command
    return {"command": program, "args": list(arguments), "env": dict(door.env)}


def may_end_silently(door: HookDoor) -> tuple[str, ...]:
    """Return the reasons why the CLI may end without an answer: approvals it waits for, its `finish`, or a limit of the turn."""
    done = ("finished",) if door.finished_with is not None else ()
    return (*door.waiting_approvals, *done, *((door.stopped.kind,) if door.stopped else ()))


def with_door_outcome(reply: Reply, turn: Turn, door: HookDoor) -> Reply:
    """The reply, with what the door knows of how the turn ended."""
    result = finished(reply, turn, door.finished_with)
    return result.model_copy(update={"stopped": door.stopped})
