"""The stories Podium tells. Each reads top to bottom and gets what it needs handed to it."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.flows.asking import Player, ask, ask_until_answered
    from podium.flows.rehearsal import (
        RehearsalKit,
        RehearsalOptions,
        RehearsalPlan,
        Scene,
        rehearsal,
    )
    from podium.flows.spending import Purse

__all__ = [
    "Player",
    "Purse",
    "RehearsalKit",
    "RehearsalOptions",
    "RehearsalPlan",
    "Scene",
    "ask",
    "ask_until_answered",
    "rehearsal",
]

export_lazily(
    __name__,
    {
        "Player": "asking",
        "ask": "asking",
        "ask_until_answered": "asking",
        "RehearsalKit": "rehearsal",
        "RehearsalOptions": "rehearsal",
        "RehearsalPlan": "rehearsal",
        "Scene": "rehearsal",
        "rehearsal": "rehearsal",
        "Purse": "spending",
    },
)
