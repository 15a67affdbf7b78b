"""The toolbox as an MCP server: what a CLI without hands may say to it, and what it is told."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podium.core import tool_replies
from podium.core.decisions import CallStatus, Effect
from podium.core.model import Json
from podium.core.processes import ProcessSpec
from podium.ports import Process
from podium.sandbox import ProcessLauncher, mcp_server_command
from podium.sandbox.mcp_server import (
    MAX_CALL_BYTES,
    MAX_LINE_BYTES,
    MAX_NAME,
    MAX_RESULT_CHARACTERS,
    PROTOCOLS,
)
from tests.integration.sandbox.door_harness import TURN, DoorHarness, RealDoorHarness

Message = dict[str, Any]


class Cli:
    """Speaks to the server as a CLI does."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._lines = process.lines()
        self._number = 0

    async def send(self, *lines: bytes) -> None:
        await self.process.send(b"".join(line + b"\n" for line in lines))

    async def hear(self) -> Message:
        answer: Message = json.loads(await anext(self._lines))
        assert answer["jsonrpc"] == "2.0"
        return answer

    async def ask(self, method: str, params: Json = None) -> Message:
        number = await self.begin(method, params)
        answer = await self.hear()
        assert answer["id"] == number
        return answer

    async def begin(self, method: str, params: Json = None) -> int:
        """Ask, and wait for nothing."""
        self._number += 1
        asked = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        await self.send(json.dumps(asked).encode())
        return self._number

    async def call(self, tool: str, **arguments: Json) -> tuple[str, bool]:
        """Call the tool and return the text that the model is shown, and whether that is an error."""
        return shown(await self.ask("tools/call", {"name": tool, "arguments": arguments}))


def shown(answer: Message) -> tuple[str, bool]:
    (content,) = answer["result"]["content"]
    assert content["type"] == "text"
    return content["text"], answer["result"]["isError"]


@asynccontextmanager
async def serving(env: Mapping[str, str]) -> AsyncIterator[Cli]:
    spawn = ProcessSpec(argv=mcp_server_command(), cwd="/", env=dict(env), interactive=True)
    process = await ProcessLauncher().start(spawn)
    try:
        yield Cli(process)
    finally:
        await process.end(grace_seconds=0.1)


@asynccontextmanager
async def at_door(harness: DoorHarness) -> AsyncIterator[Cli]:
    async with harness.hook_door.open(TURN) as door, serving(door.env) as cli:
        yield cli


async def test_a_cli_is_greeted_in_its_own_version_and_one_of_another_in_the_newest() -> None:
    others: list[Json] = ["1999-01-01", 5, None, {}]
    async with serving({}) as cli:
        for wished in [*PROTOCOLS, *others]:
            messages = (await cli.ask("initialize", {"protocolVersion": wished}))["result"]
            assert messages["protocolVersion"] == (wished if wished in PROTOCOLS else PROTOCOLS[0])
    assert messages["capabilities"] == {"tools": {}}
    assert "end your turn" in messages["instructions"]


async def test_the_tools_of_the_turn_are_listed_with_their_schemas() -> None:
    async with at_door(RealDoorHarness(Effect.ALLOW)) as cli:
        tools = (await cli.ask("tools/list"))["result"]["tools"]
    by_name = {tool["name"]: tool for tool in tools}
    assert set(by_name) == {"run_command", "echo", "hang"}
    assert by_name["run_command"]["description"] == "Runs a command."
    assert by_name["run_command"]["inputSchema"]["required"] == ["command"]
    assert by_name["echo"]["inputSchema"] == {"type": "object", "properties": {}}


async def test_a_call_is_judged_performed_and_recorded_and_its_result_shown() -> None:
    harness = RealDoorHarness(Effect.ALLOW)
    async with at_door(harness) as cli:
        text, is_error = await cli.call("run_command", command="ls")
        events = [event.type for event in await harness.events()]
    assert (json.loads(text), is_error) == ({"echo": {"command": "ls"}}, False)
    assert events == ["tool_requested", "tool_completed"]


