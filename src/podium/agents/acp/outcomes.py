"""How a tool call of an ACP agent ended, as far as the agent tells.

The protocol calls a tool call `completed` or `failed` and has no word for an exit code. Of a command
`completed` says only that it ran: Gemini CLI says so of one that leaves with 3. Where agents tell the
code, they do it in places of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from podium.domain.gating import Outcome
from podium.domain.model import Json

_OVER = {"completed": True, "failed": False}
_LONGEST_OUTPUT = 4_000
_NAMES = ("exit_code", "exitCode", "exit")


@dataclass(frozen=True)
class Ended:
    """What an update tells of a call that is over."""

    ok: bool
    output: str
    exit_code: int | None

    def as_told(self) -> Outcome:
        error = "" if self.ok else self.output[:500] or "failed without a word"
        return Outcome(ok=self.ok, result={"done": self.ok, **self._said()}, error=error)

    def of_a_command(self) -> Outcome | None:
        """None when it says that the command ran and not how it ended."""
        if not self.ok:
            return self.as_told()
        if self.exit_code is None:
            return None
        ok = self.exit_code == 0
        error = "" if ok else f"exit code {self.exit_code}"
        return Outcome(ok=ok, result={"done": ok, **self._said()}, error=error)

    def _said(self) -> dict[str, Json]:
        return {"exit_code": self.exit_code, "output": self.output[:_LONGEST_OUTPUT]}


def ended_by(update: Mapping[str, Json]) -> Ended | None:
    """What the update says. None when the call goes on."""
    status = update.get("status")
    if not isinstance(status, str) or status not in _OVER:
        return None
    return Ended(_OVER[status], _output(update), _exit_code(update))


def _exit_code(update: Mapping[str, Json]) -> int | None:
    """As codex-acp (in the raw output), opencode (in its metadata) or Claude's adapter (in `_meta`) have it."""
    for place in _places(update):
        for name in _NAMES:
            code = place.get(name)
            if isinstance(code, int) and not isinstance(code, bool):
                return code
    return None


def _places(update: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    raw = _mapping(update.get("rawOutput"))
    yield raw
    yield _mapping(raw.get("metadata"))
    yield _mapping(_mapping(update.get("_meta")).get("terminal_exit"))


def _output(update: Mapping[str, Json]) -> str:
    content = update.get("content")
    items = content if isinstance(content, list) else []
    texts = (_mapping(_mapping(item).get("content")).get("text") for item in items)
    return "\n".join(text for text in texts if isinstance(text, str)).strip()


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}
