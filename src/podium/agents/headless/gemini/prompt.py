"""The prompt as Gemini CLI has to get it, so that the model reads what was written."""

from __future__ import annotations

import os
import re
from pathlib import Path

from podium.agents.headless.gemini.tools import AGENTS
from podium.domain.errors import ContextOverflow

LONGEST_BYTES = 8 * 1024 * 1024
"""What it reads of its input; the rest it would drop with a mere warning."""

# What the CLI takes for the name of a file behind an `@` that has no backslash before it.
_MENTION = re.compile(
    r"""(?<!\\)@((?:"[^"]*"|\\.|[^ \t\n\r,;!?()\[\]{}.]|\.(?!$|[ \t\n\r]))+)""", re.DOTALL
)


def prompt_for(agent: str, prompt: str, workspace: str) -> bytes:
    """What goes to its input. Raises `ContextOverflow` when the CLI would cut it.

    The CLI reads every file that a prompt names as `@file` into it, with no tool call that could
    be judged. Where there is such a file, the sign gets the backslash that keeps it a sign.
    """
    known: dict[str, bool] = {}

    def escape(mention: re.Match[str]) -> str:
        name = mention[1]
        if name not in known:
            known[name] = _means_something(name, workspace)
        return f"\\{mention[0]}" if known[name] else mention[0]

    said = _MENTION.sub(escape, prompt)
    # With a slash at the very beginning it would be one of its commands.
    given = (f"\n{said}" if said.startswith("/") else said).encode(errors="replace")
    if len(given) > LONGEST_BYTES:
        raise ContextOverflow(
            f"the prompt for agent {agent!r} has {len(given)} bytes and Gemini CLI reads no more "
            f"than {LONGEST_BYTES}; shorten it, or put it into a file of the workspace"
        )
    return given


def _means_something(name: str, workspace: str) -> bool:
    """Whether the CLI would put something in the name's place: a file, a folder or a subagent."""
    plain = re.sub(r"\\(.)", r"\1", name).strip('"')
    if plain in AGENTS or "\0" in plain:
        return True
    try:
        return os.path.lexists(Path(workspace, plain))
    except (OSError, ValueError):
        return True
