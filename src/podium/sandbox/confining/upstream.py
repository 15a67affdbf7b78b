"""Connecting outwards: straight to a host, or by the proxy that this machine itself has to use."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from podium.sandbox.confining.hosts import Destination, may_be_dialled

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_HEAD_BYTES = 32_768


class NotReached(Exception):
    """Nobody is there, or may be asked. The words are for the program that wanted it."""


@dataclass(frozen=True)
class UpstreamProxy:
    """The machine's own proxy, when it has one."""

    proxy: Destination | None = None
    authorization: str = ""
    without: tuple[str, ...] = ()
    """Ends of host names that are reached without it; `*` for all."""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> UpstreamProxy:
        """As the variables say that programs go by: `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`."""
        text = _first(environ, "https_proxy", "http_proxy", "all_proxy")
        without = tuple(
            part.strip().lstrip("*").lower() or "*"
            for part in _first(environ, "no_proxy").split(",")
            if part.strip()
        )
        if not text:
            return cls(without=without)
        parts = urlsplit(text if "://" in text else f"http://{text}")
        if parts.scheme != "http" or not parts.hostname:
            return cls(without=without)
        login = ""
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            login = "Basic " + base64.b64encode(pair.encode()).decode()
        return cls(Destination(parts.hostname, parts.port or 80), login, without)

    async def dial(self, destination: Destination) -> Streams:
        """An open connection to the host. Raises `NotReached`."""
        try:
            if self.proxy is None or self._goes_without(destination.host):
                return await _dial_straight(destination)
            return await self._dial_by_proxy(self.proxy, destination)
        except OSError as error:
            raise NotReached(f"{destination} does not answer: {error.strerror or error}") from None

    def _goes_without(self, host: str) -> bool:
        return any(
            end == "*" or host == end.lstrip(".") or host.endswith("." + end.lstrip("."))
            for end in self.without
        )

    async def _dial_by_proxy(self, proxy: Destination, destination: Destination) -> Streams:
        reader, writer = await asyncio.open_connection(proxy.host, proxy.port, limit=_HEAD_BYTES)
        try:
            login = f"Proxy-Authorization: {self.authorization}\r\n" if self.authorization else ""
            writer.write(
                f"CONNECT {destination} HTTP/1.1\r\nHost: {destination}\r\n{login}\r\n".encode()
            )
            head = await reader.readuntil(b"\r\n\r\n")
            if head.split(b" ", 2)[1:2] != [b"200"]:
                status_line = head.split(b"\r\n", 1)[0].decode("latin-1")[:100]
                raise NotReached(
                    f"this machine's own proxy does not lead to {destination}: {status_line}"
                )
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.close()
            raise NotReached("this machine's own proxy gave no answer") from None
        except BaseException:
            writer.close()
            raise
        return reader, writer


def proxy_env(port: int) -> dict[str, str]:
    """The variables by which programs find their proxy."""
    address = f"http://127.0.0.1:{port}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
    direct = "127.0.0.1,localhost,::1"
    return {**dict.fromkeys(names, address), "NO_PROXY": direct, "no_proxy": direct}


async def _dial_straight(destination: Destination) -> Streams:
    loop = asyncio.get_running_loop()
    entries = await loop.getaddrinfo(destination.host, destination.port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
    allowed = [address for address in addresses if may_be_dialled(address, destination)]
    if not allowed:
        raise NotReached(f"{destination} leads to this machine itself; nothing goes there")
    for address in allowed[:-1]:
        with suppress(OSError):
            return await asyncio.open_connection(address, destination.port)
    return await asyncio.open_connection(allowed[-1], destination.port)


def _first(environ: Mapping[str, str], *names: str) -> str:
    for name in names:
        for spelled in (name, name.upper()):
            if environ.get(spelled):
                return environ[spelled]
    return ""
