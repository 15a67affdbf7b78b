"""Guarded files are known under every name that some file system takes for theirs; other files are not."""

from __future__ import annotations

import pytest

from podium.core.protected_paths import (
    GUARDED,
    ExtraProtectedPaths,
    drivers_changed,
    is_attributes,
    is_guarded,
)
from podium.policy import default_policy


@pytest.mark.parametrize(
    "path",
    [
        *("podium.yaml", "packages/shop/podium.yaml", "Podium.YAML", "PODIUM~1.YAM"),
        *(".envrc", "a/.ENVRC", ".envrc.", ".envrc ", ".envrc::$DATA", "ENVRC~1", ".en\u200cvrc"),
        *(".husky/pre-commit", ".vscode/tasks.json", ".v\u017fcode/settings.json", "VSCODE~1/x"),
        *(".github/workflows/ci.yml", ".GitHub/Workflows/x", "GITHUB~1/WORKFL~1/x"),
        *(".pre-commit-config.yaml", "tools/hooks/post-checkout", ".githooks/x", "lefthook.yml"),
        *(".devcontainer/devcontainer.json", ".idea/runConfigurations/a.xml", ".mise.toml"),
        *(".tool-versions", ".gitlab-ci.yml", "Jenkinsfile", "azure-pipelines.yml", "CODEOWNERS"),
        *(".gitmodules", "shop.code-workspace", ".claude/settings.json", "sub\\.envrc"),
    ],
)
def test_what_guards_or_runs_by_itself_is_guarded(path: str) -> None:
    assert is_guarded(path)


@pytest.mark.parametrize(
    "path",
    [
        *("src/app.py", "README.md", "docs/pre-commit.md", "package.json", "podium.yaml.md"),
        *(".github/ISSUE_TEMPLATE/bug.md", "envrc", "src/workflows/run.py", "README~1.MD", ".env"),
    ],
)
def test_ordinary_files_are_not(path: str) -> None:
    assert not is_guarded(path)


def test_further_folders_count_with_all_below_them() -> None:
    further = ExtraProtectedPaths(["tools/git"])
    assert is_guarded("Tools/Git/check", further)
    assert not is_guarded("tools/github", further)
    assert not is_guarded("tools", further)
    assert further.lie_below("Tools")
    assert not further.lie_below("tools/git")


@pytest.mark.parametrize(
    ("old", "new", "runs"),
    [
        ("", "docs/log.md merge=union\n* text=auto eol=lf\n# a note\n", False),
        ('"a b" -diff linguist-generated=true\n', "*.py diff=python\n", False),
        ("", "*.c filter=tidy\n", True),
        ("*.key filter=git-crypt diff=git-crypt\n", "", True),
        ("*.psd filter=lfs\n", "*.psd filter=lfs\n*.png binary\n", False),
        ("", "*.json merge=npm\n", True),
        ("[attr]tidy filter=x\n", "[attr]tidy filter=x\n*.c tidy\n", True),
        ("", "[attr]mine text\n", True),
    ],
)
def test_attributes_count_where_they_name_drivers(old: str, new: str, runs: bool) -> None:
    assert drivers_changed(old, new) is runs


def test_attributes_are_known_in_other_cases() -> None:
    assert is_attributes("sub/.GitAttributes")
    assert is_attributes("GITATT~1")
    assert not is_attributes("gitattributes.md")


def test_the_policy_guards_the_same_files() -> None:
    zones = default_policy().zones
    paths = {*zones["automation"].paths, *zones["podium-settings"].paths}
    assert paths >= {f"**/{pattern}" for pattern in GUARDED}
    assert {path.removeprefix("**/") for path in paths} == set(GUARDED)
