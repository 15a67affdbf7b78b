"""Layer 2, skills: what was understood becomes an ordered, complete plan. Nothing runs here."""

from podium.jobs.operator.skills.plan import edited_plan, make_plan, undo_plan

__all__ = ["edited_plan", "make_plan", "undo_plan"]
