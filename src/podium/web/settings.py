"""Where the console is served, and its limits."""

from __future__ import annotations

from pathlib import Path

from podium.core.model import FrozenModel


class ConsoleSettings(FrozenModel):
    """What `podium serve` was told. The defaults are for one person on their own machine."""

    host: str = "127.0.0.1"
    port: int = 8765
    socket: Path | None = None
    """A unix socket instead of an address."""
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    """A proxy of the person's own ends TLS in front, and says for whom it asks."""
    names: tuple[str, ...] = ()
    """Further names by which browsers may ask for it."""
    most_body_bytes: int = 2_000_000
    most_stranger_bytes: int = 200_000
    """Of a body from somebody who is not known yet: a login, or the message of a chat."""
    body_seconds: float = 20.0
    """How long a whole body may take to arrive."""
    head_seconds: float = 10.0
    """How long the lines before it may take."""
    requests_per_minute: int = 600
    """Of one address or token. Streams count once."""
    streams_per_person: int = 200
    most_streams: int = 1_100
    """Of all together."""
    session_seconds: int = 12 * 3600

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it by TLS."""
        return self.certificate is not None or self.behind_proxy
