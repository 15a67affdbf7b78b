"""Context of every handler: the open application, its tokens, sessions and live events."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request, WebSocket
from starlette.requests import HTTPConnection

from podium.app.costs import CostWatch
from podium.config.project_identity import settle_identity
from podium.web.access.limits import Attempts
from podium.web.access.sessions import Sessions, SignedOutSessions, load_key
from podium.web.access.tokens import TokenBook, console_folder
from podium.web.live.hub import Hub
from podium.web.settings import ConsoleSettings

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.store import SqlStore
    from podium.store.postgres_store import PostgresStore


class WebContext:
    """Context of one console, open while the app is served."""

    def __init__(self, podium: Podium, settings: ConsoleSettings) -> None:
        # The vault is found by an id that lies in the state folder.
        podium.folders.make_state()
        podium.state_lock.hold()
        if not podium.database_url:
            settle_identity(podium.folders, podium.notify)
        folder = console_folder(podium.key_dir)
        self.podium = podium
        self.settings = settings
        self.tokens = TokenBook(folder)
        self.sessions = Sessions(
            load_key(folder / "session.key"), SignedOutSessions(folder / "left.json")
        )
        self.attempts = Attempts()
        self.hub = Hub(podium.store)
        self.costs = CostWatch(podium.store)

    async def store(self) -> SqlStore | PostgresStore:
        return await self.podium.store()

    @property
    def session_length(self) -> timedelta:
        return timedelta(seconds=self.settings.session_seconds)

    async def close(self) -> None:
        await self.hub.close()


def web_context(connection: HTTPConnection) -> WebContext:
    context = connection.app.state.context
    assert isinstance(context, WebContext)  # noqa: S101 — build_app put it there
    return context


def _of_request(request: Request) -> WebContext:
    return web_context(request)


def _of_socket(websocket: WebSocket) -> WebContext:
    return web_context(websocket)


CurrentContext = Annotated[WebContext, Depends(_of_request)]
"""Context, for handlers of requests."""
SocketContext = Annotated[WebContext, Depends(_of_socket)]
"""Context, for handlers of websockets."""
