"""Tools by what a stage is for: who only judges changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from podium.flows.asking import Player
from podium.flows.pipeline.spec import Does

JUDGING = (
    "read_file",
    "list_files",
    "find_files",
    "search_text",
    "git_status",
    "git_diff",
    "git_log",
    "run_command",
    "ask_human",
)
"""Commands are among them: a judge may run the tests."""
_DOCUMENT = (*JUDGING, "write_file", "edit_file")
"""CLIs write a new file by either of the two."""
_TOOLS: Mapping[Does, tuple[str, ...]] = {
    "review": JUDGING,
    "audit": _DOCUMENT,
    "report": _DOCUMENT,
    "plan": _DOCUMENT,
}
"""Stages that are not named have all tools."""


def with_tools_for(player: Player, does: Does) -> Player:
    """The player with the tools of such a stage, unless the settings name those of its role."""
    tools = _TOOLS.get(does)
    if tools is None or player.allowed_tools is not None:
        return player
    return replace(player, allowed_tools=tools)
