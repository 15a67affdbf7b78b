"""Dialects of the model protocols: parse requests, write answers, errors and streams."""

from podium.testing.modelserver.dialects.anthropic import AnthropicDialect
from podium.testing.modelserver.dialects.chat import ChatDialect
from podium.testing.modelserver.dialects.dialect import Dialect, DialectFailure
from podium.testing.modelserver.dialects.gemini import GeminiDialect
from podium.testing.modelserver.dialects.responses import ResponsesDialect

__all__ = [
    "AnthropicDialect",
    "ChatDialect",
    "Dialect",
    "DialectFailure",
    "GeminiDialect",
    "ResponsesDialect",
]