async def test_refusal_is_reported_in_the_words_given_to_all_agents() -> None:
    async with at_door(RealDoorHarness(Effect.DENY)) as cli:
        text, is_error = await cli.call("run_command", command="ls")
    assert text.startswith("Permission Denied: as the test says")
    assert is_error


async def test_a_call_that_waits_for_a_person_says_for_which_approval() -> None:
    harness = RealDoorHarness(Effect.ASK)
    async with harness.hook_door.open(TURN) as door, serving(door.env) as cli:
        text, is_error = await cli.call("run_command", command="ls")
        (approval,) = door.waiting_approvals
    assert text.startswith(f"Waiting for approval {approval}; end your turn")
    assert is_error


async def test_what_cannot_be_a_call_is_an_error_that_says_what_is_wrong_with_it() -> None:
    takes = "run_command takes {command: text}, for example "
    cases: list[tuple[str, dict[str, Json], str, str]] = [
        ("nothing", {}, "Error: ", "'nothing'"),
        ("run_command", {}, "Error: ", f"'command' is a required property. {takes}"),
        ("run_command", {"command": 5}, "Error: ", takes),
        ("run_command", {"command": "\ud800"}, "Permission Denied: ", "not JSON"),
        ("run_command", {"command": float("nan")}, "Permission Denied: ", "not JSON"),
    ]
    harness = RealDoorHarness(Effect.ALLOW)
    async with at_door(harness) as cli:
        for tool, arguments, beginning, words in cases:
            text, is_error = await cli.call(tool, **arguments)
            assert text.startswith(beginning)
            assert words in text
            assert is_error
    assert harness.gate.judged == []


async def test_what_a_cli_adds_to_the_arguments_of_every_tool_is_left_out() -> None:
    harness = RealDoorHarness(Effect.ALLOW)
    async with at_door(harness) as cli:
        await cli.ask("tools/list")
        text, is_error = await cli.call("run_command", command="ls", wait_for_previous=True)
    assert (json.loads(text), is_error) == ({"echo": {"command": "ls"}}, False)


SENSELESS: list[tuple[bytes, int]] = [
    (b"x", -32700),
    (b'{"jsonrpc": "2.0", "id": 1', -32700),
    (b'"\xff\xfe"', -32700),
    (b"[" * 100_000, -32700),
    (b"9" * 10_000, -32700),
    (b"[]", -32600),
    (b"null", -32600),
    (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600),
    (b'{"id": 1}', -32600),
    (b'{"id": 1, "method": 5}', -32600),
    (b'{"id": true, "method": "ping"}', -32600),
    (b'{"id": null, "method": "ping"}', -32600),
    (b'{"id": {}, "method": "ping"}', -32600),
    (b'{"id": 1, "method": "resources/list"}', -32601),
    (b'{"id": 1, "method": "tools/call"}', -32602),
    (b'{"id": 1, "method": "tools/call", "params": []}', -32602),
    (b'{"id": 1, "method": "tools/call", "params": {"name": 5}}', -32602),
    (b"[" + b"5" * (MAX_LINE_BYTES + 100), -32700),
]


async def test_nonsense_lines_are_answered_and_the_next_is_received() -> None:
    async with serving({}) as cli:
        for line, code in SENSELESS:
            await cli.send(line)
            answer = await cli.hear()
            assert answer["error"]["code"] == code, line[:100]
            assert answer["error"]["message"]
            assert answer["id"] in (None, 1)
        assert (await cli.ask("ping"))["result"] == {}


async def test_what_wants_no_answer_gets_none() -> None:
    quiet: list[Message] = [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "echo"}},
        {"jsonrpc": "2.0", "id": 9, "result": {}},
        {"jsonrpc": "2.0", "id": 9, "error": {"code": 1, "message": "no"}},
    ]
    async with serving({}) as cli:
        await cli.send(b"", b"   ", *(json.dumps(message).encode() for message in quiet))
        assert (await cli.ask("ping"))["result"] == {}


