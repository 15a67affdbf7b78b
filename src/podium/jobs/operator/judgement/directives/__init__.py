"""The prime directives as rules: a table, in order, of what is never done whoever asks for it."""

from podium.jobs.operator.judgement.directives.conflict import RULES, find_conflict, violated_rule
from podium.jobs.operator.judgement.directives.rules import Case, Rule

__all__ = ["RULES", "Case", "Rule", "find_conflict", "violated_rule"]
