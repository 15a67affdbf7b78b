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
    named = [(f"{location}/name", tool.name) for location, tool in registry_check.located_tools()]
    named += [
        (f"{location}/name", skill.name) for location, skill in registry_check.located_skills()
    ]
    _once(registry_check, "tool or skill", named)
    _once(
        registry_check,
        "domain",
        _locations("domains", "name", (row.name for row in registry.domains)),
    )
    _once(
        registry_check,
        "setting",
        _locations("settings", "name", (one.name for one in registry.settings)),
    )
    _once(
        registry_check,
        "context",
        _locations("contexts", "name", (one.name for one in registry.contexts)),
    )
    examples = (example.tool for example in registry.tier_examples)
    _once(registry_check, "tier example", _locations("tier_examples", "tool", examples))
    for kind in registry.vocabulary:
        if not is_kind(kind):
            registry_check.problems.add(f"/vocabulary/{kind}", f"{kind!r} is no kind of field")
    if not registry.tools:
        registry_check.problems.add("/tools", "is empty; a pack is there for its tools")
    _check_own_name(registry_check)
    _check_patterns(registry_check)
    _check_domains(registry_check)
    _check_floors(registry_check)


def _check_own_name(registry_check: RegistryCheck) -> None:
    """Runs find a pack by its name, and it keeps its own files under it."""
    name, folder = registry_check.registry.pack, registry_check.files.folder.resolve()
    if folder.name != name:
        problem = f"{name!r} lies in a folder called {folder.name!r}; give both the same name"
        registry_check.problems.add("/pack", problem)
    elif not is_shipped(folder) and _is_taken(registry_check, shipped_packs() / name):
        problem = f"{name!r} comes with Podium; give this pack and its folder another name"
        registry_check.problems.add("/pack", problem)


def _is_taken(registry_check: RegistryCheck, shipped: Path) -> bool:
    """Check for another pack at this path. One with the same files is not another one."""
    if not (shipped / REGISTRY_FILE).is_file():
        return False
    return pack_digest(shipped) != registry_check.files.digest


def _locations(part: str, key: str, names: Iterable[str]) -> list[tuple[str, str]]:
    return [(f"/{part}/{number}/{key}", name) for number, name in enumerate(names)]


def _once(registry_check: RegistryCheck, what: str, named: Iterable[tuple[str, str]]) -> None:
    first: dict[str, str] = {}
    for location, name in named:
        if name in first:
            registry_check.problems.add(
                location, f"{what} {name!r} is there already, at {first[name]}"
            )
        first.setdefault(name, location)


def _check_patterns(registry_check: RegistryCheck) -> None:
    for number, row in enumerate(registry_check.registry.domains):
        if not row.patterns:
            registry_check.problems.add(
                f"/domains/{number}/patterns", "is empty; no tool can fall under it"
            )
        for index, pattern in enumerate(row.patterns):
            if not _PATTERN.fullmatch(pattern):
                problem = (
                    f"{pattern!r} is no pattern: names with `*` for any characters, as in quote.*"
                )
                registry_check.problems.add(f"/domains/{number}/patterns/{index}", problem)


def _check_domains(registry_check: RegistryCheck) -> None:
    rows = {row.name for row in registry_check.registry.domains}
    named = [(location, tool.domain) for location, tool in registry_check.located_tools()]
    named += [(location, skill.domain) for location, skill in registry_check.located_skills()]
    for location, domain in named:
        if domain and domain not in rows:
            names = ", ".join(sorted(rows)) or "none"
            registry_check.problems.add(
                f"{location}/domain", f"there is no domain {domain!r}; there are: {names}"
            )


def _check_floors(registry_check: RegistryCheck) -> None:
    patterns = sum(len(row.patterns) for row in registry_check.registry.domains)
    registry_check.effort.spend(len(registry_check.registry.tools) * patterns * STEPS_PER_PATTERN)
    for location, tool in registry_check.located_tools():
        matches = fits(registry_check.registry, tool.name)
        if not matches:
            problem = (
                f"{tool.name!r} fits no pattern of any domain; add one that says how risky it is"
            )
            registry_check.problems.add(f"{location}/name", problem)
            continue
        equal = {fit.row.name for fit in matches if fit.specificity == matches[0].specificity}
        if len(equal) > 1:
            problem = f"{tool.name!r} fits {' and '.join(sorted(equal))} equally well; make one more specific"
            registry_check.problems.add(f"{location}/name", problem)
        floor, reason = floor_tier(registry_check.registry, tool.name)
        if tool.tier < floor:
            registry_check.problems.add(
                f"{location}/tier", f"{tool.tier} is below {floor}: {reason}"
            )