async def test_arguments_that_the_door_would_not_take_are_sent_back() -> None:
    harness = RealDoorHarness(Effect.ALLOW)
    async with at_door(harness) as cli:
        text, is_error = await cli.call("echo", text="x" * MAX_CALL_BYTES)
        not_an_object = await cli.ask("tools/call", {"name": "echo", "arguments": [1]})
        assert await harness.events() == []
    assert is_error
    assert "nothing was done, send less" in text
    assert shown(not_an_object)[0].startswith("Error: the arguments are not an object")


async def test_a_result_that_is_too_long_is_cut_and_says_so() -> None:
    async with at_door(DoorHarness(Effect.ALLOW)) as cli:
        text, is_error = await cli.call("echo", text="y" * 2 * MAX_RESULT_CHARACTERS)
    assert not is_error
    assert len(text) <= MAX_RESULT_CHARACTERS
    assert text.count("characters left out; request a part") == 1
    assert text.endswith('y"}}')


@pytest.mark.soak
async def test_many_calls_at_once_are_performed_in_their_order() -> None:
    harness = RealDoorHarness(*[Effect.ALLOW] * 100)
    async with at_door(harness) as cli:
        for number in range(100):
            await cli.begin("tools/call", {"name": "echo", "arguments": {"number": number}})
        answers = [await cli.hear() for _ in range(100)]
    assert [answer["id"] for answer in answers] == list(range(1, 101))
    results = [json.loads(shown(answer)[0]) for answer in answers]
    assert results == [{"echo": {"number": number}} for number in range(100)]
    assert [call.arguments["number"] for call in harness.gate.judged] == list(range(100))


async def test_a_cli_is_answered_while_a_call_is_at_work_and_the_server_ends_with_it() -> None:
    harness = RealDoorHarness(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door, serving(door.env) as cli:
        await cli.begin("tools/call", {"name": "hang", "arguments": {}})
        await harness.hanging.wait()
        assert (await cli.ask("ping"))["result"] == {}
        assert len((await cli.ask("tools/list"))["result"]["tools"]) == 3
        cli.process.close_input()
        ended = await cli.process.wait()
        still = await harness.statuses()
    assert ended.exit_code == 0
    assert still == [CallStatus.REQUESTED]


async def test_without_a_door_there_are_no_tools_and_no_calls(tmp_path: Path) -> None:
    async with serving({"PODIUM_DOOR": str(tmp_path / "none")}) as cli:
        listed = await cli.ask("tools/list")
        text, is_error = await cli.call("echo")
    assert listed["error"]["message"].startswith("Podium cannot be reached")
    assert text.startswith("Error: Podium cannot be reached")
    assert "end your turn" in text
    assert "denied" not in text
    assert is_error


async def test_a_door_that_goes_away_during_a_call_leaves_it_unknown() -> None:
    harness = DoorHarness(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        serve = serving(door.env)
        cli = await serve.__aenter__()
        await cli.begin("tools/call", {"name": "hang", "arguments": {}})
        await harness.hanging.wait()
    try:
        text, is_error = shown(await cli.hear())
    finally:
        await serve.__aexit__(None, None, None)
    assert "It is unknown whether the call was performed" in text
    assert is_error


async def test_with_the_token_of_a_hook_nothing_is_shown_or_performed() -> None:
    harness = RealDoorHarness(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door, serving(door.hook_env) as cli:
        listed = await cli.ask("tools/list")
        text, is_error = await cli.call("echo")
    assert "a hook may only send requests" in listed["error"]["message"]
    assert text.startswith("Permission Denied: ")
    assert is_error
    assert harness.gate.judged == []


def test_names_are_offered_as_every_cli_takes_them() -> None:
    names = ["read_file", "pack.tool/x", "pack tool x", "z" * 100, "z" * 99, "ö"]
    offered = tool_replies.offered_names(names, MAX_NAME)
    assert list(offered.values()) == names
    assert [name for name in offered if len(name) > MAX_NAME] == []
    assert list(offered)[:3] == ["read_file", "pack_tool_x", "pack_tool_x_2"]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in offered)
