"""Every route of the console, so that no test needs a list of its own."""

from __future__ import annotations

import re
from typing import NamedTuple

from fastapi.routing import iter_route_contexts

from podium.web.access.guards import OPEN_BELOW, OPEN_PATHS
from podium.web.app import build_app
from podium.web.context import WebContext

UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class Way(NamedTuple):
    """One thing that can be asked for."""

    method: str
    path: str

    @property
    def is_open(self) -> bool:
        """Return whether anyone may request it without signing in."""
        return self.path in OPEN_PATHS or self.path.startswith(OPEN_BELOW)

    @property
    def changes(self) -> bool:
        return self.method in UNSAFE


def every_way(context: WebContext) -> list[Way]:
    """Every method of every route, with something in place of its parameters."""
    ways = []
    for route in iter_route_contexts(build_app(context).routes):
        path = re.sub(r"\{[^}]*\}", "abcd1234", str(route.path))
        ways += [Way(method, path) for method in sorted(route.methods or ())]
    return ways


def every_socket(context: WebContext) -> list[str]:
    """The paths of the websockets."""
    routes = iter_route_contexts(build_app(context).routes)
    found = [route for route in routes if "WebSocket" in type(route.original_route).__name__]
    return [re.sub(r"\{[^}]*\}", "abcd1234", str(route.path)) for route in found]
