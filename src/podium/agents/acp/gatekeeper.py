"""An ACP agent's questions to its host, put before the turn's door."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from podium.agents.acp.outcomes import Ended
from podium.agents.acp.wishes import Wish, title_of
from podium.agents.rpc import METHOD_NOT_FOUND, Params, RpcError
from podium.domain.gating import DoorAnswer
from podium.domain.model import Json
from podium.domain.telling import told_refusal
from podium.ports import TurnDoor

REFUSED = -32001
NOTHING_CHOSEN = {"outcome": "cancelled"}
NO_SINGLE_YES = "it may be done, but the agent offers no way to permit it once"
_MOST_UNTOLD = 50

ReadWishes = Callable[[Mapping[str, Json]], list[Wish]]
"""Reads what a tool call wants."""


class Gatekeeper:
    """Answers for one turn. Only single permissions are given, never lasting ones."""

    def __init__(self, door: TurnDoor, read_wishes: ReadWishes, writes_in: str = "") -> None:
        """`writes_in`: a folder in which the agent is known to hand every write over to us.

        What it asks for there is judged when it comes to be written, once and with its content.
        """
        self._writes_in = os.path.realpath(writes_in) if writes_in else ""
        self._door = door
        self._read_wishes = read_wishes
        self._permitted: dict[str, list[tuple[str, str]]] = {}
        """By tool call: names of the permits, each with the tool it is for."""
        self.refused: set[str] = set()
        """Tool calls that got a no."""
        self.written: set[str] = set()
        """Files that Podium wrote for the agent."""
        self.untold: list[str] = []
        """Why something was refused: the protocol has no place for it."""

    def permitted(self, call: str) -> bool:
        return call in self._permitted

    async def answer(self, method: str, params: Params) -> Json:
        if method == "session/request_permission":
            return {"outcome": await self._decide(params)}
        if method == "fs/write_text_file":
            return await self._write(params)
        raise RpcError(METHOD_NOT_FOUND, f"{method!r} is not offered here")

    async def settle(self, call: str, ended: Ended) -> bool:
        """Record how a permitted call ended. False when that cannot be told of a part of it.

        That part stays open and is abandoned with the turn.
        """
        known = True
        for ref, tool in self._permitted.get(call, ()):
            outcome = ended.of_a_command() if tool == "run_command" else ended.as_told()
            if outcome is None:
                known = False
                continue
            await self._door.settle(ref, ok=outcome.ok, result=outcome.result, error=outcome.error)
        return known

    async def _decide(self, params: Params) -> Json:
        call = params.get("toolCall")
        found = call if isinstance(call, dict) else {}
        number = found.get("toolCallId")
        if not isinstance(number, str) or not number:
            return _chosen(params, "reject_once")
        refusal = await self._judge(number, found)
        yes = _chosen(params, "allow_once")
        if refusal is None and yes != NOTHING_CHOSEN:
            return yes
        self.refused.add(number)
        if refusal is None:
            self._keep_untold(title_of(found), await self._take_back(number))
        elif refusal.approval_id is None:
            # What waits for a person is told with what the person says.
            self._keep_untold(title_of(found), refusal.say)
        return _chosen(params, "reject_once")

    async def _take_back(self, number: str) -> str:
        """Settle a permit that could not be handed over. Gives the words for it."""
        for ref, _ in self._permitted.pop(number, ()):
            await self._door.settle(ref, ok=False, error=NO_SINGLE_YES)
        return NO_SINGLE_YES

    async def _judge(self, number: str, call: Mapping[str, Json]) -> DoorAnswer | None:
        """The first no to any of what the call wants; None when all of it may be done."""
        permits: list[tuple[str, str]] = []
        for place, wish in enumerate(self._read_wishes(call)):
            if self._comes_to_us(wish):
                continue
            ref = f"{number}#{place}"
            answer = await self._door.request(wish.tool, wish.arguments, ref=ref)
            if not answer.allowed:
                for granted, _ in permits:
                    await self._door.settle(granted, ok=False, error="another part was refused")
                return answer
            permits.append((ref, wish.tool))
        self._permitted[number] = permits
        return None

    def _comes_to_us(self, wish: Wish) -> bool:
        path = wish.arguments.get("path")
        if not self._writes_in or wish.tool != "edit_file" or not isinstance(path, str) or not path:
            return False
        real = os.path.realpath(os.path.join(self._writes_in, path))  # noqa: PTH118 — may be absolute
        return real.startswith(self._writes_in + os.sep)

    async def _write(self, params: Params) -> Json:
        """Write a file in the agent's place, so that it is judged and receipted as our own act."""
        path, content = params.get("path"), params.get("content")
        answer = await self._door.perform("write_file", {"path": path, "content": content})
        ended = answer.outcome
        if answer.allowed and ended is not None and ended.ok:
            self.written.add(str(path))
            return {}
        if answer.allowed:
            words = ended.error if ended is not None else "it was not done"
            raise RpcError(REFUSED, f"{path!r} was not written: {words}")
        if answer.approval_id is None:
            self._keep_untold(f"writing {path}", answer.say)
        waits = answer.approval_id is not None
        raise RpcError(REFUSED, told_refusal(answer.say, mistake=answer.mistake, waits=waits))

    def _keep_untold(self, what: str, words: str) -> None:
        if len(self.untold) < _MOST_UNTOLD:
            self.untold.append(f"Permission Denied: {what[:200]}: {words}")


def _chosen(params: Params, kind: str) -> Json:
    """The option of this kind. Without one nothing is chosen, which is a no."""
    options = params.get("options")
    for option in options if isinstance(options, list) else []:
        if isinstance(option, dict) and option.get("kind") == kind:
            return {"outcome": "selected", "optionId": option.get("optionId")}
    return dict(NOTHING_CHOSEN)
