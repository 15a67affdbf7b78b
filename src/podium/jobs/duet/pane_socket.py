"""WebSocket `/api/v1/panes/{pair}/{side}`: a pane painted as it changes, typed into by the holder of its keyboard."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing, suppress
from typing import Annotated, Literal

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from pydantic import Field, TypeAdapter, ValidationError
from starlette.requests import HTTPConnection

from podium.core.errors import PodiumError
from podium.core.keyboards import KeyboardHold
from podium.core.model import FrozenModel, Json
from podium.core.terminals import (
    MAX_KEYS,
    MAX_PASTED_CHARACTERS,
    KeyboardRequest,
    KeysPressed,
    PaneFrame,
    PaneView,
    Terminal,
    TextPasted,
)
from podium.core.turns import Side
from podium.jobs.duet.keyboard import return_keyboard, take_keyboard
from podium.jobs.duet.project_terminals import mirror_of_project
from podium.ports import PaneMirror
from podium.render.text import escaped_line, safe_text
from podium.web.access.authentication import person_of
from podium.web.access.guards import GONE, is_still_valid
from podium.web.access.tokens import ConsoleRole, Person
from podium.web.context import WebContext, web_context

LEASE_SECONDS = 60.0
"""Longest time that a killed console keeps its people's keyboards."""
RENEW_SECONDS = 15.0
GRACE_SECONDS = 15.0
"""Time to reconnect before a keyboard is returned."""


class PaneBroadcaster:
    """Broadcasts panes to the viewers of one console, so that each pane is read once."""

    def __init__(self, context: WebContext) -> None:
        self.mirror: PaneMirror = mirror_of_project(context.podium, context.podium.environ)
        self._context = context
        self._here: Counter[tuple[Terminal, str]] = Counter()
        self._leaving: set[asyncio.Task[None]] = set()

    async def take(self, terminal: Terminal, who: str) -> KeyboardHold:
        """Take the keyboard while somebody of this name is connected. Raises `NotPossibleNow` when another has it."""
        request = KeyboardRequest(terminal=terminal, who=who, seconds=LEASE_SECONDS)
        return await take_keyboard(await self._context.store(), self.mirror, request)

    async def give(self, terminal: Terminal, who: str, why: str = "") -> None:
        """Return it. Raises `NotPossibleNow` when another has it, `BadInput` when nobody has."""
        await return_keyboard(await self._context.store(), self.mirror, terminal, who, why)

    async def renew(self, terminal: Terminal, who: str) -> None:
        """Keep it a while longer; harmless when it was lost meanwhile."""
        request = KeyboardRequest(terminal=terminal, who=who, seconds=LEASE_SECONDS)
        with suppress(PodiumError):  # the next view says who has it
            await self.mirror.take(request)

    def came(self, terminal: Terminal, who: str) -> None:
        self._here[terminal, who] += 1

    def left(self, terminal: Terminal, who: str, *, held: bool) -> None:
        """Count a closed connection. Its keyboard is returned unless the person reconnects."""
        self._here[terminal, who] -= 1
        if held and not self._here[terminal, who]:
            leaving = asyncio.create_task(self._return_later(terminal, who))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def _return_later(self, terminal: Terminal, who: str) -> None:
        await asyncio.sleep(GRACE_SECONDS)
        if not self._here[terminal, who]:
            with suppress(PodiumError):  # it was returned, or went with its pair
                await self.give(terminal, who, "closed the console")


def broadcaster_of(connection: HTTPConnection) -> PaneBroadcaster:
    """Return the console's broadcaster, made on first use."""
    state = connection.app.state
    if not hasattr(state, "pane_broadcaster"):
        state.pane_broadcaster = PaneBroadcaster(web_context(connection))
    broadcaster = state.pane_broadcaster
    assert isinstance(broadcaster, PaneBroadcaster)  # noqa: S101 — made above
    return broadcaster


_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_WIPE = "\x1b[0m\x1b[2K"


