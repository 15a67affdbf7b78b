"""Hosts that a confined tree may reach: the reading of `Confinement.hosts`."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

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
