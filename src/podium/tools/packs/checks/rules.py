"""Rules of a pack: each can be matched in bounded time, and says what it refuses and what it allows."""

from __future__ import annotations

from podium.core.regex_cost import RegexTooCostly, pattern_cost
from podium.tools.packs.checks.registry_check import RegistryCheck


def check(registry_check: RegistryCheck) -> None:
    names: set[str] = set()
    for number, rule in enumerate(registry_check.registry.rules):
        location = f"/rules/{number}"
        if rule.name in names:
            registry_check.problems.add(f"{location}/name", f"rule {rule.name!r} already exists")
        names.add(rule.name)
        for part in ("patterns", "refuses", "allows"):
            if not getattr(rule, part):
                registry_check.problems.add(f"{location}/{part}", "is empty; add at least one")
        for index, pattern in enumerate(rule.patterns):
            try:
                pattern_cost(pattern)
            except RegexTooCostly as error:
                registry_check.problems.add(
                    f"{location}/patterns/{index}", f"{pattern[:100]!r} {error}"
                )
