"""The prime directives as rules: a table, in order, of what is never done whoever asks for it."""

from podium.flows.operator.judgement.directives.finding import RULES, find_conflict, violated_rule
from podium.flows.operator.judgement.directives.rules import Case, Rule

__all__ = ["RULES", "Case", "Rule", "find_conflict", "violated_rule"]
