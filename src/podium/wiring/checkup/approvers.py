"""Groups of approvers that rules ask for."""

from __future__ import annotations

from podium.wiring.checkup.finding import Finding, good, weak
from podium.wiring.podium import Podium


def check_approvers(podium: Podium) -> Finding:
    """What waits for a group without members waits until its deadline."""
    empty = {
        group: rule
        for rule, group in _asked_for(podium)
        if not podium.settings.approvers.get(group)
    }
    if empty:
        named = ", ".join(f"{group!r} (rule {rule!r})" for group, rule in sorted(empty.items()))
        mend = "name its members under `approvers:`; until then nobody can say yes"
        return weak("approvers", f"nobody belongs to {named}", mend)
    return good("approvers", "every group that a rule asks for has members")


def _asked_for(podium: Podium) -> list[tuple[str, str]]:
    """Rule and group, of every rule that names one; what is no list of rules was told already."""
    found = []
    for layer in podium.configuration.layers:
        rules = (layer.located.data.get("policy") or {}).get("rules")
        for rule in rules if isinstance(rules, list) else []:
            groups = rule.get("approvals") if isinstance(rule, dict) else None
            for group in groups if isinstance(groups, list) else []:
                found.append((str(rule.get("name", "")), str(group)))
    return found
