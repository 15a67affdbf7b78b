"""MCP server: clients of the Model Context Protocol submit work to Podium and follow it."""

from podium.mcp.context import McpContext, Served
from podium.mcp.server import build_server, serve_http, serve_stdio

__all__ = ["McpContext", "Served", "build_server", "serve_http", "serve_stdio"]
