"""The hook door: who is let in, what is answered, what is left behind."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
import tempfile
from pathlib import Path

import pytest
from pydantic import BaseModel

from podium.core.decisions import (
    Access,
    Call,
    CallOutcome,
    CallStatus,
    Effect,
    PathArgument,
    Permit,
    Receipt,
    Refusal,
    Tier,
    ToolSpec,
    call_fingerprint,
)
from podium.core.errors import BadInput, CallInDoubt, NotPossibleNow, TimedOut
from podium.core.events import (
    AgentProgressed,
    ApprovalRequested,
    NoteTaken,
    ToolAbandoned,
    ToolCompleted,
    ToolFailed,
    ToolRefused,
    ToolRequested,
)
from podium.core.model import Json
from podium.core.processes import ProcessSpec
from podium.core.turns import Finish
from podium.ports import Checkpoint
from podium.sandbox import HookServer, HookServerSettings, ProcessLauncher, TurnHookServer
from podium.sandbox.hook_calls import TurnCalls, as_it_is
from podium.store import Redactor
from podium.testing import FakeTool, FakeToolbox, MemoryJournal, retry_until
from tests.integration.sandbox.door_harness import TURN, DoorHarness, RealDoorHarness, say, say_raw
from tests.unit.tools.toolbox_harness import make_harness

HarnessOf = type[DoorHarness]


@pytest.fixture(params=[DoorHarness, RealDoorHarness])
def harness_of(request: pytest.FixtureRequest) -> HarnessOf:
    """The fakes, and the tool door and toolbox that Podium runs with."""
    made: HarnessOf = request.param
    return made


LIST = {"tool": "run_command", "arguments": {"command": "ls"}}
LIST_KEY = f"run_1:work:0:{call_fingerprint('run_command', {'command': 'ls'})}.0"


async def test_a_permitted_call_is_recorded_asked_for_and_settled(harness_of: HarnessOf) -> None:
    harness = harness_of(Effect.ALLOW)
    async with harness.hook_door.open(TURN, agent="cli") as door:
        permit = await say(door, op="request", **LIST)
        assert permit["decision"] == "allow"
        assert permit["call"] == LIST_KEY
        assert [held.call.key for held in door.unsettled] == [permit["call"]]
        settled = await say(door, op="settle", call=permit["call"], ok=True, result={"exit": 0})
        assert settled == {"decision": "allow", "call": permit["call"], "receipt": 1}
        assert door.unsettled == ()
    requested, completed = await harness.events()
    assert isinstance(requested, ToolRequested)
    assert isinstance(completed, ToolCompleted)
    assert completed.result == {"exit": 0}
    assert harness.gate.judged[0].observed
    assert harness.gate.judged[0].role == "developer"
    assert harness.gate.judged[0].agent == "cli"


async def test_a_denied_call_brings_the_words_of_the_gate(harness_of: HarnessOf) -> None:
    harness = harness_of(Effect.DENY)
    async with harness.hook_door.open(TURN) as door:
        answer = await say(door, op="request", **LIST)
    assert answer["decision"] == "deny"
    assert "as the test says" in answer["say"]
    assert door.unsettled == ()


async def test_a_question_to_a_person_is_answered_at_once_and_remembered(
    harness_of: HarnessOf,
) -> None:
    harness = harness_of(Effect.ASK, Effect.ASK)
    async with harness.hook_door.open(TURN) as door:
        first = await say(door, op="request", **LIST)
        second = await say(door, op="perform", tool="echo")
        assert first["decision"] == second["decision"] == "ask"
        assert "end your turn" in first["say"]
        assert first["deadline"] is not None
        assert door.waiting_approvals == (first["approval_id"], second["approval_id"])
    asked = [event for event in await harness.events() if isinstance(event, ApprovalRequested)]
    assert [event.approval_id for event in asked] == list(door.waiting_approvals)


async def test_podium_performs_a_call_and_gives_its_outcome(harness_of: HarnessOf) -> None:
    harness = harness_of(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        answer = await say(door, op="perform", tool="echo", arguments={"a": 1})
    assert answer["decision"] == "allow"
    assert answer["outcome"]["result"] == {"echo": {"a": 1}}
    assert not harness.gate.judged[0].observed
    assert door.unsettled == ()


async def test_calls_for_the_same_thing_are_counted_and_others_keep_their_names(
    harness_of: HarnessOf,
) -> None:
    async def keys(harness: DoorHarness, *commands: str) -> list[str]:
        async with harness.hook_door.open(TURN) as door:
            asked = [{"tool": "run_command", "arguments": {"command": text}} for text in commands]
            return [(await say(door, op="request", **one))["call"] for one in asked]

    first = await keys(harness_of(*[Effect.ALLOW] * 3), "ls", "pwd", "ls")
    again = await keys(harness_of(*[Effect.ALLOW] * 3), "pwd", "ls", "ls")
    assert [key.rpartition(".")[2] for key in first] == ["0", "0", "1"]
    assert again == [first[1], first[0], first[2]]


async def test_the_tools_are_listed_as_far_as_the_turn_may_use_them(harness_of: HarnessOf) -> None:
    harness = harness_of(Effect.ALLOW)
    turn = TURN.model_copy(update={"allowed_tools": ("echo",)})
    async with harness.hook_door.open(turn) as door:
        answer = await say(door, op="tools")
        assert [tool["name"] for tool in answer["tools"]] == ["echo"]
        refused = await say(door, op="request", **LIST)
        assert refused["decision"] == "deny"
        assert "run_command" in refused["say"]
    assert harness.gate.judged == []


async def test_a_cli_may_use_its_own_names_for_tools(harness_of: HarnessOf) -> None:
    def translate(tool: str, arguments: dict[str, Json]) -> tuple[str, dict[str, Json]]:
        return {"Bash": "run_command"}[tool], {"command": arguments["command"]}

    harness = harness_of(Effect.ALLOW)
    arguments = {"command": "ls", "description": "look"}
    async with harness.hook_door.open(TURN, translate=translate) as door:
        permit = await say(door, op="request", tool="Bash", arguments=arguments)
        settled = await say(door, op="settle", tool="Bash", arguments=arguments, ok=True)
        assert settled["call"] == permit["call"]
        stranger = await say(door, op="request", tool="Mystery")
        assert stranger["decision"] == "deny"
    assert harness.gate.judged[0].tool == "run_command"


async def test_a_call_is_settled_by_the_name_its_program_gave_it(harness_of: HarnessOf) -> None:
    harness = harness_of(Effect.ALLOW, Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        await say(door, op="request", **LIST, ref="use-1")
        second = await say(door, op="request", **LIST, ref="use-2")
        settled = await say(door, op="settle", ref="use-2", ok=False, error="exit 1")
        assert settled["call"] == second["call"]
        assert [permit.call.index for permit in door.unsettled] == [0]


async def test_a_call_is_settled_once(harness_of: HarnessOf) -> None:
    harness = harness_of(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        permit = await say(door, op="request", **LIST)
        await say(door, op="settle", call=permit["call"], ok=True)
        again = await say(door, op="settle", call=permit["call"], ok=True)
        assert again["decision"] == "deny"
        assert "no open call" in again["say"]


async def test_an_outcome_learnt_elsewhere_settles_a_call(harness_of: HarnessOf) -> None:
    harness = harness_of(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        await say(door, op="request", ref="use-1", **LIST)
        await door.settle("use-1", ok=False, error="exit code 3")
        await door.settle("use-1", ok=True)  # settled is settled
        assert door.unsettled == ()
    assert await harness.statuses() == [CallStatus.FAILED]


async def test_what_is_not_settled_when_the_turn_ends_is_abandoned(harness_of: HarnessOf) -> None:
    harness = harness_of(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        await say(door, op="request", **LIST)
    assert door.unsettled == ()
    abandoned = (await harness.events())[-1]
    assert abandoned == ToolAbandoned(call=LIST_KEY, tool="run_command", receipt=1)
    assert await harness.statuses() == [CallStatus.ABANDONED]


async def test_what_podium_performs_when_the_turn_ends_is_stopped_and_settled(
    harness_of: HarnessOf,
) -> None:
    harness = harness_of(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        asking = asyncio.create_task(say(door, op="perform", tool="hang"))
        await harness.hanging.wait()
    assert await harness.statuses() == [CallStatus.FAILED]
    assert isinstance((await harness.events())[-1], ToolFailed)
    with pytest.raises(ValueError):  # no answer at all: the connection was closed
        await asking


async def test_what_a_cli_did_is_judged_again_when_its_turn_is_asked_again(
    harness_of: HarnessOf,
) -> None:
    harness = harness_of(Effect.ALLOW, Effect.DENY)
    async with harness.hook_door.open(TURN) as door:
        permit = await say(door, op="request", **LIST)
        await say(door, op="settle", call=permit["call"], ok=True)
    async with harness.hook_door.open(TURN) as door:
        again = await say(door, op="request", **LIST)
    assert again["decision"] == "deny"
    assert "as the test says" in again["say"]


async def test_what_a_crash_left_open_of_a_cli_is_abandoned_before_the_turn_is_asked_again(
    harness_of: HarnessOf,
) -> None:
    harness = harness_of(Effect.ALLOW)
    await harness.tool_door.request(observed_call(harness))  # and then Podium dies
    async with harness.hook_door.open(TURN):
        assert await harness.statuses() == [CallStatus.ABANDONED]


def observed_call(harness: DoorHarness) -> Call:
    return harness.toolbox.normalise(
        "run_command",
        {"command": "ls"},
        run_id=TURN.run_id,
        step_key=TURN.step_key,
        index=0,
        observed=True,
    )


async def test_what_podium_did_before_is_neither_done_nor_permitted_again(
    harness_of: HarnessOf,
) -> None:
    harness = harness_of(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        first = await say(door, op="perform", **LIST)
    async with harness.hook_door.open(TURN) as door:
        assert await say(door, op="perform", **LIST) == first
    async with harness.hook_door.open(TURN) as door:
        requested = await say(door, op="request", **LIST)
    assert requested["decision"] == "deny"
    assert "already made" in requested["say"]
    assert len(harness.gate.judged) == 1


@pytest.mark.parametrize("op", ["perform", "request"])
async def test_a_call_in_doubt_ends_the_turn_with_a_question_to_a_person(
    harness_of: HarnessOf, op: str
) -> None:
    harness = harness_of(Effect.ALLOW)
    asking: list[asyncio.Task[dict[str, Json]]] = []

    async def ask_twice() -> None:
        async with harness.hook_door.open(TURN) as slow, harness.hook_door.open(TURN) as door:
            asking.append(asyncio.create_task(say(slow, op="perform", tool="hang")))
            await harness.hanging.wait()
            answer = await say(door, op=op, tool="hang")
            assert answer["decision"] == "deny"

    with pytest.raises(CallInDoubt):
        await ask_twice()
    with pytest.raises(ValueError):  # no answer at all: the connection was closed
        await asking[0]


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("no_such_tool", {}, "there is no tool 'no_such_tool'"),
        ("run_command", {"command": 5}, "invalid arguments for 'run_command'"),
    ],
)
async def test_a_call_that_cannot_be_judged_is_denied_in_words_and_recorded(
    harness_of: HarnessOf, tool: str, arguments: dict[str, Json], words: str
) -> None:
    harness = harness_of(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        answer = await say(door, op="request", tool=tool, arguments=arguments)
        performed = await say(door, op="perform", tool=tool, arguments=arguments)
    assert answer["decision"] == performed["decision"] == "deny"
    assert words in answer["say"]
    refused = (await harness.events())[0]
    assert isinstance(refused, ToolRefused)
    key = f"run_1:work:0:{call_fingerprint(tool, arguments)}.0"
    assert (refused.effect, refused.call, refused.tier) == ("deny", key, "T4")
    assert words in refused.reason


class BrokenToolDoor:
    """A tool door that cannot do what it is there for."""

    async def request(self, call: Call) -> Permit | Refusal:
        raise RuntimeError("disk full of secrets")

    async def look_back(self, run_id: str, step_key: str) -> None:
        """Nothing is open here."""

    async def settle(
        self, permit: Permit, outcome: CallOutcome, checkpoint: Checkpoint | None = None
    ) -> Receipt:
        raise RuntimeError("disk full of secrets")

    async def abandon(self, permit: Permit) -> Receipt:
        raise RuntimeError("disk full of secrets")


async def test_crash_while_judging_is_a_denial_that_reveals_no_internals(
    harness_of: HarnessOf,
) -> None:
    harness = harness_of(tool_door=BrokenToolDoor())
    async with harness.hook_door.open(TURN) as door:
        answer = await say(door, op="request", **LIST)
        performed = await say(door, op="perform", tool="echo")
        assert [type(fault) for fault in door.problems] == [RuntimeError, RuntimeError]
    assert answer["decision"] == performed["decision"] == "deny"
    assert "secrets" not in answer["say"] + performed["say"]
    refused, note = await harness.events()
    assert isinstance(refused, ToolRefused)
    assert isinstance(note, NoteTaken)
    assert note.text == "in the hook server: RuntimeError: disk full of secrets (2 times)"


async def test_faults_are_noted_once_when_the_turn_ends_in_words_that_are_short_and_plain(
    harness_of: HarnessOf,
) -> None:
    harness = harness_of()
    async with harness.hook_door.open(TURN) as door:
        for number in range(12):
            names = {f"{number}\x1b[2J\u202e\n" + "x" * 9000: 1}
            await say(door, op="tools", **names)
        await say(door, op="tools", token="wrong")
        assert await harness.events() == []
    (note,) = await harness.events()
    assert isinstance(note, NoteTaken)
    assert note.text.startswith(
        "in the hook server: older problems: 8; BadInput: the message is not"
    )
    assert note.text.endswith("PODIUM_DOOR_TOKEN as it was given")
    assert note.text.isprintable()
    assert len(note.text) < 2_000


async def test_report_to_an_agent_about_its_own_call_is_no_fault_of_the_door(
    harness_of: HarnessOf,
) -> None:
    harness = harness_of()
    async with harness.hook_door.open(TURN) as door:
        await say(door, op="request", tool="no_such_tool")
    assert [type(event) for event in await harness.events()] == [ToolRefused]


async def test_a_turn_whose_faults_cannot_be_noted_ends_all_the_same(harness_of: HarnessOf) -> None:
    harness = harness_of()
    async with harness.hook_door.open(TURN) as door:
        await say(door, op="tools", token="wrong")
        await harness.store.close()
    assert isinstance(door.problems[0], BadInput)


class SlowToolDoor(BrokenToolDoor):
    """A tool door that permits, but only when told to."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go_on = asyncio.Event()
        self.abandoned: list[Permit] = []
        self._inner = DoorHarness(Effect.ALLOW).tool_door

    async def request(self, call: Call) -> Permit | Refusal:
        self.asked.set()
        await self.go_on.wait()
        return await self._inner.request(call)

    async def look_back(self, run_id: str, step_key: str) -> None:
        """Nothing is open here."""

    async def settle(
        self, permit: Permit, outcome: CallOutcome, checkpoint: Checkpoint | None = None
    ) -> Receipt:
        return await self._inner.settle(permit, outcome, checkpoint)

    async def abandon(self, permit: Permit) -> Receipt:
        self.abandoned.append(permit)
        return await self._inner.abandon(permit)


