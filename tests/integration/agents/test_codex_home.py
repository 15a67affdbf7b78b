"""Codex's settings and schemas, as text."""

from __future__ import annotations

import tomllib
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel

from podium.agents.headless.codex.agent import strict_schema
from podium.agents.headless.codex.home import _git_folders, _roots, refuse_foreign_git, toml
from podium.core.errors import NotPossibleNow
from tests.integration.agents.codex_harness import a_repository, git

_TEXT = st.text(st.characters(codec="utf-8"))
_VALUES = st.recursive(
    st.booleans() | st.integers(-(2**40), 2**40) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(_TEXT, _VALUES, max_size=5))
def test_settings_come_back_as_they_were_written(settings: dict[str, Any]) -> None:
    assert tomllib.loads(toml(settings)) == settings


def test_commits_may_write_where_git_keeps_its_things(tmp_path: Path) -> None:
    main, linked, plain = tmp_path / "main", tmp_path / "linked", tmp_path / "plain"
    main.mkdir()
    plain.mkdir()
    a_repository(main)
    git(main, "worktree", "add", "-q", str(linked))
    assert _git_folders(main) == [str(main / ".git")]
    assert _git_folders(linked) == [str(main / ".git/worktrees/linked"), str(main / ".git")]
    assert _git_folders(plain) == []


def test_the_repository_of_a_workspace_is_not_trusted_either(tmp_path: Path) -> None:
    main, linked = tmp_path / "main", tmp_path / "linked"
    main.mkdir()
    a_repository(main)
    git(main, "worktree", "add", "-q", str(linked))
    (main / "part").mkdir()
    assert str(main) in _roots(linked)
    assert {str(main), str(main / "part")} <= set(_roots(main / "part"))


@pytest.mark.parametrize("words", ["", "gitdir:", "gitdir: ../elsewhere", "\0\0", "x" * 10_000])
def test_a_strange_git_file_is_no_reason_to_fail(tmp_path: Path, words: str) -> None:
    (tmp_path / ".git").write_text(words)
    assert _git_folders(tmp_path) == []


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Part(BaseModel):
    name: Annotated[str, Field(min_length=1, description="What it is called.")]
    colour: Colour = Colour.RED


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Whole(BaseModel):
    number: Annotated[int, Field(ge=0)] = 5
    part: Part
    parts: list[Part] = []
    maybe: str | None = None
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None


def objects_in(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for item in schema for found in objects_in(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if schema.get("type") == "object" else []
    return own + [found for item in schema.values() for found in objects_in(item)]


def test_contract_is_stated_strictly() -> None:
    schema = strict_schema(Whole)
    assert schema is not None
    for found in objects_in(schema):
        assert found["additionalProperties"] is False
        assert found["required"] == list(found["properties"])
    words = repr(schema)
    assert "What it is called." in words
    for gone in ("default", "oneOf", "discriminator", "minLength", "title"):
        assert f"'{gone}'" not in words


class AnyMap(BaseModel):
    values: dict[str, int]


class Anything(BaseModel):
    value: Any


class Pair(BaseModel):
    pair: tuple[int, str]


@pytest.mark.parametrize("contract", [AnyMap, Anything, Pair, RootModel[list[int]]])
def test_contract_that_cannot_be_stated_strictly_is_not_sent(contract: type[BaseModel]) -> None:
    assert strict_schema(contract) is None


class Node(BaseModel):
    children: list[Node] = []


def test_a_contract_within_itself_is_not_sent_when_its_root_is_a_reference() -> None:
    assert strict_schema(Node) is None


def test_a_git_file_that_leads_to_another_repository_is_refused(tmp_path: Path) -> None:
    other, workspace = tmp_path / "other", tmp_path / "workspace"
    for folder in (other, workspace):
        folder.mkdir()
    a_repository(other)
    git(other, "worktree", "add", "-q", str(tmp_path / "real"))
    for words in (
        f"gitdir: {other}/.git",
        "gitdir: ../other/.git",
        f"gitdir: {other}/.git/worktrees/real",
        f"gitdir: {other}/.git/worktrees/new",
    ):
        (workspace / ".git").write_text(words)
        with pytest.raises(NotPossibleNow, match="does not know it as a worktree"):
            refuse_foreign_git("codex", workspace)


def test_a_link_in_the_place_of_git_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace/.git").symlink_to(tmp_path / "other")
    with pytest.raises(NotPossibleNow):
        refuse_foreign_git("codex", tmp_path / "workspace")


def test_repositories_and_their_own_worktrees_are_worked_in(tmp_path: Path) -> None:
    main, linked, plain = (tmp_path / name for name in ("main", "linked", "plain"))
    for folder in (main, plain):
        folder.mkdir()
    a_repository(main)
    git(main, "worktree", "add", "-q", str(linked))
    (plain / ".git").write_text("gitdir: hidden/git")
    for workspace in (main, linked, plain, tmp_path):
        refuse_foreign_git("codex", workspace)
    (plain / ".git").unlink()
    (plain / ".git").symlink_to(main / ".git")
    with pytest.raises(NotPossibleNow):
        refuse_foreign_git("codex", plain)
