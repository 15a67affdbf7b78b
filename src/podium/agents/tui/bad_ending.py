"""What it means when a program says that its turn came to no good end."""

from __future__ import annotations

import re
from datetime import datetime

from podium.agents.headless.ending import is_overflow, plain_words, reset_time
from podium.domain.errors import (
    AgentLost,
    AgentNotLoggedIn,
    ContextOverflow,
    PodiumError,
    RateLimited,
)

_LIMITED = re.compile(r"\b429\b|rate.?limit|usage limit|quota|too many requests", re.IGNORECASE)
_NOT_LOGGED_IN = re.compile(
    r"\b401\b|invalid (api )?key|not logged in|please (run )?/?log ?in|unauthori[sz]ed",
    re.IGNORECASE,
)


def trouble_of(who: str, words: str, now: datetime) -> PodiumError:
    """The error of the tree for what it says. Programs on terminals give a provider's answer in words alone."""
    said = plain_words(words) or "it does not say why"
    if is_overflow(words):
        return ContextOverflow(f"the conversation of {who} is too long: {said}; begin a new one")
    if _LIMITED.search(words):
        return RateLimited(f"{who} has been asked too much: {said}", reset_time(words, now))
    if _NOT_LOGGED_IN.search(words):
        return AgentNotLoggedIn(f"{who} is not logged in: {said}; log in with its own command")
    return AgentLost(f"{who} ended its turn without an answer: {said}; retry it")
