"""The duet: two agents hand messages to each other until a person's task is done."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.jobs.duet.flow import DuetDeps, DuetSide, DuetSides, play_duet
    from podium.jobs.duet.models import DuetOptions, PairOptions
    from podium.jobs.duet.prompts import primer

__all__ = [
    "DuetDeps",
    "DuetOptions",
    "DuetSide",
    "DuetSides",
    "PairOptions",
    "play_duet",
    "primer",
]

export_lazily(
    __name__,
    {
        "DuetSide": "flow",
        "DuetDeps": "flow",
        "DuetSides": "flow",
        "DuetOptions": "models",
        "PairOptions": "models",
        "primer": "prompts",
        "play_duet": "flow",
    },
)
