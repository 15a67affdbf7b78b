"""The gate of programs on terminals: the house's own, under which a program may read the messages that it was handed as files."""

from __future__ import annotations

import os
from pathlib import Path

from podium.domain.gating import Budget, Call, Decision, Effect, GateContext, Quota, Tier
from podium.ports import Gate

RULE = "duet-messages"


class MessagesGate:
    """Lets files of one private folder be read; all else is as the gate beneath says."""

    def __init__(self, gate: Gate, folder: str) -> None:
        """Nobody but Podium can write to `folder`, so no link in it leads elsewhere."""
        self._gate = gate
        self._folder = folder

    def decide(self, call: Call, context: GateContext) -> Decision:
        if call.tool == "read_file" and self._is_message(str(call.arguments.get("path", ""))):
            reason = "it is a message that this program was handed"
            return Decision(effect=Effect.ALLOW, tier=Tier.T0, rule=RULE, reason=reason)
        return self._gate.decide(call, context)

    def quotas_for(self, call: Call, context: GateContext) -> tuple[Quota, ...]:
        return self._gate.quotas_for(call, context)

    def passed_over(self, real_path: str, root: str) -> bool:
        return self._gate.passed_over(real_path, root)

    @property
    def budgets(self) -> tuple[Budget, ...]:
        return self._gate.budgets

    @property
    def approval_seconds(self) -> float:
        return self._gate.approval_seconds

    def _is_message(self, path: str) -> bool:
        """A file `…/SIDE/messages/NAME.txt` of the folder."""
        if not Path(path).is_absolute() or os.path.normpath(path) != path:
            return False
        place = Path(path)
        if not place.is_relative_to(self._folder):
            return False
        parts = place.relative_to(self._folder).parts
        return len(parts) == 3 and parts[1] == "messages"
