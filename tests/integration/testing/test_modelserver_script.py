"""Choice of the step that answers a request, and of the tool that a step takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from podium.testing.modelserver import ModelServer, Script, ScriptStep
from tests.integration.testing.modelserver_client import (
    PROTOCOLS,
    ask,
    calls_of,
    question,
    send,
    text_of,
)

EVERY = pytest.mark.parametrize("protocol", PROTOCOLS)


@EVERY
async def test_steps_are_counted_by_tool_results(protocol: str) -> None:
    script = Script.by_marker(
        {"work": [{"tools": [{"name": "t"}]}, {"tools": [{"name": "t"}]}, "done"]}
    )
    async with ModelServer(script) as server:
        for results in (0, 1, 1, 2, 5):
            response = await ask(server, protocol, "SCRIPT:work", results=results, tools=["t"])
        assert text_of(protocol, response) == "done"
        assert [seen.step for seen in server.requests] == [0, 1, 1, 2, 5]
        assert {seen.rule for seen in server.requests} == {"work"}


@EVERY
async def test_a_step_of_two_calls_waits_for_both_results(protocol: str) -> None:
    both = {"tools": [{"name": "t"}, {"name": "t", "arguments": {"n": 2}}]}
    async with ModelServer(Script.by_marker({"work": [both, "done"]})) as server:
        for results in (0, 2):
            await ask(server, protocol, "SCRIPT:work", results=results, tools=["t"])
        assert [seen.step for seen in server.requests] == [0, 1]


async def test_a_script_that_ends_with_a_call_does_not_call_for_ever() -> None:
    async with ModelServer(Script.by_marker({"work": [{"tools": [{"name": "t"}]}]})) as server:
        response = await ask(server, "chat", "SCRIPT:work", results=1, tools=["t"])
    assert calls_of("chat", response) == []
    assert "no more steps" in text_of("chat", response)


async def test_the_newest_user_text_with_a_marker_counts() -> None:
    script = Script.by_marker({"one": ["1"], "two": [{"tools": [{"name": "t"}]}, "2"]})
    messages: list[Any] = [
        {"role": "user", "content": "SCRIPT:one."},
        {"role": "assistant", "content": "SCRIPT:one, you say"},
        {"role": "tool", "content": "x", "tool_call_id": "a"},
        {"role": "user", "content": "first SCRIPT:one, no: SCRIPT:two"},
        {"role": "tool", "content": "SCRIPT:one", "tool_call_id": "b"},
        {"role": "user", "content": "go on"},
    ]
    async with ModelServer(script) as server:
        for upto, answer in ((1, "1"), (3, "1"), (5, "2"), (6, "2")):
            body = {"model": "m", "messages": messages[:upto]}
            response = await send(server, "/v1/chat/completions", body)
            assert text_of("chat", response) == answer


async def test_a_marker_beside_a_tool_result_begins_anew() -> None:
    content = [
        {"type": "tool_result", "tool_use_id": "t", "content": "x"},
        {"type": "text", "text": "now SCRIPT:two"},
    ]
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": content}]}
    async with ModelServer(Script.by_marker({"two": ["2", "3"]})) as server:
        assert text_of("anthropic", await send(server, "/v1/messages", body)) == "2"


async def test_what_a_cli_puts_beside_the_prompt_is_not_the_prompt() -> None:
    parts = [
        {"text": "<session_context>\nToday, in a folder SCRIPT:other\n</session_context>"},
        {"text": "Tidy up."},
    ]
    contents = [
        {"role": "user", "parts": parts},
        {"role": "model", "parts": [{"functionCall": {"name": "t"}}]},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "t"}},
                {"text": "<system-reminder>Be brief</system-reminder>"},
                {"text": "a hook says: go on"},
            ],
        },
    ]
    rule = {"when": "^Tidy up", "steps": [{"tools": [{"name": "t"}]}, "tidy"]}
    async with ModelServer({"rules": [rule]}) as server:
        path = "/v1beta/models/m:generateContent"
        response = await send(server, path, {"contents": contents})
        assert text_of("gemini", response) == "tidy"
        assert server.prompts() == ["Tidy up."]
        assert server.requests[0].step == 1


async def test_rules_are_tried_in_order_by_all_their_conditions() -> None:
    rules = [
        {"protocol": "gemini", "when": "plan", "steps": ["gemini plans"]},
        {"model": "^big-", "steps": ["the big one"]},
        {"offers_tools": True, "steps": ["with tools"]},
        {"name": "planner", "when": "(?i)PLAN", "steps": ["somebody plans"]},
    ]
    script = {"rules": rules, "default": {"steps": ["anything"]}}
    async with ModelServer(script) as server:
        assert text_of("gemini", await ask(server, "gemini", "plan it")) == "gemini plans"
        assert text_of("chat", await ask(server, "chat", "plan it")) == "somebody plans"
        assert text_of("chat", await ask(server, "chat", "x", model="big-1")) == "the big one"
        assert text_of("chat", await ask(server, "chat", "x", tools=["t"])) == "with tools"
        assert text_of("chat", await ask(server, "chat", "x")) == "anything"
        names = [seen.rule for seen in server.requests]
        assert names == ["rule 1", "planner", "rule 2", "rule 3", "default"]


@EVERY
async def test_every_time_counts_requests(protocol: str) -> None:
    rule = {"marker": "again", "each_time": True, "steps": [{"status": 500}, "no json", "{}"]}
    async with ModelServer({"rules": [rule]}) as server:
        messages = [await ask(server, protocol, "SCRIPT:again") for _ in range(4)]
        assert [item.status for item in messages] == [500, 200, 200, 200]
        assert [text_of(protocol, item) for item in messages[1:]] == ["no json", "{}", "{}"]


@EVERY
async def test_request_that_no_rule_fits_is_shown_what_was_looked_for(protocol: str) -> None:
    async with ModelServer(Script.by_marker({"known": ["x"]})) as server:
        response = await ask(server, protocol, "SCRIPT:unknown please", stream=True)
        text = text_of(protocol, response)
        for words in ("SCRIPT:unknown", repr(protocol), "'m-1'", "please", "known"):
            assert words in text
        assert (server.requests[0].rule, server.requests[0].step) == ("", 0)


def schema(*properties: str, required: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in properties},
        "required": list(required),
    }


RUN = [
    ("run_shell_command", schema("command", "description"), {"command": "ls -a"}),
    ("exec_command", schema("cmd"), {"cmd": "ls -a"}),
    (
        "Bash",
        schema("command", "description", required=("command", "description")),
        {"command": "ls -a", "description": "as the script says"},
    ),
    ("bash", schema("command"), {"command": "ls -a"}),
    ("run_command", schema("command", "cwd"), {"command": "ls -a"}),
    ("mcp__podium__run_command", schema("command"), {"command": "ls -a"}),
    (
        "shell",
        {"type": "object", "properties": {"command": {"type": "array"}}},
        {"command": ["bash", "-lc", "ls -a"]},
    ),
]
WRITE = [
    ("write_file", schema("file_path", "content"), {"file_path": "a/b", "content": "1\n2"}),
    ("write_file", schema("path", "content"), {"path": "a/b", "content": "1\n2"}),
    ("Write", schema("file_path", "content"), {"file_path": "a/b", "content": "1\n2"}),
    ("write", schema("filePath", "content"), {"filePath": "a/b", "content": "1\n2"}),
    (
        "apply_patch",
        schema("input"),
        {"input": "*** Begin Patch\n*** Add File: a/b\n+1\n+2\n*** End Patch\n"},
    ),
]
READ = [
    ("read_file", schema("absolute_path"), {"absolute_path": "a/b"}),
    ("read_file", schema("path"), {"path": "a/b"}),
    ("Read", schema("file_path"), {"file_path": "a/b"}),
    ("read", schema("filePath"), {"filePath": "a/b"}),
    ("exec_command", schema("cmd"), {"cmd": "cat -- a/b"}),
]
NEUTRAL = [
    *(({"run": "ls -a"}, *entry) for entry in RUN),
    *(({"write": {"path": "a/b", "content": "1\n2"}}, *entry) for entry in WRITE),
    *(({"read": "a/b"}, *entry) for entry in READ),
]


@pytest.mark.parametrize(("step", "name", "parameters", "arguments"), NEUTRAL)
async def test_one_script_drives_every_programs_tools(
    step: dict[str, Any], name: str, parameters: dict[str, Any], arguments: dict[str, Any]
) -> None:
    body = question("anthropic", "hi")[1]
    body["tools"] = [
        {"name": "other", "input_schema": {}},
        {"name": name, "input_schema": parameters},
    ]
    async with ModelServer({"default": {"steps": [step]}}) as server:
        response = await send(server, "/v1/messages", body)
    assert calls_of("anthropic", response) == [(name, arguments)]


async def test_a_patch_goes_to_a_custom_tool_as_plain_text() -> None:
    body = question("responses", "hi")[1] | {"model": "m"}
    inner = [{"type": "custom", "name": "apply_patch"}]
    body["tools"] = [{"type": "namespace", "name": "files", "tools": inner}]
    step = {"write": {"path": "a", "content": "x\n"}}
    async with ModelServer({"default": {"steps": [step]}}) as server:
        response = await send(server, "/v1/responses", body)
    (call,) = [item for item in response.json["output"] if item["type"] == "custom_tool_call"]
    assert call["input"] == "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n"
    assert call["namespace"] == "files"


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ({"run": 'echo "x"'}, r'tools.exec_command({"cmd": "echo \"x\""})'),
        (
            {"write": {"path": "a", "content": "x"}},
            r'tools.apply_patch("*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n")',
        ),
        ({"read": "a b"}, """tools.exec_command({"cmd": "cat -- 'a b'"})"""),
    ],
)
async def test_a_tool_that_composes_others_gets_the_code_for_it(
    step: dict[str, Any], code: str
) -> None:
    path, body = question("responses", "hi")
    inner = [{"type": "custom", "name": "exec"}, {"type": "function", "name": "wait"}]
    space = {"type": "namespace", "name": "functions", "tools": inner}
    added = {"type": "additional_tools", "role": "developer", "tools": [space]}
    async with ModelServer({"default": {"steps": [step]}}) as server:
        response = await send(server, path, {**body, "input": [added, *body["input"]]})
        assert server.requests[0].tools == ("exec", "wait")
    (call,) = [item for item in response.json["output"] if item["type"] == "custom_tool_call"]
    assert (call["name"], call["namespace"]) == ("exec", "functions")
    assert call["input"] == f"text(await {code});"


@EVERY
@pytest.mark.parametrize(
    ("step", "offered", "words"),
    [
        ({"run": "ls"}, ["write_file"], "no tool that runs a shell command; offered: write_file"),
        ({"write": {"path": "a", "content": ""}}, ["bash"], "no tool that writes a file"),
        ({"read": "a"}, ["other"], "no tool that reads a file"),
        ({"tools": [{"name": "t"}]}, [], "offers no tools at all"),
    ],
)
async def test_tool_that_is_not_offered_is_reported_in_words(
    protocol: str, step: dict[str, Any], offered: list[str], words: str
) -> None:
    async with ModelServer({"default": {"steps": [step]}}) as server:
        response = await ask(server, protocol, "hi", tools=offered)
    assert words in text_of(protocol, response)
    assert calls_of(protocol, response) == []


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({}, "the step is empty"),
        ({"then": "x"}, "set `flood_bytes` too"),
        ({"headers": {"a b": "c"}}, "is not a valid header"),
        ({"headers": {"a": "c\r\nd: e"}}, "is not a valid header"),
        ({"status": 200}, "greater than or equal to 400"),
        ({"fault": "explode"}, "Input should be 'hang'"),
        ({"txt": "x"}, "Extra inputs"),
    ],
)
def test_a_step_that_makes_no_sense_is_refused(step: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        ScriptStep.model_validate(step)


def test_a_rule_with_a_broken_expression_is_refused() -> None:
    with pytest.raises(ValidationError, match="is not a valid regular expression"):
        Script.model_validate({"rules": [{"when": "(", "steps": ["x"]}]})


async def test_a_step_can_quote_what_its_rule_found_in_the_prompt() -> None:
    rule = {"when": r"code (?P<code>\d+)", "steps": [{"text": "It is {{code}}, not {{other}}."}]}
    async with ModelServer({"rules": [rule]}) as server:
        response = await ask(server, "chat", "The code 4711 was sent.")
    assert text_of("chat", response) == "It is 4711, not {{other}}."


async def test_a_quote_of_anything_keeps_a_payload_whole() -> None:
    rule = {"when": "say (?P<quotes_and>.+)", "steps": [{"payload": {"said": ["{{quotes_and}}"]}}]}
    async with ModelServer({"rules": [rule]}) as server:
        response = await ask(server, "chat", 'say "a" \\ {b}')
    assert json.loads(text_of("chat", response)) == {"said": ['"a" \\ {b}']}


@EVERY
async def test_a_payload_is_given_by_the_tool_for_it_or_as_text(protocol: str) -> None:
    step = {"text": "I looked.", "payload": {"verdict": "PASS"}}
    async with ModelServer(Script.by_marker({"judge": [step]})) as server:
        plain = await ask(server, protocol, "SCRIPT:judge")
        tool = await ask(server, protocol, "SCRIPT:judge", tools=["StructuredOutput"])
        after = await ask(server, protocol, "SCRIPT:judge", results=1, tools=["StructuredOutput"])
    assert text_of(protocol, plain) == 'I looked.\n{"verdict": "PASS"}'
    assert [call[0] for call in calls_of(protocol, tool)] == ["StructuredOutput"]
    assert calls_of(protocol, after) == []
