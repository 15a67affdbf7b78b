"""What a confined tree can connect to although it has no network: listeners that Podium serves.

A tree under `none`, `model-only` or `listed` has a loopback of its own and nothing else. On it Podium
listens, for the tree, at the port of the proxy and at each forwarded port; the sockets are handed to
Podium's loop, which accepts on them. No program of ours runs inside, and no socket file leads out.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from itertools import chain
from typing import Protocol

from podium.domain.launching import Confinement

PROXY_PORTS = (3128, 3129, 8118, 8888)
"""Where the proxy answers inside: the first that is not forwarded, else any other."""

MOST_PORTS = 200
"""More descriptors do not go over a socket at once."""


class Serving(Protocol):
    """Connections of one tree while they are served."""

    @property
    def refused_hosts(self) -> tuple[str, ...]:
        """Hosts the tree wanted and may not reach; the first few."""

    def close(self) -> None:
        """Stop listening and drop every connection. May be called more than once."""


Serve = Callable[[Confinement, socket.socket | None, dict[int, socket.socket]], Serving]
"""Serves one tree, from its confinement, the proxy's listener and those of forwarded ports.

The proxy speaks plain HTTP and CONNECT and lets through to `confinement.hosts` alone; each forwarded
port leads to the same port of 127.0.0.1 outside. Called in the event loop's thread; takes over the
sockets, which do not block, and must not raise. Where a tree has no network of its own, its
forwarded ports are there already and none are handed over."""


def has_proxy(confinement: Confinement) -> bool:
    return confinement.network in ("model-only", "listed")


def proxy_port(confinement: Confinement) -> int:
    """The port inside at which the proxy of this tree answers."""
    candidates = chain(PROXY_PORTS, range(1_024, 65_536))
    return next(port for port in candidates if port not in confinement.forwarded_ports)


def ports_inside(confinement: Confinement) -> list[int]:
    """Where to listen for a tree with a network of its own."""
    if confinement.network == "open":
        return []
    proxy = [proxy_port(confinement)] if has_proxy(confinement) else []
    return [*proxy, *dict.fromkeys(confinement.forwarded_ports)]
