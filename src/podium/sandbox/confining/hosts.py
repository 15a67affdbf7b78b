"""Which hosts a confined tree may reach: the reading of `Confinement.hosts`."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

WEB_PORTS = frozenset({80, 443})
"""What a host without a port of its own stands for."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a program wants to connect to."""

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


def is_listed(wanted: Destination, listed: Sequence[str]) -> bool:
    """Whether one of the listed hosts is this one: `name`, `*.name` (below it alone) or `name:port`."""
    return any(_fits(wanted, entry) for entry in listed)


def _fits(wanted: Destination, entry: str) -> bool:
    named = read_destination(entry) if _has_port(entry) else None
    ports = {named.port} if named else WEB_PORTS
    host = named.host if named else entry.removeprefix("[").removesuffix("]").rstrip(".").lower()
    if wanted.port not in ports:
        return False
    if host.startswith("*."):
        return wanted.host.endswith(host[1:])
    return bool(host) and wanted.host == host


def _has_port(entry: str) -> bool:
    if entry.startswith("["):
        return "]:" in entry
    return entry.count(":") == 1


def may_be_dialled(address: str, wanted: Destination) -> bool:
    """Whether a listed name may lead to this address.

    A name that somebody else's name server answers for must not lead to this machine's own
    services, nor to a cloud's metadata address; one that is listed as that very address may.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if wanted.host in ("localhost", address):
        return True
    return not (
        found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast
    )
