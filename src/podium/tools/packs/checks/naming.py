"""Names are there once, and every tool falls under a domain that says how risky it is at least."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from podium.core.packs import fits, floor_tier
from podium.tools.packs.checks.registry_check import RegistryCheck
from podium.tools.packs.effort import STEPS_PER_PATTERN
from podium.tools.packs.files import REGISTRY_FILE, pack_digest
from podium.tools.packs.kinds import is_kind
from podium.tools.packs.shipped import is_shipped, shipped_packs

_PATTERN = re.compile(r"[a-z0-9_.*?]+")


def check(registry_check: RegistryCheck) -> None:
    registry = registry_check.registry
    named = [(f"{place}/name", tool.name) for place, tool in registry_check.located_tools()]
    named += [(f"{place}/name", skill.name) for place, skill in registry_check.located_skills()]
    _once(registry_check, "tool or skill", named)
    _once(
        registry_check, "domain", _places("domains", "name", (row.name for row in registry.domains))
    )
    _once(
        registry_check,
        "setting",
        _places("settings", "name", (one.name for one in registry.settings)),
    )
    _once(
        registry_check,
        "context",
        _places("contexts", "name", (one.name for one in registry.contexts)),
    )
    examples = (example.tool for example in registry.tier_examples)
    _once(registry_check, "tier example", _places("tier_examples", "tool", examples))
    for kind in registry.vocabulary:
        if not is_kind(kind):
            registry_check.faults.add(f"/vocabulary/{kind}", f"{kind!r} is no kind of field")
    if not registry.tools:
        registry_check.faults.add("/tools", "is empty; a pack is there for its tools")
    _check_own_name(registry_check)
    _check_patterns(registry_check)
    _check_domains(registry_check)
    _check_floors(registry_check)


def _check_own_name(registry_check: RegistryCheck) -> None:
    """Runs find a pack by its name, and it keeps its own files under it."""
    name, folder = registry_check.registry.pack, registry_check.files.folder.resolve()
    if folder.name != name:
        words = f"{name!r} lies in a folder called {folder.name!r}; give both the same name"
        registry_check.faults.add("/pack", words)
    elif not is_shipped(folder) and _is_taken(registry_check, shipped_packs() / name):
        words = f"{name!r} comes with Podium; give this pack and its folder another name"
        registry_check.faults.add("/pack", words)


def _is_taken(registry_check: RegistryCheck, shipped: Path) -> bool:
    """Whether another pack is there. One with the same files is no other one."""
    if not (shipped / REGISTRY_FILE).is_file():
        return False
    return pack_digest(shipped) != registry_check.files.digest


def _places(part: str, key: str, names: Iterable[str]) -> list[tuple[str, str]]:
    return [(f"/{part}/{number}/{key}", name) for number, name in enumerate(names)]


def _once(registry_check: RegistryCheck, what: str, named: Iterable[tuple[str, str]]) -> None:
    first: dict[str, str] = {}
    for place, name in named:
        if name in first:
            registry_check.faults.add(place, f"{what} {name!r} is there already, at {first[name]}")
        first.setdefault(name, place)


def _check_patterns(registry_check: RegistryCheck) -> None:
    for number, row in enumerate(registry_check.registry.domains):
        if not row.patterns:
            registry_check.faults.add(
                f"/domains/{number}/patterns", "is empty; no tool can fall under it"
            )
        for index, pattern in enumerate(row.patterns):
            if not _PATTERN.fullmatch(pattern):
                words = (
                    f"{pattern!r} is no pattern: names with `*` for any characters, as in quote.*"
                )
                registry_check.faults.add(f"/domains/{number}/patterns/{index}", words)


def _check_domains(registry_check: RegistryCheck) -> None:
    rows = {row.name for row in registry_check.registry.domains}
    named = [(place, tool.domain) for place, tool in registry_check.located_tools()]
    named += [(place, skill.domain) for place, skill in registry_check.located_skills()]
    for place, domain in named:
        if domain and domain not in rows:
            known = ", ".join(sorted(rows)) or "none"
            registry_check.faults.add(
                f"{place}/domain", f"there is no domain {domain!r}; there are: {known}"
            )


def _check_floors(registry_check: RegistryCheck) -> None:
    patterns = sum(len(row.patterns) for row in registry_check.registry.domains)
    registry_check.effort.spend(len(registry_check.registry.tools) * patterns * STEPS_PER_PATTERN)
    for place, tool in registry_check.located_tools():
        found = fits(registry_check.registry, tool.name)
        if not found:
            words = (
                f"{tool.name!r} fits no pattern of any domain; add one that says how risky it is"
            )
            registry_check.faults.add(f"{place}/name", words)
            continue
        equal = {fit.row.name for fit in found if fit.specificity == found[0].specificity}
        if len(equal) > 1:
            words = f"{tool.name!r} fits {' and '.join(sorted(equal))} equally well; make one more specific"
            registry_check.faults.add(f"{place}/name", words)
        floor, reason = floor_tier(registry_check.registry, tool.name)
        if tool.tier < floor:
            registry_check.faults.add(f"{place}/tier", f"{tool.tier} is below {floor}: {reason}")
