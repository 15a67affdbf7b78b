"""Gemini CLI without hands: none of its own tools is registered, allowed or let past the hook."""

from __future__ import annotations

from collections.abc import Mapping

from podium.agents.headless.handless import CALL_SECONDS, SERVER
from podium.domain.model import Json

TOOLBOX = f"mcp_{SERVER}_"
"""What it puts before the names of the server's tools."""
OWN_TOOLS = f"^(?!{TOOLBOX})"
"""The tools that its hook has to ask for: all but Podium's, which are judged where they are performed."""

RULES = f"""[[rule]]
mcpName = "{SERVER}"
toolName = "*"
decision = "allow"
priority = 900

[[rule]]
toolName = "*"
decision = "deny"
priority = 800
denyMessage = "this agent has no tools of its own"
"""


def settings_without_hands(settings: Mapping[str, Json], server: dict[str, Json]) -> Json:
    """Its settings, with no tool of its own and the toolbox as the only server."""
    own = settings.get("tools")
    return {
        **settings,
        "tools": {
            **(own if isinstance(own, dict) else {}),
            "core": [],
            # It would put a long result into a file, which it has nothing to read with.
            "truncateToolOutputThreshold": 0,
        },
        "mcp": {"allowed": [SERVER]},
        "mcpServers": {SERVER: {**server, "timeout": CALL_SECONDS * 1000, "trust": True}},
    }
