"""The tools that come with Podium."""

from podium.tools.builtin.asking import ASK_HUMAN
from podium.tools.builtin.checks import checks_tool
from podium.tools.builtin.commands import RUN_COMMAND
from podium.tools.builtin.editing import RESTORE_FILE, WRITE_FILE
from podium.tools.builtin.editing_in_place import EDIT_FILE
from podium.tools.builtin.finding import FIND_FILES
from podium.tools.builtin.finishing import FINISH
from podium.tools.builtin.git import GIT_COMMIT, GIT_DIFF, GIT_STATUS
from podium.tools.builtin.git_history import GIT_LOG
from podium.tools.builtin.of_agents import OWN_TOOLS
from podium.tools.builtin.patching import APPLY_PATCH, RESTORE_FILES
from podium.tools.builtin.reading import LIST_FILES, READ_FILE, SEARCH_TEXT
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
    """What agents have themselves: judged and recorded by Podium, performed by them."""
    return OWN_TOOLS
