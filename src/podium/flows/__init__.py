"""The stories Podium tells. Each reads top to bottom and gets what it needs handed to it."""

from podium.flows.rehearsal import RehearsalKit, RehearsalPlan, Scene, rehearsal

__all__ = ["RehearsalKit", "RehearsalPlan", "Scene", "rehearsal"]
