"""The stories Podium tells. Each reads top to bottom and gets what it needs handed to it."""

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
