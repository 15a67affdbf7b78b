"""The duet: two agents hand messages to each other until a person's task is done."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.jobs.duet.flow import play_duet
    from podium.jobs.duet.message_router import Chair, DuetKit, Stage
    from podium.jobs.duet.options import DuetOptions, PairOptions
    from podium.jobs.duet.prompts import primer

__all__ = [
    "Chair",
    "DuetKit",
    "DuetOptions",
    "PairOptions",
    "Stage",
    "play_duet",
    "primer",
]

export_lazily(
    __name__,
    {
        "Chair": "message_router",
        "DuetKit": "message_router",
        "Stage": "message_router",
        "DuetOptions": "options",
        "PairOptions": "options",
        "primer": "prompts",
        "play_duet": "flow",
    },
)
