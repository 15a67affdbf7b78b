"""The hook client: allowed only when the door said so, denied on everything else, never waiting."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podium.core.decisions import Effect
from podium.core.model import Json
from podium.core.processes import ProcessExit, ProcessSpec
from podium.sandbox import ProcessLauncher, hook_client, hook_command
from podium.testing import retry_until
from tests.integration.sandbox.door_harness import TURN, DoorHarness
from tests.unit.sandbox.trees import python

EVENT: dict[str, Json] = {
    "session_id": "s",
    "cwd": "/w",
    "hook_event_name": "PreToolUse",
    "tool_name": "run_command",
    "tool_input": {"command": "ls"},
    "tool_use_id": "use-1",
}


async def run_hook(
    env: dict[str, str],
    event: Json = None,
    *,
    stdin: bytes | None = None,
    deadline: str = "60",
    arguments: tuple[str, ...] = (),
) -> ProcessExit:
    """Run the client as a CLI would."""
    spawn = ProcessSpec(
        argv=(*hook_command(), *arguments),
        cwd="/",
        env={**env, "PODIUM_DOOR_DEADLINE": deadline},
        stdin=json.dumps(event or EVENT).encode() if stdin is None else stdin,
    )
    return await ProcessLauncher().run(spawn)


def assert_denied(ended: ProcessExit, *words: str) -> None:
    """Exit 2, nothing on stdout, and a reason on stderr that no CLI takes for JSON."""
    assert (ended.exit_code, ended.stdout) == (2, b"")
    reason = ended.stderr.decode()
    assert reason.startswith("podium: ")
    assert all(word in reason for word in words), reason


@asynccontextmanager
async def server(folder: Path, answer: bytes | None) -> AsyncIterator[dict[str, str]]:
    """A door that says this, whatever it is asked; None: it listens and says nothing."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        if answer is None:
            await reader.read()
        else:
            writer.write(answer)
        writer.close()

    path = str(folder / "s")
    async with await asyncio.start_unix_server(serve, path):
        yield {"PODIUM_DOOR": path, "PODIUM_DOOR_TOKEN": "t"}


async def test_an_allowed_tool_is_allowed_in_the_words_of_the_clis() -> None:
    harness = DoorHarness(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        ended = await run_hook(door.env)
    assert (ended.exit_code, ended.stderr) == (0, b"")
    assert json.loads(ended.stdout) == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "permissionDecisionReason": "as the test says",
        }
    }
    assert harness.gate.judged[0].arguments == {"command": "ls"}


