"""Host names and origins under which the console may be requested."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from podium.core.errors import BadInput
from podium.web.access.limits import TurnedAway
from podium.web.settings import ConsoleSettings

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})
_NAME = re.compile(
    r"(\w([\w.-]*\w)?|\[[0-9a-f:.]+])(:(?P<port>[1-9][0-9]*))?", re.ASCII | re.IGNORECASE
)
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_OTHER_SITES = frozenset({"cross-site", "same-site"})
"""`Sec-Fetch-Site` values of requests made by another origin; another port of this host counts as same-site."""


class HostPort(NamedTuple):
    """A host and its port, as a URL or a Host header names them."""

    host: str
    port: int


def asks_loopback(headers: Headers) -> bool:
    """True when the Host header is a loopback name."""
    address = _host_port(f"http://{headers.get('host', '')}")
    return address is not None and is_loopback(address.host)


class Names:
    """The console's own host names, checked on every request."""

    def __init__(self, settings: ConsoleSettings) -> None:
        self._hosts = {named(name) for name in settings.names}
        self._behind_proxy = settings.behind_proxy

    def check_host(self, scope: Scope, headers: Headers) -> None:
        """Raise `TurnedAway` when the Host header is not one of the console's names."""
        hosts = headers.getlist("host")
        address = _host_port(f"{scope['scheme']}://{hosts[0]}") if len(hosts) == 1 else None
        if address is None or not self._is_ours(scope, address):
            raise TurnedAway(421, "unknown host name; add it with `podium serve --name HOST`")

    def check_origin(self, scope: Scope, headers: Headers, *, by_cookie: bool) -> None:
        """Raise `TurnedAway` for a request sent by a page of another site.

        Programs tell no origin. Browsers always do, where something may change, so that a session
        without one is nobody's.
        """
        changes = scope["type"] == "websocket" or scope["method"] not in HARMLESS
        if changes:
            origin = headers.get("origin") or headers.get("referer") or ""
            if (origin or by_cookie) and not self._is_our_page(scope, headers, origin):
                raise TurnedAway(403, "cross-site request refused; use the console's own pages")
        opens_page = headers.get("sec-fetch-mode") == "navigate" and not changes
        if headers.get("sec-fetch-site") in _OTHER_SITES and not opens_page:
            raise TurnedAway(403, "cross-site request refused")

    def _is_ours(self, scope: Scope, target: HostPort) -> bool:
        if any(target.host == host and port in (None, target.port) for host, port in self._hosts):
            return True
        address, port = scope.get("server") or ("", None)
        # A socket has no port, and whoever reaches it has passed its folder.
        by_port = port is None or target.port == port
        return by_port and (target.host in LOOPBACK_NAMES or _same_address(target.host, address))

    def _is_our_page(self, scope: Scope, headers: Headers, origin: str) -> bool:
        page = _host_port(origin)
        if page is None:
            return False
        scheme = urlsplit(origin).scheme
        if self._behind_proxy and scheme == "https":
            # Proxies may ask by a name of their own; the page's is the one that people use.
            return any(page.host == host for host, _ in self._hosts)
        own = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
        return scheme == own and page == _host_port(f"{own}://{headers.get('host', '')}")


def is_loopback(host: str) -> bool:
    """True for a loopback name or address."""
    try:
        return host in LOOPBACK_NAMES or ip_address(host).is_loopback
    except ValueError:
        return False


def named(name: str) -> tuple[str, int | None]:
    """Parse `--name` into host and port (None: any). Raises `BadInput` for a name no browser would send."""
    match, address = _NAME.fullmatch(name), _host_port(f"http://{name}")
    if match is None or address is None:
        raise BadInput(
            f"--name {name!r} is not a host name: write it as browsers show it after https://, "
            "such as podium.example.org or podium.example.org:8443"
        )
    return address.host, address.port if match["port"] else None


def _host_port(url: str) -> HostPort | None:
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    if not parts.hostname or port is None or parts.username is not None:
        return None
    return HostPort(parts.hostname.lower().removesuffix("."), port)


def _same_address(host: str, address: str) -> bool:
    try:
        return ip_address(host) == ip_address(address.partition("%")[0])
    except ValueError:
        return False
