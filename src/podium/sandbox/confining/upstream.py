"""Connecting outwards: straight to a host, or by the proxy that this machine itself has to use."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

WEB_PORTS = frozenset({80, 443})
"""Ports of a host without a port of its own."""

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_METADATA = frozenset(map(ipaddress.ip_address, ("fd00:ec2::254", "100.100.100.200")))
"""Addresses at which clouds hand out a machine's credentials, besides the link-local 169.254.169.254."""
_TRANSLATED = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")))
"""Their last four bytes are an IPv4 address: NAT64, and two older ways."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The host and port of a connection."""

    host: str
    """Lower-case, without a final dot or brackets."""
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_destination(text: str, default_port: int | None = None) -> Destination | None:
    """`host:port`, `[address]:port`, or a bare host where a port is assumed; None when it is neither."""
    host, colon, port = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        host, port = text, str(default_port or "")
    host = host.removeprefix("[").removesuffix("]").rstrip(".").lower()
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        return None
    if not host.isascii() or any(char.isspace() or not char.isprintable() for char in host):
        return None
    return Destination(host, int(port))


def is_listed(destination: Destination, listed: Sequence[str]) -> bool:
    """Tell whether one of the listed hosts is this one: `name`, `*.name` (below it alone) or `name:port`."""
    return any(_fits(destination, entry) for entry in listed)


def _fits(destination: Destination, entry: str) -> bool:
    named = read_destination(entry) if _has_port(entry) else None
    ports = {named.port} if named else WEB_PORTS
    host = named.host if named else entry.removeprefix("[").removesuffix("]").rstrip(".").lower()
    if destination.port not in ports:
        return False
    if host.startswith("*."):
        return destination.host.endswith(host[1:])
    return bool(host) and destination.host == host


def _has_port(entry: str) -> bool:
    if entry.startswith("["):
        return "]:" in entry
    return entry.count(":") == 1


def may_be_dialled(address: str, destination: Destination) -> bool:
    """Tell whether a listed name may lead to this address.

    A name that somebody else's name server answers for must not lead to this machine's own
    services, nor to a cloud's metadata address, nor to either through a translated or tunnelled
    address; one that is listed as that very address may. Private networks may be reached: a
    company's own index has a name there.
    """
    if destination.host in ("localhost", address):
        return True
    parsed = ipaddress.ip_address(address.partition("%")[0])
    return not any(map(_is_local, (parsed, *_carried(parsed))))


def _is_local(address: _Address) -> bool:
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or address.is_multicast
        or address in _METADATA
    )


def _carried(address: _Address) -> tuple[ipaddress.IPv4Address, ...]:
    """The IPv4 addresses that an IPv6 address leads to."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    addresses = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if any(address in network for network in _TRANSLATED):
        addresses.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return tuple(one for one in addresses if one is not None)


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
            raise NotReached(
                f"cannot connect to {destination}: {error.strerror or error}"
            ) from None

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
                    f"this machine's own proxy did not connect to {destination}: {status_line}"
                )
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.close()
            raise NotReached("this machine's own proxy did not answer") from None
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
        raise NotReached(f"{destination} is an address of this machine, which may not be accessed")
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
