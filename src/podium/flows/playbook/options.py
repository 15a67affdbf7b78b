"""What a project says of its playbooks, under `flows: playbook:` in podium.yaml."""

from __future__ import annotations

from podium.domain.model import Noun
from podium.domain.playbooks import PlaybookLimits

OWN_LIMITS = PlaybookLimits(
    turns=100, tool_calls=300, tokens=500_000, usd=10.0, minutes=60.0, same_results=4
)
"""What holds where neither playbook nor project say anything."""


class PlaybookOptions(Noun):
    """Who follows playbooks here, and how far."""

    agent: str = ""
    """Who follows them when the command line names nobody. Empty: the only agent there is."""
    limits: PlaybookLimits = PlaybookLimits()
    """Where runs end whose playbook says nothing of it."""
