"""Files that `make dist` accepts and rejects, without building anything."""

from __future__ import annotations

import pytest

from scripts.dist import (
    MAX_BYTES,
    Problem,
    check_contents,
    check_size,
    check_tag,
    sdist_names,
    wheel_names,
)

TRACKED = [
    "README.md",
    "docs/agents.md",
    "packs/roofing/pack.yaml",
    "src/podium/__init__.py",
    "tests/unit/test_it.py",
]


def test_wheel_holds_the_package_and_the_folders_that_are_put_into_it() -> None:
    assert wheel_names(TRACKED) == {"podium/__init__.py", "podium/packs/roofing/pack.yaml"}


def test_sdist_holds_what_a_build_needs_and_no_tests() -> None:
    expected = {"README.md", "packs/roofing/pack.yaml", "src/podium/__init__.py"}
    assert sdist_names(TRACKED) == expected | {"pyproject.toml", ".gitignore", "PKG-INFO"}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"podium/a.py"}, "it lacks 1 files: podium/b.yaml"),
        ({"podium/a.py", "podium/b.yaml", "tests/c.py"}, "it must not hold 1 files: tests/c.py"),
    ],
)
def test_missing_and_surplus_files_are_named(names: set[str], message: str) -> None:
    with pytest.raises(Problem, match=message):
        check_contents("it", names, {"podium/a.py", "podium/b.yaml"})


def test_file_above_the_limit_is_not_published() -> None:
    check_size("it", MAX_BYTES)
    with pytest.raises(Problem, match=f"more than {MAX_BYTES:,}"):
        check_size("it", MAX_BYTES + 1)


def test_tag_needs_its_version_and_a_dated_section_of_the_changelog() -> None:
    check_tag("v1.2.3", "1.2.3", "## [Unreleased]\n\n## [1.2.3] - 2026-11-18\n")
    with pytest.raises(Problem, match=r"tag 'v1\.2\.4' is not version 1\.2\.3"):
        check_tag("v1.2.4", "1.2.3", "## [1.2.4] - 2026-11-18\n")
    with pytest.raises(Problem, match="YYYY-MM-DD"):
        check_tag("v1.2.3", "1.2.3", "## [1.2.3] - unreleased\n")