async def test_a_judgement_that_takes_too_long_is_a_denial_and_its_late_permit_is_abandoned(
    harness_of: HarnessOf,
) -> None:
    slow = SlowToolDoor()
    harness = harness_of(tool_door=slow, settings=HookServerSettings(answer_seconds=0.05))
    async with harness.hook_door.open(TURN) as door:
        answer = await say(door, op="request", **LIST)
        assert answer["decision"] == "deny"
        assert isinstance(door.problems[-1], TimedOut)
        slow.go_on.set()
    assert [permit.call.key for permit in slow.abandoned] == [LIST_KEY]
    refused, note = await harness.events()
    assert isinstance(note, NoteTaken)
    assert isinstance(refused, ToolRefused)
    assert refused.call == LIST_KEY


async def test_a_turn_that_ends_while_a_call_is_judged_leaves_no_open_call(
    harness_of: HarnessOf,
) -> None:
    slow = SlowToolDoor()
    harness = harness_of(tool_door=slow)
    async with harness.hook_door.open(TURN) as door:
        asking = asyncio.create_task(say(door, op="request", **LIST))
        await slow.asked.wait()
        asyncio.get_running_loop().call_later(0.05, slow.go_on.set)
    assert len(slow.abandoned) == 1
    with pytest.raises(ValueError):  # no answer at all: the connection was closed
        await asking


