"""The duet: two agents hand messages to each other until a person's task is done."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.flows.duet.kit import Chair, DuetKit, Stage
    from podium.flows.duet.options import DuetOptions, PairOptions
    from podium.flows.duet.prompting import primer
    from podium.flows.duet.story import play_duet

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
        "Chair": "kit",
        "DuetKit": "kit",
        "Stage": "kit",
        "DuetOptions": "options",
        "PairOptions": "options",
        "primer": "prompting",
        "play_duet": "story",
    },
)
