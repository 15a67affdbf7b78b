"""A loopback model server that plays a script, for tests that spend no token and reach no network."""

from podium.testing.modelserver.request_log import SeenRequest
from podium.testing.modelserver.script import Rule, Script, Step, ToolCall
from podium.testing.modelserver.server import ModelServer

__all__ = ["ModelServer", "Rule", "Script", "SeenRequest", "Step", "ToolCall"]