@pytest.mark.parametrize("token", ["", "wrong", "ö\ud800", 5, None, ["x"]])
async def test_without_the_turns_token_nothing_is_answered_but_no(
    harness_of: HarnessOf, token: Json
) -> None:
    harness = harness_of(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        answer = await say(door, op="tools", token=token)
    assert set(answer) == {"decision", "say"}
    assert answer["decision"] == "deny"
    assert "token" in answer["say"]


async def test_every_turn_has_a_token_of_its_own(harness_of: HarnessOf) -> None:
    harness = harness_of()
    async with harness.hook_door.open(TURN) as one, harness.hook_door.open(TURN) as other:
        assert one.token != other.token
        assert (await say(other, op="tools", token=one.token))["decision"] == "deny"
        assert one.env == {"PODIUM_DOOR": one.socket_path, "PODIUM_DOOR_TOKEN": one.token}


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"not json\n",
        b"\xff\xfe\n",
        b"[]\n",
        b"null\n",
        b"[" * 100_000 + b"\n",
        b'{"op": "request"}\n',
        b"{}\n",
    ],
)
async def test_a_malformed_message_gets_an_answer_and_harms_nobody(
    harness_of: HarnessOf, line: bytes
) -> None:
    harness = harness_of(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        assert (await say_raw(door, line))["decision"] == "deny"
        assert isinstance(door.problems[-1], BadInput)
        assert (await say(door, op="request", **LIST))["decision"] == "allow"


@pytest.mark.parametrize(
    "message",
    [
        {"op": "destroy"},
        {"op": "request"},
        {"op": "request", "tool": ""},
        {"op": "request", "tool": "echo", "arguments": []},
        {"op": "request", "tool": "echo", "surprise": 1},
        {"op": "request", "tool": "echo", "arguments": {"x": float("nan")}},
        {"op": "request", "tool": "echo", "arguments": {"x": "\ud800"}},
        {"op": "settle"},
        {"op": "settle", "ok": True, "call": "run_9:x:0"},
    ],
)
async def test_a_message_that_does_not_fit_is_denied(
    harness_of: HarnessOf, message: dict[str, Json]
) -> None:
    harness = harness_of(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        assert (await say(door, **message))["decision"] == "deny"
    assert harness.gate.judged == []


async def test_a_message_beyond_the_limit_is_denied(harness_of: HarnessOf) -> None:
    harness = harness_of(Effect.ALLOW, settings=HookServerSettings(message_bytes=1000))
    async with harness.hook_door.open(TURN) as door:
        answer = await say(door, op="request", tool="echo", arguments={"x": "y" * 5000})
        assert "longer than 1000 bytes" in answer["say"]


async def test_a_message_that_is_cut_off_is_denied(harness_of: HarnessOf) -> None:
    harness = harness_of(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        reader, writer = await asyncio.open_unix_connection(door.socket_path)
        writer.write(f'{{"token": "{door.token}", "op": "tools"}}'.encode())
        writer.write_eof()
        assert b"cut off" in await reader.readline()
        writer.close()


async def test_a_silent_connection_is_sent_away(harness_of: HarnessOf) -> None:
    harness = harness_of(settings=HookServerSettings(read_seconds=0.05))
    async with harness.hook_door.open(TURN) as door:
        reader, writer = await asyncio.open_unix_connection(door.socket_path)
        assert b"no message came" in await reader.readline()
        assert await reader.read() == b""
        writer.close()


async def test_connections_beyond_the_limit_are_sent_away_and_make_room_when_they_end(
    harness_of: HarnessOf,
) -> None:
    harness = harness_of(settings=HookServerSettings(connections=2))
    async with harness.hook_door.open(TURN) as door:
        held = [await asyncio.open_unix_connection(door.socket_path) for _ in range(2)]
        assert "too many" in (await say(door, op="tools"))["say"]
        for _, writer in held:
            writer.close()
        await retry_until(lambda: _is_open(door))


async def _is_open(door: TurnHookServer) -> bool:
    return bool((await say(door, op="tools"))["decision"] == "allow")


async def test_folder_and_socket_are_private_short_and_gone_afterwards(
    harness_of: HarnessOf,
) -> None:
    harness = harness_of()
    async with harness.hook_door.open(TURN) as door:
        path = Path(door.socket_path)
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(os.stat(door.socket_path).st_mode) == 0o600
        assert len(os.fsencode(door.socket_path)) < 100
    assert not path.parent.exists()


async def test_folder_and_socket_are_gone_when_the_turn_breaks(harness_of: HarnessOf) -> None:
    harness = harness_of(Effect.ALLOW)
    paths: list[Path] = []

    async def break_it() -> None:
        async with harness.hook_door.open(TURN) as door:
            paths.append(Path(door.socket_path))
            await say(door, op="request", **LIST)
            raise KeyError("broken")

    with pytest.raises(KeyError):
        await break_it()
    assert not paths[0].parent.exists()
    assert isinstance((await harness.events())[-1], ToolAbandoned)


async def test_a_folder_too_deep_for_a_socket_is_refused(
    harness_of: HarnessOf, tmp_path: Path
) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    harness = harness_of(settings=HookServerSettings(folder=str(deep)))
    with pytest.raises(NotPossibleNow, match="too long for sockets"):
        async with harness.hook_door.open(TURN):
            pass


ASK_AS_NOBODY = """
import os, socket, sys
os.setuid(65534)
door = socket.socket(socket.AF_UNIX)
door.connect(sys.argv[1])
print(door.recv(4096).decode())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="who a peer is, is told on Linux")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_user_is_sent_away_though_the_door_is_open(harness_of: HarnessOf) -> None:
    harness = harness_of()
    async with harness.hook_door.open(TURN) as door:
        os.chmod(os.path.dirname(door.socket_path), 0o777)
        os.chmod(door.socket_path, 0o777)
        argv = (sys.executable, "-IS", "-c", ASK_AS_NOBODY, door.socket_path)
        ended = await ProcessLauncher().run(ProcessSpec(argv=argv, cwd="/"))
    assert b"user 65534 may not use this hook server" in ended.stdout


async def test_the_token_is_recognised_where_a_program_prints_its_environment() -> None:
    async with DoorHarness().hook_door.open(TURN) as door:
        printed = f"PODIUM_DOOR_TOKEN={door.token}"
    assert Redactor({}).text(printed) == "PODIUM_DOOR_TOKEN=[redacted:podium-token]"


async def test_doors_of_killed_podiums_are_cleared_away_and_no_others() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as place:  # short enough for a socket's path
        folders = {
            name: Path(place) / f"podium-{name}" for name in ("dead", "alive", "new", "bare")
        }
        sockets = {}
        for name, folder in folders.items():
            folder.mkdir()
            if name != "bare":
                sockets[name] = socket.socket(socket.AF_UNIX)
                sockets[name].bind(str(folder / "door"))
            if name != "new":
                os.utime(folder, (0, 0))
        sockets["alive"].listen()
        for name in ("dead", "new"):
            sockets[name].close()

        async with DoorHarness(settings=HookServerSettings(folder=place)).hook_door.open(TURN):
            left = {name for name, folder in folders.items() if folder.exists()}

        sockets["alive"].close()
    assert left == {"alive", "new", "bare"}


async def test_the_agent_itself_is_answered_like_a_program_at_the_socket(
    harness_of: HarnessOf,
) -> None:
    harness = harness_of(Effect.ALLOW, Effect.DENY, Effect.ASK)
    async with harness.hook_door.open(TURN) as door:
        allowed = await door.request("run_command", {"command": "ls"}, ref="use-1")
        denied = await door.request("run_command", {"command": "rm x"})
        asked = await door.request("run_command", {"command": "make"})
        await door.settle("use-1", ok=True, result={"exit": 0})
    assert (allowed.decision, allowed.call) == (Effect.ALLOW, LIST_KEY)
    assert denied.decision is Effect.DENY
    assert denied.say
    assert asked.decision is Effect.ASK
    assert door.waiting_approvals == (asked.approval_id,)
    assert CallStatus.COMPLETED in await harness.statuses()


async def test_podium_performs_for_an_agent_that_has_no_process(harness_of: HarnessOf) -> None:
    harness = harness_of(Effect.ALLOW, Effect.DENY)
    async with harness.hook_door.open(TURN) as door:
        done = await door.perform("echo", {"a": 1})
        denied = await door.perform("echo", {"a": 2})
        unknown = await door.perform("no_such_tool", {})
    assert done.outcome is not None
    assert done.outcome.result == {"echo": {"a": 1}}
    assert not denied.allowed
    assert not unknown.allowed
    assert "no_such_tool" in unknown.say


async def test_a_value_no_digest_can_be_made_of_is_denied_in_process_too(
    harness_of: HarnessOf,
) -> None:
    harness = harness_of(Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        answer = await door.request("run_command", {"command": "half \ud83d"})
    assert not answer.allowed


async def test_what_an_agent_is_at_is_put_together_and_noted(harness_of: HarnessOf) -> None:
    harness = harness_of()
    async with harness.hook_door.open(TURN, agent="gemini") as door:
        for piece in ("Let ", "me ", "see."):
            door.report_progress("text", piece)
        door.report_progress("tool", "run_command ls")
        door.report_progress("text", "y" * 5_000)
    output = await retry_until(lambda: _progress(harness, 3))
    assert [(event.kind, event.text) for event in output[:2]] == [
        ("text", "Let me see."),
        ("tool", "run_command ls"),
    ]
    assert output[2].text == "y" * 2_000 + " [… 3000 more characters]"


@pytest.mark.parametrize(
    ("granted", "decision"),
    [
        (None, Effect.DENY),
        (("subagents",), Effect.DENY),
        (("web_search",), Effect.ALLOW),
        (("google_web_search",), Effect.ALLOW),  # what another CLI calls it
        (("GoogleSearch",), Effect.ALLOW),
    ],
)
async def test_a_tool_of_the_agents_own_must_be_granted_by_its_role(
    granted: tuple[str, ...] | None, decision: Effect
) -> None:
    harness = DoorHarness(Effect.ALLOW)
    turn = TURN.model_copy(update={"own_tools": granted})
    search = ToolSpec(name="web_search", tier=Tier.T1, receipt_fields=("done",), observed_only=True)
    harness.toolbox = FakeToolbox(harness.tool_door, [FakeTool(search, _never)])
    doors = HookServer(harness.tool_door, harness.toolbox, harness.journal)
    async with doors.open(turn, translate=lambda tool, given: ("web_search", given)) as door:
        answer = await door.request("GoogleSearch", {"query": "podium"})
        performed = await door.perform("web_search", {"query": "podium"})
        assert door.specs() == []
    assert answer.decision is decision
    assert not performed.allowed  # Podium cannot do it for the agent


async def _progress(harness: DoorHarness, least: int) -> list[AgentProgressed]:
    """Return the progress events, once there are so many: notes are written a moment later."""
    messages = [event for event in await harness.events() if isinstance(event, AgentProgressed)]
    return messages if len(messages) >= least else []


async def _never(arguments: dict[str, Json]) -> Json:
    raise AssertionError("Podium does not perform an agent's own tools")


async def test_a_secret_that_comes_in_two_pieces_is_not_noted_in_two_halves() -> None:
    harness = DoorHarness()
    hide = lambda text: text.replace("hunter2-hunter2", "[redacted]")  # noqa: E731
    doors = HookServer(harness.tool_door, harness.toolbox, harness.journal, redact=hide)
    async with doors.open(TURN) as door:
        door.report_progress("text", "x" * 500 + " the key is hunter2-")
        await retry_until(lambda: _progress(harness, 1))
        door.report_progress("text", "hunter2 and more")
    output_text = "".join(item.text for item in await retry_until(lambda: _progress(harness, 2)))
    assert output_text == "x" * 500 + " the key is [redacted] and more"


async def test_what_is_wished_for_again_in_a_later_asking_is_done_again() -> None:
    harness = RealDoorHarness(Effect.ALLOW, Effect.ALLOW)
    async with harness.hook_door.open(TURN) as door:
        first = await door.perform("echo", {"a": 1})
    async with harness.hook_door.open(TURN.model_copy(update={"asking": 1})) as door:
        second = await door.perform("echo", {"a": 1})
    assert first.allowed
    assert second.allowed
    assert first.call != second.call
    assert await harness.statuses() == [CallStatus.COMPLETED, CallStatus.COMPLETED]


@pytest.mark.parametrize("path", [" /etc/passwd", "a.py ", "~/.ssh", "@.github/workflows/x.yml"])
async def test_a_path_that_programs_read_in_their_own_way_is_refused(path: str) -> None:
    harness = DoorHarness(Effect.ALLOW, Effect.ALLOW)
    reading = ToolSpec(
        name="read_file",
        tier=Tier.T0,
        receipt_fields=("sha256",),
        paths=(PathArgument(name="path", access=Access.READ),),
    )
    toolbox = FakeToolbox(harness.tool_door, [FakeTool(reading, _never)])
    async with HookServer(harness.tool_door, toolbox, harness.journal).open(TURN) as door:
        odd = await door.request("read_file", {"path": path})
        plain = await door.request("read_file", {"path": path.strip(" ~@")})
    assert not odd.allowed
    assert "remove spaces around it" in odd.say
    assert plain.allowed


def _offering(
    workspace: Path,
    allowed: tuple[str, ...] | None = None,
    contract: type[BaseModel] | None = None,
) -> list[str]:
    tools = make_harness(workspace)
    update = {"workspace": str(tools.root), "allowed_tools": allowed, "contract": contract}
    turn = TURN.model_copy(update=update)
    calls = TurnCalls(
        turn,
        tools.door,
        tools.toolbox,
        MemoryJournal(tools.store),
        agent="a",
        translate=as_it_is,
        answer_seconds=5,
        perform_seconds=5,
        expect_seconds=5,
        redact=str,
    )
    return [spec.name for spec in calls.specs()]


def test_git_is_offered_where_there_is_a_repository_and_undo_to_who_names_it(
    tmp_path: Path,
) -> None:
    plain = _offering(tmp_path)
    assert "read_file" in plain
    assert not [name for name in plain if name.startswith(("git_", "restore_"))]
    (tmp_path / "workspace" / ".git").mkdir()
    assert {"git_status", "git_diff", "git_log", "git_commit"} < set(_offering(tmp_path))
    assert _offering(tmp_path, ("restore_file",)) == ["restore_file"]


def test_finish_is_not_offered_where_the_answer_has_a_contract(tmp_path: Path) -> None:
    named = ("read_file", "finish")
    assert _offering(tmp_path, named) == ["read_file", "finish"]
    assert _offering(tmp_path, named, Finish) == ["read_file"]
    assert set(_offering(tmp_path)) - set(_offering(tmp_path, contract=Finish)) == {"finish"}


async def test_a_tool_that_the_role_does_not_have_is_denied_and_names_those_it_has() -> None:
    harness = RealDoorHarness(Effect.ALLOW)
    turn = TURN.model_copy(update={"role": "auditor", "allowed_tools": ("echo",)})
    async with harness.hook_door.open(turn) as door:
        answer = await door.perform("run_command", {"command": "ls"})
    assert not answer.mistake
    assert (
        answer.say
        == "the role 'auditor' does not have the tool 'run_command'; use one of these: echo"
    )
