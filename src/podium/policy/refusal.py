"""Refusal by a built-in check, and report of a faulty policy."""

from __future__ import annotations

from collections.abc import Sequence

from podium.core.decisions import Tier
from podium.core.errors import BadInput


class CallDenied(Exception):
    """A built-in check denies the call. Raised and answered inside the gate, never beyond it."""

    def __init__(self, rule: str, reason: str, tier: Tier = Tier.T4) -> None:
        super().__init__(reason)
        self.rule = rule
        self.reason = reason
        self.tier = tier
        """The risk of the refused thing; what cannot be seen through is taken for the worst."""


class InvalidPolicy(BadInput):
    """A policy cannot be used. Says which layer, which rule and which key, so that a file and line can be added."""

    def __init__(
        self, problem: str, *, layer: str, rule: str = "", key: Sequence[str | int] = ()
    ) -> None:
        key_path = ".".join(str(part) for part in key)
        named = f"rule {rule!r}: " if rule else ""
        super().__init__(f"{layer} policy, {key_path}: {named}{problem}")
        self.problem = problem
        self.layer = layer
        self.rule = rule
        self.key = tuple(key)
        """Path below `policy`, such as ("rules", 3, "match", 0)."""