async def test_the_other_name_of_the_event_is_understood_too() -> None:
    harness = DoorHarness(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        ended = await run_hook(door.env, {**EVENT, "hook_event_name": "BeforeTool"})
    assert json.loads(ended.stdout)["hookSpecificOutput"]["hookEventName"] == "BeforeTool"


async def test_a_denied_tool_is_denied_with_the_reason() -> None:
    harness = DoorHarness(Effect.DENY)
    async with harness.hook_door.open(TURN) as door:
        assert_denied(await run_hook(door.env), "as the test says")


async def test_a_question_to_a_person_is_a_denial_at_once() -> None:
    harness = DoorHarness(Effect.ASK)
    async with harness.hook_door.open(TURN) as door:
        ended = await run_hook(door.env)
        assert_denied(ended, f"waiting for approval {door.waiting_approvals[0]}; end your turn")
    assert b"Permission Denied" not in ended.stderr
    assert ended.seconds < 50  # of the sixty that it has


@pytest.mark.parametrize(
    ("effect", "reason"),
    [(Effect.ASK, "waiting for approval "), (Effect.DENY, "Permission Denied: as the test says")],
)
async def test_a_cli_that_reads_decisions_is_denied_without_an_exit_code(
    effect: Effect, reason: str
) -> None:
    harness = DoorHarness(effect)
    async with harness.hook_door.open(TURN) as door:
        ended = await run_hook(door.env, arguments=(hook_client.DENY_AS_JSON,))
    assert (ended.exit_code, ended.stderr) == (0, b"")
    answer = json.loads(ended.stdout)["hookSpecificOutput"]
    assert (answer["hookEventName"], answer["permissionDecision"]) == ("PreToolUse", "deny")
    assert answer["permissionDecisionReason"].startswith(reason)


async def test_a_hook_that_cannot_ask_denies_by_its_exit_code_in_either_form() -> None:
    assert_denied(
        await run_hook({}, arguments=(hook_client.DENY_AS_JSON,)), "Podium cannot be reached"
    )


@pytest.mark.parametrize("event", ["PostToolUse", "PostToolUseFailure", "AfterTool"])
async def test_hook_does_not_report_how_a_tool_ended(event: str) -> None:
    """A command could tell it as well; the CLI's own stream is asked instead."""
    harness = DoorHarness(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        await run_hook(door.env)
        ended = await run_hook(door.env, {**EVENT, "hook_event_name": event, "tool_response": "x"})
        assert (ended.exit_code, ended.stdout) == (2, b"")
        assert len(door.unsettled) == 1


async def test_a_wrong_token_is_denied() -> None:
    harness = DoorHarness(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        assert_denied(await run_hook({**door.env, "PODIUM_DOOR_TOKEN": "guess"}), "token")


async def test_a_door_that_is_gone_is_a_denial() -> None:
    harness = DoorHarness(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        env = door.env
    assert_denied(await run_hook(env), "Podium cannot be reached")
    assert_denied(await run_hook({}), "Podium cannot be reached")


async def test_a_door_that_does_not_answer_is_a_denial_within_the_deadline(tmp_path: Path) -> None:
    async with server(tmp_path, None) as env:
        ended = await run_hook(env, deadline="0.3")
    assert_denied(ended, "did not answer in time")
    assert ended.seconds > 0.3


def test_deadline_is_the_one_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_DOOR_DEADLINE", "0.3")
    assert hook_client._deadline_seconds() == 0.3


async def test_a_door_whose_process_is_stopped_is_a_denial(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    code = f"import socket; s = socket.socket(1); s.bind({path!r}); s.listen(); __import__('time').sleep(1000)"
    stopped = await ProcessLauncher().start(python(code))
    try:
        await retry_until(lambda: os.path.exists(path))
        os.kill(stopped.pid, signal.SIGSTOP)
        env = {"PODIUM_DOOR": path, "PODIUM_DOOR_TOKEN": "t"}
        assert_denied(await run_hook(env, deadline="0.3"))
    finally:
        await stopped.end(grace_seconds=0.0)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\n",
        b"garbage\n",
        b"\xff\xff\n",
        b"[]\n",
        b"null\n",
        b"true\n",
        b"{}\n",
        b'{"decision": "maybe"}\n',
        b'{"decision": ["allow"]}\n',
        b'{"decision": "ALLOW"}\n',
        b'{"decision": "allow"}',
        b'{"decision": "deny", "say": "{}"}\n',
        b'{"decision": "deny", "say": "\\u001b[31m\\nred\\ud800"}\n',
        b"[" * 100_000 + b"\n",
        b"x" * 3_000_000,
    ],
)
async def test_an_answer_that_is_not_a_yes_is_a_denial(tmp_path: Path, answer: bytes) -> None:
    async with server(tmp_path, answer) as env:
        ended = await run_hook(env)
    assert_denied(ended)
    assert b"\x1b" not in ended.stderr


@pytest.mark.parametrize(
    "stdin",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b"\xff",
        json.dumps({**EVENT, "tool_input": "ls"}).encode(),
        json.dumps({**EVENT, "tool_name": None}).encode(),
        json.dumps({**EVENT, "hook_event_name": "Stop"}).encode(),
        b"[" * 100_000,
    ],
)
async def test_an_event_that_cannot_be_understood_is_a_denial(stdin: bytes) -> None:
    harness = DoorHarness(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        assert_denied(await run_hook(door.env, stdin=stdin))
    assert harness.gate.judged == []


@pytest.mark.parametrize("deadline", ["", "soon", "0", "-1", "nan", "inf"])
async def test_a_deadline_that_is_none_does_not_open_the_door(deadline: str) -> None:
    harness = DoorHarness(Effect.DENY)
    async with harness.hook_door.open(TURN) as door:
        assert_denied(await run_hook(door.env, deadline=deadline), "as the test says")


async def test_an_input_that_never_ends_is_a_denial_within_the_deadline() -> None:
    harness = DoorHarness(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        env = {**os.environ, **door.env, "PODIUM_DOOR_DEADLINE": "0.3"}
        hook = await asyncio.create_subprocess_exec(
            *hook_command(), stdin=-1, stdout=-1, stderr=-1, env=env
        )
        assert await hook.wait() == 2
        assert hook.stdin is not None
        hook.stdin.close()
        await hook.communicate()


async def test_the_hook_ignores_what_its_surroundings_would_have_python_load(
    tmp_path: Path,
) -> None:
    (tmp_path / "json.py").write_text("import os; os._exit(0)")
    harness = DoorHarness(Effect.DENY)
    async with harness.hook_door.open(TURN) as door:
        spawn = ProcessSpec(
            argv=hook_command(),
            cwd=str(tmp_path),
            env={**door.env, "PYTHONPATH": str(tmp_path)},
            stdin=json.dumps(EVENT).encode(),
        )
        assert_denied(await ProcessLauncher().run(spawn))


@pytest.mark.parametrize(
    "text",
    [None, "", "{", "[]", "7", "{}", '{"PODIUM_DOOR": 7, "PODIUM_DOOR_TOKEN": "t"}', "\0" * 20_000],
)
async def test_a_door_file_that_names_no_door_is_a_denial(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "door.json"
    if text is not None:
        file.write_text(text)
    # What stands in the environment counts for nothing beside the file.
    async with server(tmp_path, b'{"decision": "allow"}\n') as env:
        ended = await run_hook({**env, "PODIUM_DOOR_FILE": str(file)})
    assert_denied(ended, "no turn is running")


async def test_a_door_is_found_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "door.json"
    async with server(tmp_path, b'{"decision": "allow"}\n') as env:
        file.write_text(json.dumps(env))
        ended = await run_hook({"PODIUM_DOOR_FILE": str(file)})
    assert ended.exit_code == 0
