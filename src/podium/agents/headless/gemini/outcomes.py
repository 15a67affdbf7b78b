"""How Gemini CLI's tools ended, by the records that it prints itself, not by what a hook is told."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from podium.agents.headless.ending import plain_words
from podium.agents.headless.gemini.tools import SHELL
from podium.domain.model import Json

RAN = "Output: "
IN_BACKGROUND = "Command moved to background"
ENDING = re.compile(
    r"\n(?:Exit Code: (\d{1,3})\n)?(?:Signal: (\S{1,40})\n)?(?:Background PIDs: [^\n]*\n)?"
    r"Process Group PGID: \d+\s*\Z"
)
"""The last lines about a command that ran, in debug mode. An exit code of 0 is not mentioned."""
LONGEST_OUTPUT = 4_000


@dataclass(frozen=True)
class Outcome:
    """How a tool ended."""

    ok: bool
    result: dict[str, Json]
    error: str = ""


def outcome(tool: str, record: Mapping[str, Json]) -> Outcome | None:
    """What a `tool_result` amounts to; None when it does not say how a command ended."""
    said = record.get("output")
    text = said if isinstance(said, str) else ""
    result: dict[str, Json] = {"done": False, "output": text[:LONGEST_OUTPUT]}
    if record.get("status") != "success":
        return Outcome(False, result, _fault(record))
    if tool == SHELL:
        return _command(text, result)
    return Outcome(True, {**result, "done": True})


def _fault(record: Mapping[str, Json]) -> str:
    error = record.get("error")
    said = error.get("message") if isinstance(error, dict) else None
    return plain_words(str(said or "failed"))


def _command(text: str, result: dict[str, Json]) -> Outcome | None:
    if text.startswith(IN_BACKGROUND):
        return Outcome(True, {**result, "done": True, "exit_code": None})
    # Only with these two the last lines are the CLI's own words and not what the command printed.
    ending = ENDING.search(text) if text.startswith(RAN) else None
    if ending is None:
        return _without_ending(text, result)
    code, signal = int(ending[1] or 0), ending[2]
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
    ended = {**result, "exit_code": code, "output_sha256": digest}
    if signal or code:
        why = f"ended by signal {signal}" if signal else f"exit code {code}"
        return Outcome(False, ended, why)
    return Outcome(True, {**ended, "done": True})


def _without_ending(text: str, result: dict[str, Json]) -> Outcome | None:
    """The CLI has checks of its own, and its records call what they stop a success."""
    if text.startswith(RAN) or not text:
        return None
    return Outcome(False, result, plain_words(text))
