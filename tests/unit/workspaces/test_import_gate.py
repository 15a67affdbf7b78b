"""The pure rules of the import gate."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.core.errors import ImportRefused
from podium.core.protected_paths import is_spelling_of, protected_name, zone_holding
from podium.git.commit_changes import (
    CommitChange,
    change_problem,
    hidden_by_link,
    link_problem,
    read_bundle,
)

NAMES = [".git", ".GIT", ".Git", "git~1", "GIT~2", ".git.", ".git ", ".git . .", ".g\u200cit", "\ufeff.git",
         ".git::$INDEX_ALLOCATION", ".git:x", "x\\.git", ".git\\x"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_these_are_names_of_a_git_directory_somewhere(name: str) -> None:
    assert protected_name(name) == ".git"


@pytest.mark.parametrize(
    "name", ["git", ".gitignore", ".github", "x.git", "git~", ".gitx", "..git"]
)
def test_these_are_ordinary_names(name: str) -> None:
    assert not protected_name(name)
    assert not is_spelling_of(name, ".gitmodules")


@pytest.mark.parametrize(
    "name",
    [".gitmodules", ".GITMODULES", "gitmod~1", "GI7EBA~1", ".gitmodules ", ".gitmod\u200dules"],
)
def test_these_set_up_submodules_somewhere(name: str) -> None:
    assert is_spelling_of(name, ".gitmodules")


def test_a_zone_covers_itself_what_is_in_it_and_what_would_replace_it() -> None:
    zones = ("conf/prod", "Ümlaut")
    for path in ("conf/prod", "conf/prod/a/b", "CONF/Prod/x", "conf", "u\u0308mlaut/x"):
        assert zone_holding(path, zones), path
    for path in ("conf/production", "conf/dev", "x/conf/prod", "confprod"):
        assert not zone_holding(path, zones), path


@pytest.mark.parametrize(
    "target",
    [
        "/etc",
        "../..",
        "../../x",
        "a/../../..",
        "x/..",
        "C:\\x",
        "..\\x",
        "",
        "a\0b",
        ".git/config",
        "../.Podium/prompts/plan.md",
    ],
)
def test_these_links_may_not_come_back(target: str) -> None:
    assert link_problem("dir/link", target)


@pytest.mark.parametrize("target", ["file", "..", "../file", "..//x", "./a", "a/b/c", "../dir"])
def test_these_links_may_come_back(target: str) -> None:
    assert link_problem("dir/link", target) == ""


@given(
    depth=st.integers(0, 4),
    parts=st.lists(st.sampled_from(["..", ".", "a", "b", "", "..."]), min_size=1, max_size=8),
)
def test_a_link_that_may_come_back_never_leads_above_the_top(depth: int, parts: list[str]) -> None:
    path, target = "/".join(["d"] * depth + ["link"]), "/".join(parts)
    if not link_problem(path, target):
        landing = posixpath.normpath(posixpath.join("/top", posixpath.dirname(path), target))
        assert landing == "/top" or landing.startswith("/top/")


def test_a_link_and_a_folder_that_differ_by_case_are_found() -> None:
    assert hidden_by_link(["A"], ["A", "a/hooks/x"])
    assert hidden_by_link(["a/B"], ["a/B", "A/b/c"])
    assert hidden_by_link(["A"], ["A", "b/a", "ab"]) == ""


@pytest.mark.parametrize("path", ["a//b", "../x", "a/./b", "a/../b", "a\\..\\b", "x" * 4001])
def test_paths_that_lead_elsewhere_are_faulty(path: str) -> None:
    assert change_problem(CommitChange("c", path, "000000", "100644", "b"))


@pytest.mark.parametrize("mode", ["100600", "040000", "160000", "123456"])
def test_odd_modes_are_faulty(mode: str) -> None:
    assert change_problem(CommitChange("c", "a", "000000", mode, "b"))


def test_a_bundle_is_read_only_with_the_one_ref() -> None:
    tip, old = b"1" * 40, b"2" * 40
    good = b"# v2 git bundle\n-" + old + b" words\n" + tip + b" refs/heads/x\n\nPACKdata\n\nmore"
    bundle = read_bundle(good, "refs/heads/x")
    assert (bundle.tip, bundle.needed, bundle.pack) == ("1" * 40, ("2" * 40,), b"PACKdata\n\nmore")
    for bad in (
        b"",
        b"PACK",
        good.replace(b"refs/heads/x", b"refs/heads/y"),
        good.replace(b"\n\nPACK", b"\n" + tip + b" refs/heads/y\n\nPACK"),
        good.replace(b" refs/heads/x", b""),
        good.replace(b"v2", b"v9"),
        b"# v3 git bundle\n@filter=blob:none\n" + tip + b" refs/heads/x\n\nPACK",
        b"# v2 git bundle\n" + b"-" + old + b" " + b"x" * 200_000 + b"\n\nPACK",
    ):
        with pytest.raises(ImportRefused):
            read_bundle(bad, "refs/heads/x")


@given(st.binary(max_size=300))
def test_whatever_a_workspace_gives_out_is_read_or_refused(content: bytes) -> None:
    with pytest.raises(ImportRefused):
        read_bundle(content, "refs/heads/x")