def repainted(before: PaneFrame | None, now: PaneFrame) -> str:
    """Return the escape sequences that turn one frame into the other, on a terminal of the same size.

    Without a previous frame, or after a resize, everything is painted. The lines hold only colours and characters,
    so that nothing else a program wrote reaches the browser's terminal.
    """
    same = before is not None and (before.columns, before.rows) == (now.columns, now.rows)
    previous_lines = before.lines if before is not None and same else ()
    parts = [_HIDE] if same else [_HIDE, "\x1b[0m\x1b[2J"]
    for row in range(now.rows):
        line = _line(now.lines, row)
        if not same or line != _line(previous_lines, row):
            # Wiped first: a line that fills its row leaves the cursor on its last character, which would go with the rest.
            parts.append(f"\x1b[{row + 1};1H{_WIPE}{line}")
    parts.append(f"\x1b[{now.cursor_row + 1};{now.cursor_column + 1}H")
    if now.cursor_shown and not now.dead:
        parts.append(_SHOW)
    return "".join(parts)


def _line(lines: tuple[str, ...], row: int) -> str:
    return lines[row] if row < len(lines) else ""


_SEQUENCE = re.compile(
    r"\x1b\[(?P<numbers>[0-?]*)(?P<final>[A-Za-z~])|\x1bO(?P<letter>[A-Z])|\x1b(?P<meta>[^\x00-\x1f\x7f])"
    r"|(?P<one>.)",
    re.DOTALL,
)
_FINALS = {
    "A": "Up", "B": "Down", "C": "Right", "D": "Left", "H": "Home", "F": "End",
    "P": "F1", "Q": "F2", "R": "F3", "S": "F4",
}  # fmt: skip
_NUMBERS = {
    "1": "Home", "2": "IC", "3": "DC", "4": "End", "5": "PPage", "6": "NPage", "11": "F1", "12": "F2", "13": "F3",
    "14": "F4", "15": "F5", "17": "F6", "18": "F7", "19": "F8", "20": "F9", "21": "F10", "23": "F11", "24": "F12",
}  # fmt: skip
_SINGLE = {
    "\r": "Enter",
    "\n": "Enter",
    "\t": "Tab",
    "\x1b": "Escape",
    "\x7f": "BSpace",
    " ": "Space",
}
_MODIFIERS = ((1, "S-"), (2, "M-"), (4, "C-"))
_CONTROLS = "@abcdefghijklmnopqrstuvwxyz[\\]^_"


def keys_of(data: str) -> tuple[str, ...]:
    """Parse keys in their order. Anything else is left out."""
    return tuple(_keys(data))


def _keys(data: str) -> Iterator[str]:
    for match in _SEQUENCE.finditer(data):
        if match["final"]:
            if key := _of_sequence(match["numbers"], match["final"]):
                yield key
        elif match["letter"]:
            if key := _FINALS.get(match["letter"], ""):
                yield key
        elif match["meta"]:
            yield f"M-{'Space' if match['meta'] == ' ' else match['meta']}"
        else:
            yield from _of_character(match["one"])


def _of_sequence(numbers: str, final: str) -> str:
    if final == "Z":
        return "BTab"
    first, _, modifier = numbers.partition(";")
    name = _NUMBERS.get(first) if final == "~" else _FINALS.get(final)
    if name is None:
        return ""
    held = int(modifier[:2]) - 1 if modifier[:2].isdecimal() else 0
    return "".join(prefix for bit, prefix in _MODIFIERS if held & bit) + name


def _of_character(one: str) -> Iterator[str]:
    if one in _SINGLE:
        yield _SINGLE[one]
    elif one < " ":
        yield f"C-{_CONTROLS[ord(one)]}"
    elif not "\x7f" <= one <= "\x9f" and not "\ud800" <= one <= "\udfff":
        yield one


router = APIRouter()

SEND_SECONDS = 30.0
"""Clients that take longer to receive are disconnected; the page reconnects by itself."""
_SIDES: dict[str, Side] = {"planner": "PLANNER", "executer": "EXECUTER"}
_NO_SUCH_PANE, _TOO_SLOW = 4404, 4408
_MAX_MESSAGE_CHARACTERS = 8 * MAX_PASTED_CHARACTERS
"""JSON may write one character as six."""


class TypedKeys(FrozenModel):
    type: Literal["keys"]
    data: Annotated[str, Field(min_length=1, max_length=4096)]


class PastedText(FrozenModel):
    type: Literal["paste"]
    text: Annotated[str, Field(min_length=1, max_length=MAX_PASTED_CHARACTERS)]


class PaneRequest(FrozenModel):
    type: Literal["take", "give"]


_COMMANDS: TypeAdapter[TypedKeys | PastedText | PaneRequest] = TypeAdapter(
    Annotated[TypedKeys | PastedText | PaneRequest, Field(discriminator="type")]
)


