"""Certificates of both ends of a connection, and the greeting by which a server says who it is."""

from __future__ import annotations

from pathlib import Path

import grpc

from podium import __version__
from podium.core.errors import BadInput
from podium.core.model import FrozenModel

_MAX_BYTES = 1_000_000


class Certificates(FrozenModel):
    """PEM files of one end."""

    key: Path
    """Private: readable by its owner alone."""
    certificate: Path
    """Certificate chain up to the authority."""
    authority: Path
    """Authority that must have signed the other end's certificate."""

    def for_server(self) -> grpc.ServerCredentials:
        """Return credentials that require client certificates of the authority. Raises `BadInput` for invalid files."""
        own, authority = self._own(), _read(self.authority)
        return grpc.ssl_server_credentials([own], authority, require_client_auth=True)

    def for_client(self) -> grpc.ChannelCredentials:
        """Return client credentials. Raises `BadInput` for invalid files."""
        key, certificate = self._own()
        return grpc.ssl_channel_credentials(_read(self.authority), key, certificate)

    def _own(self) -> tuple[bytes, bytes]:
        key = _read(self.key)
        if self.key.stat().st_mode & 0o077:
            raise BadInput(
                f"the key {str(self.key)!r} is readable by others; run `chmod 600` on it"
            )
        return key, _read(self.certificate)


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(_MAX_BYTES)
    except OSError as error:
        raise BadInput(f"{str(file)!r} cannot be read: {error.strerror}; pass a PEM file") from None
    if b"-----BEGIN " not in content:
        raise BadInput(f"{str(file)!r} is not a PEM file; pass one")
    return content


class Greeting(FrozenModel):
    """Identity of a Podium. Two with equal greetings behave the same."""

    version: str = __version__
    settings: str = ""
    """Digest of the settings that it was started with."""
