"""`/api/v1/panes/{pair}/{side}`: a pane over a websocket."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Annotated, Literal

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from pydantic import Field, TypeAdapter, ValidationError

from podium.domain.errors import PodiumError
from podium.domain.messages import Side
from podium.domain.model import Json, Noun
from podium.domain.terminals import (
    MOST_KEYS,
    MOST_PASTED_CHARACTERS,
    KeysPressed,
    PaneFrame,
    PaneView,
    Terminal,
    TextPasted,
)
from podium.telling.untrusted import safe_text, shown_line
from podium.web.access.answering import is_still_known
from podium.web.access.entering import person_of
from podium.web.access.people import ConsoleRole, Person
from podium.web.access.speaking import GONE
from podium.web.panes.keys import keys_of
from podium.web.panes.lookout import RENEW_SECONDS, Lookout, lookout_of
from podium.web.panes.painting import repainted

router = APIRouter()

SEND_SECONDS = 30.0
"""Who takes nothing for so long is let go of: the page comes again by itself."""
_SIDES: dict[str, Side] = {"planner": "PLANNER", "executer": "EXECUTER"}
_NO_SUCH_PANE, _TOO_SLOW = 4404, 4408
_MOST_SAID_CHARACTERS = 8 * MOST_PASTED_CHARACTERS
"""JSON may write one character as six."""


class Typed(Noun):
    type: Literal["keys"]
    data: Annotated[str, Field(min_length=1, max_length=4096)]


class Pasted(Noun):
    type: Literal["paste"]
    text: Annotated[str, Field(min_length=1, max_length=MOST_PASTED_CHARACTERS)]


class Wanted(Noun):
    type: Literal["take", "give"]


_SAID: TypeAdapter[Typed | Pasted | Wanted] = TypeAdapter(
    Annotated[Typed | Pasted | Wanted, Field(discriminator="type")]
)


@router.websocket("/panes/{pair}/{side}")
async def pane(websocket: WebSocket, pair: str, side: str) -> None:
    """Paint a pane for somebody known, and take what they type while they have its keyboard."""
    person = person_of(websocket)
    if person is None:
        await websocket.close(GONE, "say who you are")
        return
    try:
        terminal = Terminal(pair=pair, side=_SIDES[side])
    except (KeyError, ValidationError):
        await websocket.close(_NO_SUCH_PANE, "there is no such pane")
        return
    await websocket.accept()
    await _Looker(websocket, lookout_of(websocket), terminal, person).stay()


class _Looker:
    """One connection. What waits for it is never more than the newest picture."""

    def __init__(
        self, websocket: WebSocket, lookout: Lookout, terminal: Terminal, person: Person
    ) -> None:
        self._websocket = websocket
        self._lookout = lookout
        self._terminal = terminal
        self._person = person
        self._shown: PaneFrame | None = None
        self._told: dict[str, Json] = {}
        self._mine = False

    async def stay(self) -> None:
        """Until either end goes."""
        self._lookout.came(self._terminal, self._person.name)
        tasks = [
            asyncio.create_task(each) for each in (self._paint(), self._listen(), self._renew())
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            self._lookout.left(self._terminal, self._person.name, held=self._mine)
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, WebSocketDisconnect):
                raise end

    async def _paint(self) -> None:
        try:
            async with aclosing(self._lookout.mirror.look(self._terminal)) as views:
                async for view in views:
                    await self._show(view)
        except PodiumError as error:
            await self._websocket.close(_NO_SUCH_PANE, shown_line(str(error), 100))
        except TimeoutError:
            await self._websocket.close(_TOO_SLOW, "too slow")

    async def _show(self, view: PaneView) -> None:
        hold = view.keyboard.hold
        self._mine = hold is not None and hold.who == self._person.name
        frame = view.frame
        if frame is not None and frame != self._shown:
            text = repainted(self._shown, frame)
            size: dict[str, Json] = {"columns": frame.columns, "rows": frame.rows}
            self._shown = frame
            await self._send({"type": "paint", **size, "text": text})
        state: dict[str, Json] = {
            "type": "state",
            "trouble": safe_text(view.trouble),
            "dead": frame is not None and frame.dead,
            "who": shown_line(hold.who) if hold else "",
            "mine": self._mine,
        }
        if state != self._told:
            self._told = state
            await self._send(state)

    async def _send(self, message: dict[str, Json]) -> None:
        async with asyncio.timeout(SEND_SECONDS):
            await self._websocket.send_json(message)

    async def _listen(self) -> None:
        while True:
            said = await self._said()
            try:
                if not self._person.may(ConsoleRole.OPERATOR):
                    raise _Refused(f"{self._person.name} is no operator and may only look on")
                await self._do(_SAID.validate_json(said[:_MOST_SAID_CHARACTERS]))
            except ValidationError:
                await self._send({"type": "refused", "words": "that cannot be typed"})
            except PodiumError as error:
                await self._send({"type": "refused", "words": safe_text(str(error))})

    async def _said(self) -> str:
        """The next message; empty, which means nothing, for bytes."""
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message["code"])
        return message.get("text") or ""

    async def _do(self, said: Typed | Pasted | Wanted) -> None:
        who, terminal = self._person.name, self._terminal
        match said:
            case Typed(data=data):
                keys = keys_of(data)
                for at in range(0, len(keys), MOST_KEYS):
                    part = keys[at : at + MOST_KEYS]
                    pressed = KeysPressed(terminal=terminal, keys=part, who=who)
                    await self._lookout.mirror.press(pressed)
            case Pasted(text=text):
                await self._lookout.mirror.paste(TextPasted(terminal=terminal, who=who, text=text))
            case Wanted(type="take"):
                await self._lookout.take(terminal, who)
            case Wanted():
                await self._lookout.give(terminal, who)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            if not is_still_known(self._websocket.scope):
                await self._websocket.close(GONE, "your token holds no longer")
                return
            if self._mine:
                await self._lookout.renew(self._terminal, self._person.name)


class _Refused(PodiumError):
    """Somebody known typed what they may not."""
