"""Layer 2, skills: what was understood becomes an ordered, complete plan. Nothing runs here."""

from podium.flows.operator.skills.planning import edited_plan, make_plan, undo_plan

__all__ = ["edited_plan", "make_plan", "undo_plan"]
