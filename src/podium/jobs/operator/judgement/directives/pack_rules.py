"""Rules that a pack declares, as rules of the prime directives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from podium.core.packs import PackRule
from podium.core.regex_cost import pattern_cost
from podium.jobs.operator.judgement.directives.rules import Case, Rule, counts
from podium.jobs.operator.models import Directive


def declared_rule(declared: PackRule) -> Rule:
    """Build a rule of a pack. Its words count as those of the built-in rules do: not where they are denied or written down."""

    def applies(case: Case) -> bool:
        return any(
            counts(case, match, "is let be")
            for form in case.forms
            for pattern in declared.patterns
            for match in _matches(pattern, form)
        )

    return Rule(declared.name, Directive(declared.directive), declared.because, applies)


def _matches(pattern: str, form: str) -> Iterator[re.Match[str]]:
    """Matches in pieces that overlap by half, each as long as the pattern can be searched in bounded time."""
    # White space of a form is one blank or one line break.
    text = form.replace("\n", " ")
    longest = pattern_cost(pattern).longest or len(text) or 1
    step = max(1, longest // 2)
    for start in range(0, max(1, len(text) - step), step):
        yield from _compiled(pattern).finditer(text, start, start + longest)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
