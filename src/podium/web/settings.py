"""Settings of the console: address, TLS and limits."""

from __future__ import annotations

from pathlib import Path

from podium.core.model import FrozenModel


class ConsoleSettings(FrozenModel):
    """Settings of `podium serve`. The defaults are for one person on their own machine."""

    host: str = "127.0.0.1"
    port: int = 8765
    socket: Path | None = None
    """Unix socket instead of an address."""
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    """A reverse proxy terminates TLS and forwards the client address."""
    names: tuple[str, ...] = ()
    """Additional host names."""
    most_body_bytes: int = 2_000_000
    most_stranger_bytes: int = 200_000
    """Maximum body of a request without authentication: a login, or a chat message."""
    body_seconds: float = 20.0
    """Timeout of a whole request body."""
    head_seconds: float = 10.0
    """Timeout of the request head."""
    requests_per_minute: int = 600
    """Rate limit per address or token. A stream counts once."""
    streams_per_person: int = 200
    most_streams: int = 1_100
    """Limit over all people."""
    session_seconds: int = 12 * 3600

    @property
    def is_secure(self) -> bool:
        """True when browsers reach it by TLS."""
        return self.certificate is not None or self.behind_proxy
