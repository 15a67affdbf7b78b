"""Comparison of tests and checks: cheats are reported, honest changes pass."""

from __future__ import annotations

import pytest

from podium.jobs.pipeline.test_integrity import FileVersions, compare, is_test_path, stopping
from tests.unit.flows.pipeline.integrity_cases import BASE, CHEATS, HONEST, Change


def versions(change: Change) -> list[FileVersions]:
    return [FileVersions(path, BASE.get(path), text) for path, text in change.files.items()]


def found(change: Change) -> list[tuple[str, str]]:
    tree = {path: text for path, text in {**BASE, **change.files}.items() if text is not None}
    unchanged = [
        text for path, text in BASE.items() if is_test_path(path) and path not in change.files
    ]
    findings = stopping(compare(versions(change), tuple(tree), unchanged))
    return [(finding.kind, finding.sentence) for finding in findings]


@pytest.mark.parametrize("change", [c for c in CHEATS if not c.miss], ids=lambda c: c.name)
def test_cheat_is_found_with_its_kind_and_place(change: Change) -> None:
    findings = found(change)
    assert change.kind in [kind for kind, _ in findings], findings
    assert any(sentence.startswith(tuple(change.files)) for _, sentence in findings)


@pytest.mark.parametrize("change", [c for c in CHEATS if c.miss], ids=lambda c: c.name)
def test_known_miss_is_still_one(change: Change) -> None:
    assert found(change) == []


@pytest.mark.parametrize("change", HONEST, ids=lambda c: c.name)
def test_honest_change_is_not_stopped(change: Change) -> None:
    assert found(change) == []
