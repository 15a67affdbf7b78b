"""Ports for a workspace's own servers, so that two workspaces never want the same one."""

from __future__ import annotations

import contextlib
import random
import re
import socket
from collections.abc import Collection, Iterator, Sequence

from podium.domain.errors import BadInput, NotPossibleNow

PORTS = range(20_000, 32_000)
"""Beneath the ports that kernels give to outgoing connections, which would come and go in them."""

_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_NOT_FOR_PORTS = re.compile(
    r"(GIT|LD|DYLD|PODIUM)_.*|PATH|HOME|IFS|ENV|BASH_ENV|SHELL|PAGER|EDITOR"
)
_TRIES = 200


def check_names(names: Sequence[str]) -> None:
    """Raise `BadInput` for a name that can be no variable for a port."""
    for name in names:
        if not _NAME.fullmatch(name) or _NOT_FOR_PORTS.fullmatch(name):
            raise BadInput(
                f"{name!r} cannot be the variable of a port; use capitals, digits and underscores, "
                "as in 'WEB_PORT'"
            )
    if len(set(names)) != len(names):
        raise BadInput(f"each port needs a variable of its own; got {', '.join(names)}")


@contextlib.contextmanager
def held_ports(names: Sequence[str], taken: Collection[int]) -> Iterator[dict[str, int]]:
    """A free port for each name, none of those `taken` by other workspaces.

    They are held until the end of the block: write down whose they are inside it, and nobody who
    looks at the same time gets one of them.
    """
    check_names(names)
    used = set(taken)
    with contextlib.ExitStack() as held:
        found: dict[str, int] = {}
        for name in names:
            port = _hold_one(held, used)
            used.add(port)
            found[name] = port
        yield found


def _hold_one(held: contextlib.ExitStack, used: Collection[int]) -> int:
    chance = random.SystemRandom()
    for _ in range(_TRIES):
        port = chance.choice(PORTS)
        if port not in used and _hold(held, port):
            return port
    raise NotPossibleNow(
        f"no free port found between {PORTS.start} and {PORTS.stop}; end servers that are not "
        "needed, or remove workspaces by `podium workspaces gc`"
    )


def _hold(held: contextlib.ExitStack, port: int) -> bool:
    """Bind it without listening. A server on any address of this machine makes that fail."""
    sockets = contextlib.ExitStack()
    for family in (socket.AF_INET, socket.AF_INET6):
        if family == socket.AF_INET6 and not _has_ipv6():
            continue
        try:
            one = sockets.enter_context(socket.socket(family, socket.SOCK_STREAM))
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(("", port))
        except OSError:
            sockets.close()
            return False
    held.push(sockets)
    return True


def _has_ipv6() -> bool:
    """Whether it is not only compiled in: a machine may have it switched off."""
    if not socket.has_ipv6:
        return False
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
