"""Claude Code without hands: no tool of its own is there, and the toolbox is its only server."""

from __future__ import annotations

import json

from podium.agents.headless.handless import CALL_SECONDS, SERVER, START_SECONDS
from podium.agents.headless.home import Home
from podium.domain.model import Json

TOOLBOX = f"mcp__{SERVER}__"
"""What it puts before the names of the server's tools."""
SERVERS = "podium-servers.json"

PATIENCE = {
    "MCP_TIMEOUT": str(START_SECONDS * 1000),
    "MCP_CONNECT_TIMEOUT_MS": str(START_SECONDS * 1000),
    "MCP_TOOL_TIMEOUT": str(CALL_SECONDS * 1000),
    # Otherwise it begins without the server's tools, or offers them behind a search.
    "MCP_CONNECTION_NONBLOCKING": "0",
    "ENABLE_TOOL_SEARCH": "false",
    # It would put a long result into a file, which it has nothing to read with.
    "MAX_MCP_OUTPUT_TOKENS": "1000000",
}


def switches_without_hands(home: Home, server: dict[str, Json]) -> tuple[str, ...]:
    """The switches in place of those that name its own tools. The server's token stands in a private file."""
    servers = home.write_json(SERVERS, {"mcpServers": {SERVER: {"type": "stdio", **server}}})
    asked = json.dumps({"permissions": {"ask": [f"{TOOLBOX}*"]}})
    return ("--tools", "", "--mcp-config", str(servers), "--settings", asked)
