"""The tools that come with Podium."""

from podium.tools.builtin.commands import RUN_COMMAND
from podium.tools.builtin.editing import RESTORE_FILE, WRITE_FILE
from podium.tools.builtin.editing_in_place import EDIT_FILE
from podium.tools.builtin.finishing import FINISH
from podium.tools.builtin.git import GIT_COMMIT, GIT_DIFF, GIT_STATUS
from podium.tools.builtin.of_agents import OWN_TOOLS
from podium.tools.builtin.reading import LIST_FILES, READ_FILE, SEARCH_TEXT
from podium.tools.registry import Tool

__all__ = ["builtin_tools", "own_tools"]


def builtin_tools() -> tuple[Tool, ...]:
    """All of them, ready for a `Registry`."""
    return (
        READ_FILE,
        LIST_FILES,
        SEARCH_TEXT,
        WRITE_FILE,
        EDIT_FILE,
        RESTORE_FILE,
        RUN_COMMAND,
        GIT_STATUS,
        GIT_DIFF,
        GIT_COMMIT,
        FINISH,
    )


def own_tools() -> tuple[Tool, ...]:
    """What agents have themselves: judged and recorded by Podium, performed by them."""
    return OWN_TOOLS
