"""A loopback model server that plays a script, for tests that spend no token and reach no network."""

from podium.testing.modelserver.request_log import LoggedRequest
from podium.testing.modelserver.script import Script, ScriptRule, ScriptStep, ToolCall
from podium.testing.modelserver.server import ModelServer

__all__ = ["LoggedRequest", "ModelServer", "Script", "ScriptRule", "ScriptStep", "ToolCall"]