@router.websocket("/panes/{pair}/{side}")
async def pane(websocket: WebSocket, pair: str, side: str) -> None:
    """Paint a pane for a signed-in person, and pass on keys while they hold its keyboard."""
    person = person_of(websocket)
    if person is None:
        await websocket.close(GONE, "not signed in")
        return
    try:
        terminal = Terminal(pair=pair, side=_SIDES[side])
    except (KeyError, ValidationError):
        await websocket.close(_NO_SUCH_PANE, "there is no such pane")
        return
    await websocket.accept()
    await _PaneViewer(websocket, broadcaster_of(websocket), terminal, person).stay()


class _PaneViewer:
    """One connection. At most the newest frame is queued for it."""

    def __init__(
        self, websocket: WebSocket, broadcaster: PaneBroadcaster, terminal: Terminal, person: Person
    ) -> None:
        self._websocket = websocket
        self._broadcaster = broadcaster
        self._terminal = terminal
        self._person = person
        self._painted: PaneFrame | None = None
        self._sent_state: dict[str, Json] = {}
        self._mine = False

    async def stay(self) -> None:
        """Serve the connection until either end closes it."""
        self._broadcaster.came(self._terminal, self._person.name)
        tasks = [
            asyncio.create_task(coroutine)
            for coroutine in (self._paint(), self._listen(), self._renew())
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            self._broadcaster.left(self._terminal, self._person.name, held=self._mine)
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, WebSocketDisconnect):
                raise end

    async def _paint(self) -> None:
        try:
            async with aclosing(self._broadcaster.mirror.look(self._terminal)) as views:
                async for view in views:
                    await self._show(view)
        except PodiumError as error:
            await self._websocket.close(_NO_SUCH_PANE, escaped_line(str(error), 100))
        except TimeoutError:
            await self._websocket.close(_TOO_SLOW, "too slow")

    async def _show(self, view: PaneView) -> None:
        hold = view.keyboard.hold
        self._mine = hold is not None and hold.who == self._person.name
        frame = view.frame
        if frame is not None and frame != self._painted:
            text = repainted(self._painted, frame)
            size: dict[str, Json] = {"columns": frame.columns, "rows": frame.rows}
            self._painted = frame
            await self._send({"type": "paint", **size, "text": text})
        state: dict[str, Json] = {
            "type": "state",
            "trouble": safe_text(view.trouble),
            "dead": frame is not None and frame.dead,
            "who": escaped_line(hold.who) if hold else "",
            "mine": self._mine,
        }
        if state != self._sent_state:
            self._sent_state = state
            await self._send(state)

    async def _send(self, message: dict[str, Json]) -> None:
        async with asyncio.timeout(SEND_SECONDS):
            await self._websocket.send_json(message)

    async def _listen(self) -> None:
        while True:
            text = await self._receive_text()
            try:
                if not self._person.may(ConsoleRole.OPERATOR):
                    raise _InputRefused(
                        f"{self._person.name} is not an operator and may only watch"
                    )
                await self._do(_COMMANDS.validate_json(text[:_MAX_MESSAGE_CHARACTERS]))
            except ValidationError:
                await self._send({"type": "refused", "words": "these keys cannot be typed"})
            except PodiumError as error:
                await self._send({"type": "refused", "words": safe_text(str(error))})

    async def _receive_text(self) -> str:
        """Receive the next text message; empty (ignored) for bytes."""
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message["code"])
        return message.get("text") or ""

    async def _do(self, command: TypedKeys | PastedText | PaneRequest) -> None:
        who, terminal = self._person.name, self._terminal
        match command:
            case TypedKeys(data=data):
                keys = keys_of(data)
                for at in range(0, len(keys), MAX_KEYS):
                    part = keys[at : at + MAX_KEYS]
                    pressed = KeysPressed(terminal=terminal, keys=part, who=who)
                    await self._broadcaster.mirror.press(pressed)
            case PastedText(text=text):
                await self._broadcaster.mirror.paste(
                    TextPasted(terminal=terminal, who=who, text=text)
                )
            case PaneRequest(type="take"):
                await self._broadcaster.take(terminal, who)
            case PaneRequest():
                await self._broadcaster.give(terminal, who)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            if not is_still_valid(self._websocket.scope):
                await self._websocket.close(GONE, "your token is no longer valid")
                return
            if self._mine:
                await self._broadcaster.renew(self._terminal, self._person.name)


class _InputRefused(PodiumError):
    """A signed-in person is not allowed to type."""
