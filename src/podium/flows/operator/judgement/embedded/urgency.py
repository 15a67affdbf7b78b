"""How soon somebody wants it, by the words they use."""

from __future__ import annotations

import re

from podium.domain.operating import Urgency

_SIGNS = (
    (
        Urgency.LOW,
        r"no (?:rush|hurry|worries on timing)|not (?:very |that |so |super )?urgent|isn'?t urgent|whenever|when you (?:can|get a chance)"
        r"|at your leisure|low priority|some ?time (?:next|this) |no need to hurry|take your time|in your own time",
    ),
    (
        Urgency.CRITICAL,
        r"emergency|critical|life[- ]threatening|flood(?:ing|ed)|collaps(?:ed|ing)|(?:leaking|pouring|coming) (?:in )?(?:right )?now"
        r"|immediate danger|on fire|extremely urgent|super urgent|drop everything|code red|sev ?1|p0",
    ),
    (
        Urgency.HIGH,
        r"urgent(?:ly)?|a\.?s\.?a\.?p|as soon as possible|right away|right now|straight ?away|immediately|at once|high priority"
        r"|top priority|quickly|hurry|time[- ]sensitive|before it'?s too late|leak(?:s|ing)? (?:badly|everywhere)|today please",
    ),
)  # fmt: skip
"""Looked for in this order: `not urgent` has the word `urgent` in it."""
_PATTERNS = tuple(
    (urgency, re.compile(rf"(?<!\w)(?:{signs})(?!\w)", re.IGNORECASE)) for urgency, signs in _SIGNS
)


def urgency_of(text: str) -> Urgency:
    """Normal, unless the words say otherwise."""
    return next((urgency for urgency, signs in _PATTERNS if signs.search(text)), Urgency.NORMAL)
