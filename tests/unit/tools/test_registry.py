from __future__ import annotations

from typing import Any

import pytest

from podium.core.errors import BadInput, UnknownTool
from podium.tools import Registry, builtin_tools
from tests.unit.tools.toolbox_harness import a_tool, path_argument


def test_the_built_in_tools_load_and_are_found_by_name() -> None:
    registry = Registry(builtin_tools())

    names = [spec.name for spec in registry.specs()]

    assert names == [
        "read_file",
        "list_files",
        "find_files",
        "search_text",
        "write_file",
        "edit_file",
        "apply_patch",
        "restore_file",
        "restore_files",
        "run_command",
        "git_status",
        "git_diff",
        "git_log",
        "git_commit",
        "ask_human",
        "finish",
    ]
    assert registry.spec("read_file") is registry.tool("read_file").spec
    assert registry.spec("fly") is None


def test_an_unknown_tool_is_named_beside_those_there_are() -> None:
    registry = Registry([a_tool(name="send")])

    with pytest.raises(UnknownTool, match=r"no tool 'fly'; tools: send"):
        registry.tool("fly")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "send mail"}, "the name must be"),
        ({"undo": "unsend"}, "undo names 'unsend', which is not registered"),
        ({"timeout_seconds": 0}, "timeout_seconds is 0"),
        ({"timeout_seconds": float("inf")}, "timeout_seconds is inf"),
        ({"receipt_fields": ()}, "receipt_fields is empty"),
        ({"receipt_fields": ("id", "id")}, "lists a field twice"),
        ({"handler": lambda arguments, scope: {}}, "not an async function"),
        ({"input_schema": {"type": "thing"}}, "input_schema at type"),
        ({"input_schema": {"type": "array"}}, '"type": "object"'),
        ({"input_schema": {}}, '"type": "object"'),
        ({"paths": (path_argument("file"),)}, "paths names 'file'"),
        ({"command_argument": "line"}, "command_argument names 'line'"),
        (
            {"input_schema": {"type": "object", "properties": {"a": {"pattern": "("}}}},
            "properties/a/pattern: '\\(' is not a 'regex'",
        ),
        (
            {"input_schema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}},
            "\\$ref '#/\\$defs/b' does not refer to anything",
        ),
        (
            {"input_schema": {"type": "object", "properties": {"a": {"$ref": "http://x.test/"}}}},
            "does not refer to anything inside the schema",
        ),
        (
            {
                "input_schema": {
                    "type": "object",
                    "properties": {"a": {"type": "integer", "default": "x"}},
                }
            },
            "the default of 'a' does not match",
        ),
    ],
)
def test_fault_in_a_spec_is_reported_in_words(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Registry([a_tool(**changes)])


def test_all_faults_of_all_tools_are_listed_at_once() -> None:
    with pytest.raises(BadInput) as caught:
        Registry(
            [a_tool(name="a", undo="gone"), a_tool(name="b", receipt_fields=()), a_tool(name="b")]
        )

    lines = str(caught.value).splitlines()
    assert lines[0] == "the tool registry is not valid:"
    assert [line.split(":")[0] for line in lines[1:]] == ["tool 'b'", "tool 'a'", "tool 'b'"]


def test_a_reference_inside_the_schema_and_an_async_object_are_fine() -> None:
    class Sender:
        async def __call__(self, arguments: object, scope: object) -> dict[str, object]:
            return {}

    schema = {
        "type": "object",
        "properties": {"to": {"$ref": "#/$defs/address", "default": "ann"}},
        "$defs": {"address": {"type": "string"}},
    }

    assert Registry([a_tool(Sender(), input_schema=schema)]).spec("send") is not None
