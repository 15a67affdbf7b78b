"""Everything that is said to codex before the question: who asks, the hook, the login, the conversation."""

from __future__ import annotations

from typing import Any, NamedTuple

from podium.agents.headless.codex.trouble import LOGIN_HINT
from podium.agents.headless.codex.trust import trust_hook
from podium.agents.rpc import Params, RpcPeer
from podium.domain.asking import Turn
from podium.domain.errors import AgentLost, AgentNotLoggedIn
from podium.domain.model import Json


class Conversation(NamedTuple):
    """A conversation as codex has opened it."""

    name: str
    model: str


async def open_conversation(peer: RpcPeer, turn: Turn, hooks: str, agent: str) -> Conversation:
    """Begin or go on, once the hook is trusted and somebody is logged in.

    Raises `NotPossibleNow`, `AgentNotLoggedIn`, and `AgentLost` for answers that make no sense.
    """
    client = {"name": "podium", "title": "Podium", "version": "1"}
    await peer.call("initialize", {"clientInfo": client})
    await peer.notify("initialized")
    await trust_hook(peer, turn.workspace, hooks, agent)
    await _must_be_logged_in(peer, agent)
    # Not the sandbox: codex trusts a project by itself when a client names one here.
    place: Params = {"cwd": turn.workspace}
    if turn.session is None:
        opened = _fields(await peer.call("thread/start", place))
    else:
        resumed = {"threadId": turn.session, "excludeTurns": True, **place}
        opened = _fields(await peer.call("thread/resume", resumed))
    name = _fields(opened.get("thread")).get("id")
    if not isinstance(name, str) or not name:
        raise AgentLost(f"agent {agent!r} opened a conversation and does not say which")
    return Conversation(name, str(opened.get("model") or ""))


async def _must_be_logged_in(peer: RpcPeer, agent: str) -> None:
    account = _fields(await peer.call("account/read", {"refreshToken": False}))
    if account.get("requiresOpenaiAuth") and account.get("account") is None:
        raise AgentNotLoggedIn(f"agent {agent!r} is not logged in; {LOGIN_HINT}")


def _fields(answer: Json) -> dict[str, Any]:
    return answer if isinstance(answer, dict) else {}
