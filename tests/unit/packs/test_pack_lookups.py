"""A registry's lookups are checked: they only read, and reach a record by its id."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from podium.core.errors import PackInvalid
from podium.tools.packs import load_pack, shipped_packs
from tests.unit.operator.core.shop import HANDLERS, registry

LOOKUP: dict[str, Any] = {
    "kind": "thing",
    "find": {"tool": "things.find", "arguments": {"query": "$mention"}, "rows": "things"},
    "get": {"tool": "things.find", "arguments": {"query": "$id"}, "rows": "things"},
    "match": {"name": "name"},
    "label": ["name"],
}


def _shop(folder: Path, lookups: list[dict[str, Any]]) -> Path:
    import json

    content = copy.deepcopy(registry())
    query = {"type": "string", "x-kind": "text"}
    content["tools"].append(
        {
            "name": "things.find",
            "description": "Find things.",
            "input_schema": {
                "type": "object",
                "properties": {"query": query},
                "required": ["query"],
                "additionalProperties": False,
            },
            "tier": "T1",
            "receipt_fields": ["things"],
            "handler": "handlers:look",
        }
    )
    content["lookup"] = lookups
    shop = folder / "shop"
    shop.mkdir()
    (shop / "tools.registry.json").write_text(json.dumps(content))
    (shop / "handlers.py").write_text(HANDLERS)
    return shop


def _changed(path: str, value: object) -> dict[str, Any]:
    lookup = copy.deepcopy(LOOKUP)
    *parents, last = path.split("/")
    part: Any = lookup
    for name in parents:
        part = part[name]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return lookup


def test_lookup_of_a_new_pack_takes_no_code(tmp_path: Path) -> None:
    lookup = load_pack(_shop(tmp_path, [LOOKUP])).lookup("thing")
    assert lookup is not None
    assert lookup.get is not None


@pytest.mark.parametrize(
    ("path", "value", "pointer", "problem"),
    [
        ("kind", "planet", "/lookup/0/kind", "no tool has an argument with the x-kind 'id:planet'"),
        ("find/tool", "things.lose", "/lookup/0/find/tool", "this registry has no tool 'things.lose'"),
        ("find/tool", "things.add", "/lookup/0/find/tool", "'things.add' changes something; a lookup only reads"),
        ("find/rows", "planets", "/lookup/0/find/rows", "'planets' is not a receipt field of 'things.find'"),
        ("find/arguments", {"colour": "red"}, "/lookup/0/find/arguments/colour", "'things.find' has no such argument"),
        ("get", None, "/lookup/0/find", "finds by '$mention' alone; add a `get` that reads a record by its id"),
        ("get/arguments", {}, "/lookup/0/get/arguments", "one of them must be '$id', the id of the record"),
        ("match/name", "colour", "/lookup/0/match/name", "'colour' is not one of name, phone"),
        ("find/arguments", {}, "/lookup/0/find/arguments", "'things.find' requires query"),
        ("label", [], "/lookup/0/label", "is empty; name the fields by which people tell records apart"),
        ("parents", {"planet": "planet_id"}, "/lookup/0/parents/planet", "no other lookup has the kind 'planet'"),
        ("gives", {"colour": "colour"}, "/lookup/0/gives/colour", "'colour' is not a known kind of field"),
        ("colour", "red", "/lookup/0/colour", "unknown key 'colour'"),
    ],
)  # fmt: skip
def test_problem_of_a_lookup_is_reported_at_its_pointer(
    tmp_path: Path, path: str, value: object, pointer: str, problem: str
) -> None:
    with pytest.raises(PackInvalid) as caught:
        load_pack(_shop(tmp_path, [_changed(path, value)]))
    found = {(one.pointer, one.problem) for one in caught.value.problems}
    assert [words for at, words in found if at == pointer and problem in words], found


def test_kind_has_one_lookup(tmp_path: Path) -> None:
    with pytest.raises(PackInvalid, match="'thing' has a lookup already"):
        load_pack(_shop(tmp_path, [LOOKUP, LOOKUP]))


@pytest.mark.parametrize("name", ["podium", "roofing"])
def test_packs_that_come_with_podium_declare_what_can_be_looked_up(name: str) -> None:
    assert load_pack(shipped_packs() / name).registry.lookup
