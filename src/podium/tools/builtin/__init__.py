"""The tools that come with Podium."""

from podium.tools.builtin.apply_patch import APPLY_PATCH, RESTORE_FILES
from podium.tools.builtin.commands import RUN_COMMAND, checks_tool
from podium.tools.builtin.file_edits import EDIT_FILE, RESTORE_FILE, WRITE_FILE
from podium.tools.builtin.file_lookup import FIND_FILES, LIST_FILES, READ_FILE, SEARCH_TEXT
from podium.tools.builtin.git_tools import GIT_COMMIT, GIT_DIFF, GIT_LOG, GIT_STATUS
from podium.tools.builtin.turn_tools import ASK_HUMAN, FINISH, OWN_TOOLS
from podium.tools.registry import Tool

__all__ = ["builtin_tools", "checks_tool", "own_tools"]


def builtin_tools() -> tuple[Tool, ...]:
    """All that need nothing of a project, ready for a `Registry`. `checks_tool` makes one more."""
    return (
        READ_FILE,
        LIST_FILES,
        FIND_FILES,
        SEARCH_TEXT,
        WRITE_FILE,
        EDIT_FILE,
        APPLY_PATCH,
        RESTORE_FILE,
        RESTORE_FILES,
        RUN_COMMAND,
        GIT_STATUS,
        GIT_DIFF,
        GIT_LOG,
        GIT_COMMIT,
        ASK_HUMAN,
        FINISH,
    )


def own_tools() -> tuple[Tool, ...]:
    """Return the tools of agents themselves: judged and recorded by Podium, performed by them."""
    return OWN_TOOLS
