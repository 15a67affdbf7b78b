"""Conflict of a message with a directive: the rules of all of them, the highest directive first."""

from __future__ import annotations

from functools import lru_cache

from podium.core.packs import Pack
from podium.jobs.operator.judgement.directives import business_rules, safety_rules
from podium.jobs.operator.judgement.directives.pack_rules import declared_rule
from podium.jobs.operator.judgement.directives.rules import Case, Rule
from podium.jobs.operator.models import Conflict, Directive, Message, Reading

RULES: tuple[Rule, ...] = (*safety_rules.RULES, *business_rules.RULES)
"""In the order of the directives. What a person wants, and how soon, is the last of them and against none."""


def find_conflict(message: Message, reading: Reading, pack: Pack) -> Conflict | None:
    """The highest directive that the message, or what was read in it, is against."""
    rule = violated_rule(message, reading, pack)
    if rule is None:
        return None
    return Conflict(directive=rule.directive, because=rule.because)


def violated_rule(message: Message, reading: Reading, pack: Pack) -> Rule | None:
    """The first rule that holds, by which `find_conflict` decides."""
    case = Case(message, reading, pack)
    return next((rule for rule in _rules_for(pack) if rule.applies(case)), None)


@lru_cache(maxsize=16)
def _rules_for(pack: Pack) -> tuple[Rule, ...]:
    """All rules, the highest directive first; of one directive those that hold everywhere come first."""
    if not pack.registry.rules:
        return RULES
    order = list(Directive)
    declared = map(declared_rule, pack.registry.rules)
    return tuple(sorted((*RULES, *declared), key=lambda rule: order.index(rule.directive)))
