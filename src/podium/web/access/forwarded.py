"""For whom a proxy asks. Only one on this machine is believed."""

from __future__ import annotations

from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import Scope

LONGEST_ADDRESS = 64


def put_right(scope: Scope, headers: Headers) -> None:
    """Have the scope tell who asks the proxy, and that they do so by TLS.

    The last address is the one that the proxy itself saw; those before it anybody can write.
    """
    if not is_own_machine(scope):
        return
    told = ",".join(headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
    if told:
        scope["client"] = (told[:LONGEST_ADDRESS], 0)
    if headers.get("x-forwarded-proto", "").strip().lower() == "https":
        scope["scheme"] = "wss" if scope["type"] == "websocket" else "https"


def is_own_machine(scope: Scope) -> bool:
    """Whether a process of this machine asks: over loopback, or a socket."""
    client = scope.get("client")
    if not client or not client[0]:
        return True
    try:
        return ip_address(client[0]).is_loopback
    except ValueError:
        return False


def address_of(scope: Scope) -> str:
    """Who asks, as far as limits are concerned."""
    client = scope.get("client")
    return str(client[0]) if client and client[0] else "socket"
