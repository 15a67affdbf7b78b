"""The MCP door: any client of the Model Context Protocol hands work to Podium, and asks how it stands."""

from podium.mcp.desk import Desk, Served
from podium.mcp.http import served_over_http
from podium.mcp.server import build_server
from podium.mcp.stdio import serve_stdio

__all__ = ["Desk", "Served", "build_server", "serve_stdio", "served_over_http"]
