"""Conversations of an API agent, kept as private files below the run's homes.

A turn never changes a file: it writes a new one when it is over. So a turn that is asked again
after a crash begins where it began the first time.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from podium.agents.api.tool_calls import unanswered
from podium.agents.private_files import plain_name, write_private
from podium.core.errors import BadInput, NotPossibleNow
from podium.platform import make_private_folder

_ID = re.compile(r"conv_[0-9a-f]{32}")


class Conversation:
    """The messages of a conversation, and the calls of its last answer that wait for a person."""

    def __init__(self, messages: Sequence[ModelMessage] = ()) -> None:
        self.messages = list(messages)

    def take_open_calls(self) -> tuple[list[ToolCallPart], list[ToolReturnPart]]:
        """The last answer's calls without a result, and the results there are, no longer part of it."""
        results: list[ToolReturnPart] = []
        if self.messages and isinstance(last := self.messages[-1], ModelRequest):
            results = [part for part in last.parts if isinstance(part, ToolReturnPart)]
            self.messages.pop()
        answer = self.messages[-1] if self.messages else None
        calls = answer.tool_calls if isinstance(answer, ModelResponse) else []
        return unanswered(calls, results), results

    @property
    def last_prompt(self) -> str:
        for message in reversed(self.messages):
            for part in reversed(message.parts):
                if isinstance(part, UserPromptPart) and isinstance(part.content, str):
                    return part.content
        return ""


class Conversations:
    """The conversations of one agent in one run."""

    def __init__(self, homes: Path, run_id: str, agent: str, redact: Callable[[str], str]) -> None:
        """`redact` takes secrets out of the serialised files: the prompt or the model may say some."""
        self._agent = agent
        self._redact = redact
        self._homes = homes
        self._folder = homes / plain_name(run_id) / plain_name(agent) / "conversations"

    def load(self, session: str | None) -> Conversation:
        """None is a new one. Raises `BadInput` for an unknown one, `NotPossibleNow` for a damaged one."""
        if session is None:
            return Conversation()
        if not _ID.fullmatch(session):
            raise self._unknown(session)
        try:
            content = (self._folder / f"{session}.json").read_bytes()
            return Conversation(ModelMessagesTypeAdapter.validate_json(content))
        except FileNotFoundError:
            raise self._unknown(session) from None
        except (OSError, ValidationError, RecursionError) as error:
            raise NotPossibleNow(
                f"the conversation {session!r} of agent {self._agent!r} cannot be read "
                f"({type(error).__name__}); begin a new one"
            ) from None

    def save(self, conversation: Conversation) -> str:
        """Keep it under a new id. On return it survives a crash."""
        for folder in (self._homes, self._folder.parent.parent, self._folder.parent, self._folder):
            make_private_folder(folder)
        session = f"conv_{secrets.token_hex(16)}"
        content = ModelMessagesTypeAdapter.dump_json(conversation.messages).decode()
        write_private(self._folder / f"{session}.json", self._redact(content).encode())
        return session

    def _unknown(self, session: str) -> BadInput:
        return BadInput(
            f"agent {self._agent!r} has no conversation {session[:80]!r} in this run; ask without a "
            "session to begin a new one"
        )
