"""The conversation with a running ACP agent: introduction, session, prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from podium.agents.acp.gatekeeper import Gatekeeper
from podium.agents.acp.keeping import Keeper
from podium.agents.acp.records import Heard
from podium.agents.rpc import RpcError, RpcPeer, talking
from podium.domain.asking import Turn
from podium.domain.errors import AgentLost, AgentRejected
from podium.domain.model import Json
from podium.ports import Process

PROTOCOL_VERSION = 1
CANCEL_SECONDS = 1.0
"""How long an agent is given to hear that it shall stop, before it is ended."""

HISTORY_SECONDS = 10.0
"""How long an agent that is silent about questions it does not know is waited for."""

INTRODUCTION: dict[str, Json] = {
    "protocolVersion": PROTOCOL_VERSION,
    "clientInfo": {"name": "podium", "version": "1"},
    "clientCapabilities": {
        # Reading stays with the agent: Gemini CLI cannot make a new file when we read for it.
        "fs": {"readTextFile": False, "writeTextFile": True},
        "terminal": False,
    },
}


class SessionUnknown(AgentRejected):
    """The agent does not know the conversation it was to continue."""


class AcpTalk:
    """One turn's conversation."""

    def __init__(
        self,
        process: Process,
        gatekeeper: Gatekeeper,
        heard: Heard,
        keeper: Keeper,
        agent: str,
    ) -> None:
        self._process = process
        self._gatekeeper = gatekeeper
        self._heard = heard
        self._keeper = keeper
        self._agent = agent

    async def hold(self, turn: Turn) -> None:
        """Ask the turn. Raises `RpcError` for what the agent answers with one, `LineClosed` at its end."""
        async with talking(
            self._process, self._gatekeeper.answer, self._heard.hear, keep=self._keeper.keep
        ) as peer:
            try:
                await self._introduce(peer)
                self._heard.session = await self._session(peer, turn)
                await self._prompt(peer, turn.prompt)
            except asyncio.CancelledError:
                await self._tell_to_stop(peer)
                raise

    async def _introduce(self, peer: RpcPeer) -> None:
        said = _mapping(await peer.call("initialize", dict(INTRODUCTION)))
        version = said.get("protocolVersion")
        if version != PROTOCOL_VERSION:
            raise AgentRejected(
                f"agent {self._agent!r} speaks version {version!r} of ACP and Podium speaks "
                f"{PROTOCOL_VERSION}; use a version of it that speaks the same"
            )
        self._heard.agent = said

    async def _session(self, peer: RpcPeer, turn: Turn) -> str:
        place: dict[str, Json] = {"cwd": turn.workspace, "mcpServers": []}
        if turn.session is not None and self._can_load():
            try:
                loaded = await peer.call("session/load", {"sessionId": turn.session, **place})
                self._heard.current_model = _model_in(_mapping(loaded))
            except RpcError as error:
                raise SessionUnknown(
                    f"agent {self._agent!r} cannot go on with conversation {turn.session!r} "
                    f"({words_of(error)}); ask without a session"
                ) from None
            await self._hear_history_out(peer)
            return turn.session
        if turn.session is not None:
            self._heard.warnings.append(
                f"agent {self._agent!r} cannot continue conversations; a new one was begun"
            )
        opened = _mapping(await peer.call("session/new", place))
        self._heard.current_model = _model_in(opened)
        session = opened.get("sessionId")
        if not isinstance(session, str) or not session:
            raise AgentLost(f"agent {self._agent!r} opened a session without an id")
        return session

    async def _hear_history_out(self, peer: RpcPeer) -> None:
        """Come back when the conversation has been told over again, or after a while.

        The history should come before the answer to our call; Gemini CLI goes on with it behind. As
        long as it does, something of it stands before its answer to every question we put.
        """
        quiet = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(HISTORY_SECONDS):
                while quiet < 2:
                    before = self._heard.replayed
                    with suppress(RpcError):
                        await peer.call("_podium/still_there")
                    quiet = quiet + 1 if self._heard.replayed == before else 0

    def _can_load(self) -> bool:
        return _mapping(self._heard.agent.get("agentCapabilities")).get("loadSession") is True

    async def _prompt(self, peer: RpcPeer, prompt: str) -> None:
        self._heard.listening = True
        # A slash at the very beginning makes it a command with many agents.
        said = f"\n{prompt}" if prompt.startswith("/") else prompt
        asked = {"sessionId": self._heard.session, "prompt": [{"type": "text", "text": said}]}
        self._heard.result = _mapping(await peer.call("session/prompt", asked))

    async def _tell_to_stop(self, peer: RpcPeer) -> None:
        if self._heard.session is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                await peer.notify("session/cancel", {"sessionId": self._heard.session})


def words_of(error: RpcError) -> str:
    """What an error says. Some agents put the words that matter beside the message."""
    details = _mapping(error.data).get("details")
    return f"{error.message}: {details}" if isinstance(details, str) else error.message


def _model_in(opened: Mapping[str, Json]) -> str:
    model = _mapping(opened.get("models")).get("currentModelId")
    return model if isinstance(model, str) else ""


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}
