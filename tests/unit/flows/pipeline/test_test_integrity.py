"""Comparison of tests and checks: cheats are reported, honest changes pass."""

from __future__ import annotations

import pytest

from podium.jobs.pipeline.test_integrity import (
    FileVersions,
    compare,
    is_check_settings,
    is_test_path,
    stopping,
)
from tests.unit.flows.pipeline.integrity_cases import BASE, CHEATS, HONEST, Change
from tests.unit.flows.pipeline.shop_cases import SHOP, SHOP_CHEATS, SHOP_HONEST

ALL_CHEATS = (*CHEATS, *SHOP_CHEATS)


def found(change: Change) -> list[tuple[str, str]]:
    base = SHOP if change in (*SHOP_CHEATS, *SHOP_HONEST) else BASE
    versions = [FileVersions(path, base.get(path), text) for path, text in change.files.items()]
    tree = {path: text for path, text in {**base, **change.files}.items() if text is not None}
    same = {path: text for path, text in base.items() if path not in change.files}
    tests = [text for path, text in same.items() if is_test_path(path)]
    settings = {path: text for path, text in same.items() if is_check_settings(path)}
    findings = stopping(compare(versions, tuple(tree), tests, settings))
    return [(finding.kind, finding.sentence) for finding in findings]


@pytest.mark.parametrize("change", [c for c in ALL_CHEATS if not c.miss], ids=lambda c: c.name)
def test_cheat_is_found_with_its_kind_and_place(change: Change) -> None:
    findings = found(change)
    assert change.kind in [kind for kind, _ in findings], findings
    assert any(sentence.startswith(tuple(change.files)) for _, sentence in findings)


@pytest.mark.parametrize("change", [c for c in ALL_CHEATS if c.miss], ids=lambda c: c.name)
def test_known_miss_is_still_one(change: Change) -> None:
    assert found(change) == []


@pytest.mark.parametrize("change", [*HONEST, *SHOP_HONEST], ids=lambda c: c.name)
def test_honest_change_is_not_stopped(change: Change) -> None:
    assert found(change) == []
