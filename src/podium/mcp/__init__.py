"""The MCP door: any client of the Model Context Protocol hands work to Podium, and asks how it stands."""

from podium.mcp.context import McpContext, Served
from podium.mcp.server import build_server, serve_stdio, served_over_http

__all__ = ["McpContext", "Served", "build_server", "serve_stdio", "served_over_http"]
