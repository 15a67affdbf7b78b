"""What a project says of its playbooks, under `flows: playbook:` in podium.yaml."""

from __future__ import annotations

from podium.domain.model import Noun
from podium.domain.playbooks import PlaybookLimits

OWN_LIMITS = PlaybookLimits(
    turns=100, tool_calls=300, tokens=500_000, usd=10.0, minutes=60.0, same_results=4
)
"""What holds where neither playbook nor project say anything."""


class PlaybookOptions(Noun):
    """Options of `podium playbook run`."""

    agent: str = ""
    """Agent to use without `--agent`. Empty: the only one there is."""
    limits: PlaybookLimits = PlaybookLimits()
    """Limits for playbooks that set none. Unless set: 100 turns, 300 calls, 500,000 tokens, 10 USD, 60 minutes, 4 equal results."""
