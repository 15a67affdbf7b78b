"""Tools that perform the operations of work orders, and tools that file and deliver orders."""

from podium.jobs.sense.operations.delivery import deliver_order, file_candidate
from podium.jobs.sense.operations.file_edits import APPEND_TO_FILE, REPLACE_IN_FILE, set_session
from podium.jobs.sense.operations.file_moves import (
    COPY_FILE,
    MAKE_FOLDER,
    MOVE_FILE,
    TRASH_FILE,
    UNTRASH_FILE,
)
from podium.tools.registry import Tool

__all__ = ["order_tools", "sense_tools"]


def order_tools(sessions: str = "state/clc_sessions") -> tuple[Tool, ...]:
    """Beside the built-in ones, which undo most of them. `sessions`: their folder, from the root on."""
    return (
        REPLACE_IN_FILE,
        APPEND_TO_FILE,
        MAKE_FOLDER,
        MOVE_FILE,
        COPY_FILE,
        TRASH_FILE,
        UNTRASH_FILE,
        set_session(sessions),
    )


def sense_tools(inbox: str, candidates: str) -> tuple[Tool, ...]:
    """Return the loop's two tools; both folders are relative to the root."""
    return (file_candidate(candidates), deliver_order(inbox))
