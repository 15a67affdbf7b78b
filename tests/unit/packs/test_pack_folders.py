"""Packs are found by folder and by name, and the published schema fits what loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from podium.core.errors import BadInput
from podium.tools import builtin_tools
from podium.tools.packs import (
    find_pack,
    list_packs,
    load_pack,
    published_schema,
    shipped_packs,
    write_new_pack,
)
from tests.unit.packs.bikes import REGISTRY, registry_with, write_pack

ROOT = Path(__file__).parents[3]


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    write_pack(tmp_path / "project/packs/bikes")
    write_pack(tmp_path / "shipped/bikes")
    write_pack(tmp_path / "shipped/roofs")
    (tmp_path / "shipped/empty").mkdir()
    return {"project": tmp_path / "project", "shipped": tmp_path / "shipped"}


def test_the_project_comes_before_what_is_shipped(places: dict[str, Path]) -> None:
    assert find_pack("bikes", **places) == places["project"] / "packs/bikes"
    assert find_pack("roofs", **places) == places["shipped"] / "roofs"
    found = [(pack.name, pack.origin) for pack in list_packs(**places)]
    assert found == [("bikes", "project"), ("roofs", "shipped")]


def test_a_folder_with_a_registry_is_a_pack_wherever_it_lies(places: dict[str, Path]) -> None:
    folder = places["shipped"] / "bikes"

    assert find_pack(str(folder), **places) == folder


@pytest.mark.parametrize("name", ["rockets", "empty", "", "../shipped/roof", "a\0b", "x" * 5000])
def test_nonexistent_pack_is_reported_with_those_that_exist(
    places: dict[str, Path], name: str
) -> None:
    with pytest.raises(BadInput, match="bikes, roofs"):
        find_pack(name, **places)


def test_folder_without_a_registry_is_reported(places: dict[str, Path]) -> None:
    with pytest.raises(BadInput, match=r"it has no tools\.registry\.json"):
        find_pack(places["shipped"] / "empty", **places)


def test_the_packs_that_come_with_podium_lie_beside_it() -> None:
    assert shipped_packs() == ROOT / "packs"


def test_the_published_schema_is_the_one_of_the_code() -> None:
    file = ROOT / "packs/tools.registry.schema.json"
    wanted = json.dumps(published_schema(), indent=2, ensure_ascii=False) + "\n"

    assert file.read_text() == wanted, f"write the new one to {file.name}"


def test_what_loads_fits_the_published_schema() -> None:
    schema = published_schema()
    Draft202012Validator.check_schema(schema)

    registry = json.loads(json.dumps(REGISTRY))
    assert list(Draft202012Validator(schema).iter_errors(registry)) == []


@pytest.mark.parametrize(
    ("at", "value"),
    [
        ("/tools/0/tier", 2),
        ("/tools/0/name", "book"),
        ("/tools/0/handler", {"http": {"url": "x"}, "mcp": {}}),
        ("/tools/3/handler/mcp/command", []),
        ("/version", ...),
        ("/colour", "red"),
    ],
)
def test_what_has_another_shape_does_not_fit_it(at: str, value: Any) -> None:
    assert not Draft202012Validator(published_schema()).is_valid(registry_with(at, value))


def test_the_published_schema_says_what_keys_mean() -> None:
    tool = published_schema()["$defs"]["PackTool"]["properties"]

    assert tool["undo"]["description"].startswith("The tool that reverses this one.")


def test_no_tool_of_podium_can_have_the_name_of_a_packs_tool() -> None:
    assert not [tool.spec.name for tool in builtin_tools() if "." in tool.spec.name]


def test_a_new_pack_is_sound_and_never_written_over_another(tmp_path: Path) -> None:
    folder = tmp_path / "packs/bikes"

    write_new_pack(folder)

    assert load_pack(folder).name == "bikes"
    with pytest.raises(BadInput, match="already exists"):
        write_new_pack(folder)


def test_a_folder_whose_name_is_none_for_a_pack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not a valid pack name"):
        write_new_pack(tmp_path / "My Bikes")
    assert list(tmp_path.iterdir()) == []
