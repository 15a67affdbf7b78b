"""The scripted agent: a real process, asked like any headless CLI."""

from __future__ import annotations

import asyncio
import os
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import podium
from podium.agents import AgentScript, ScriptedAgent
from podium.core.decisions import CallStatus, Effect, Tier, ToolSpec, Usage
from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    BadInput,
    ContextOverflow,
    PodiumError,
    RateLimited,
    TimedOut,
)
from podium.core.events import ToolCompleted
from podium.core.turns import Turn, TurnLimits
from podium.ports import HookServers, Toolbox
from podium.sandbox import LauncherSettings, ProcessLauncher
from podium.testing import (
    FakeHookDoors,
    FakeTool,
    FakeToolbox,
    FixedClock,
    MemoryTranscripts,
    retry_until,
)
from tests.integration.sandbox.door_harness import SHELL, DoorHarness


def agent(*acts: dict[str, Any], doors: HookServers | None = None, **turn: Any) -> ScriptedAgent:
    return playing({"role": "tester", "acts": acts, **turn}, doors=doors)


def playing(*turns: dict[str, Any], doors: HookServers | None = None) -> ScriptedAgent:
    script = AgentScript.model_validate({"turns": turns})
    launcher = ProcessLauncher(LauncherSettings(grace_seconds=0.2, linger_seconds=0.01))
    return ScriptedAgent("player", script, launcher, doors or FakeHookDoors())


def turn(
    folder: Path,
    *,
    seconds: float = 20.0,
    role: str = "tester",
    prompt: str = "go",
    session: str | None = None,
    step_key: str = "s",
) -> Turn:
    limits = TurnLimits(seconds=seconds)
    return Turn(
        run_id="run_1",
        step_key=step_key,
        role=role,
        prompt=prompt,
        workspace=str(folder),
        limits=limits,
        session=session,
    )


async def test_it_says_what_the_script_says(tmp_path: Path) -> None:
    reply = await agent({"say": "one"}, {"say": "two"}).ask(turn(tmp_path))
    assert (reply.text, reply.agent, reply.model) == ("one\ntwo", "player", "script")
    assert (reply.version, reply.payload, reply.found) == (podium.__version__, None, "none")


async def test_its_final_words_replace_its_earlier_ones(tmp_path: Path) -> None:
    reply = await agent({"say": "one"}, reply="the end").ask(turn(tmp_path))
    assert reply.text == "the end"


async def test_it_sees_an_allow_listed_environment_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "not-for-agents-123456")
    reply = await agent({"dump_environment": True}).ask(turn(tmp_path))
    names = {line.partition("=")[0] for line in reply.text.splitlines()}
    assert "PATH" in names
    assert "MY_API_TOKEN" not in names
    assert "not-for-agents-123456" not in reply.text


async def test_a_crash_is_an_agent_that_was_lost(tmp_path: Path) -> None:
    with pytest.raises(AgentLost, match="exit 3"):
        await agent({"say": "about to"}, {"crash": 3}).ask(turn(tmp_path))


async def test_an_exit_without_a_readable_answer_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(AgentLost, match="no readable answer"):
        await agent({"lie": True}).ask(turn(tmp_path))


async def test_a_hang_ends_with_the_turns_seconds(tmp_path: Path) -> None:
    with pytest.raises(TimedOut, match="player"):
        await agent({"hang": True}).ask(turn(tmp_path, seconds=0.3))


async def test_a_flood_before_the_answer_does_not_hide_it_when_it_fits(tmp_path: Path) -> None:
    reply = await agent({"flood_bytes": 1_000_000}, {"say": "still here"}).ask(turn(tmp_path))
    assert reply.text == "still here"


async def test_a_cancelled_turn_leaves_no_process_behind(tmp_path: Path) -> None:
    stubborn = agent({"ignore_sigterm": True}, {"leave_child": True}, {"hang": True})
    before = _sleepers()
    asking = asyncio.create_task(stubborn.ask(turn(tmp_path, seconds=60)))
    await retry_until(lambda: _sleepers() - before)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not _sleepers() - before


async def test_its_output_is_reported_while_the_turn_runs(tmp_path: Path) -> None:
    doors = FakeHookDoors()
    slow = agent({"say": "one"}, {"say": "two"}, {"hang": True}, doors=doors)
    asking = asyncio.create_task(slow.ask(turn(tmp_path, seconds=60)))
    await retry_until(lambda: len(doors.door.progress) == 2)
    assert not asking.done()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert doors.door.progress == [("text", "one\n"), ("text", "two\n")]


async def test_every_line_of_it_is_kept_in_a_transcript(tmp_path: Path) -> None:
    transcripts = MemoryTranscripts()
    script = AgentScript.model_validate({"turns": [{"role": "tester", "acts": [{"say": "hello"}]}]})
    role_agent = ScriptedAgent(
        "player", script, ProcessLauncher(), FakeHookDoors(), transcripts=transcripts
    )
    reply = await role_agent.ask(turn(tmp_path))
    (kept,) = transcripts.transcripts
    assert reply.transcript == kept.path
    assert kept.lines == ['{"say": "hello"}', '{"reply": "hello", "next_act": null}']


WRITE = ToolSpec(name="write_file", tier=Tier.T1, receipt_fields=("path", "sha256"))
OWN_ACTS = [
    pytest.param({"write": {"path": "sub/made.txt", "content": "hi\n"}}, id="write"),
    pytest.param({"run": "mkdir sub && echo hi > sub/made.txt"}, id="run"),
]


class HandsHarness(DoorHarness):
    """A door for agents that write files and run commands themselves."""

    def _make_toolbox(self) -> Toolbox:
        async def not_ours(arguments: dict[str, Any]) -> Any:
            raise AssertionError("the agent does it, not Podium")

        tools = [FakeTool(SHELL, not_ours), FakeTool(WRITE, not_ours)]
        return FakeToolbox(self.tool_door, tools)


@pytest.mark.parametrize("act", OWN_ACTS)
async def test_what_it_does_itself_is_asked_for_done_and_settled(
    act: dict[str, Any], tmp_path: Path
) -> None:
    harness = HandsHarness(Effect.ALLOW)
    reply = await agent(act, reply="done", doors=harness.hook_door).ask(turn(tmp_path))
    assert reply.text == "done"
    assert (tmp_path / "sub/made.txt").read_text() == "hi\n"
    (call,) = harness.gate.judged
    assert call.observed
    assert await harness.statuses() == [CallStatus.COMPLETED]
    (completed,) = [event for event in await harness.events() if isinstance(event, ToolCompleted)]
    assert completed.result is not None


@pytest.mark.parametrize("act", OWN_ACTS)
async def test_what_is_denied_it_does_not_do_and_it_goes_on(
    act: dict[str, Any], tmp_path: Path
) -> None:
    harness = HandsHarness(Effect.DENY)
    reply = await agent(act, {"say": "well"}, doors=harness.hook_door).ask(turn(tmp_path))
    assert reply.text == "well"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("act", OWN_ACTS)
async def test_without_a_door_it_does_nothing_with_its_own_hands(
    act: dict[str, Any], tmp_path: Path
) -> None:
    assert (await agent(act, {"say": "well"}).ask(turn(tmp_path))).text == "well"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("act", OWN_ACTS)
async def test_one_that_ignores_the_gate_acts_without_asking(
    act: dict[str, Any], tmp_path: Path
) -> None:
    harness = HandsHarness(Effect.DENY)
    await agent({**act, "ignore_the_gate": True}, doors=harness.hook_door).ask(turn(tmp_path))
    assert (tmp_path / "sub/made.txt").exists()
    assert harness.gate.judged == []


async def test_a_commit_is_asked_for_as_the_command_that_it_is(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "-q"], check=True)
    for key, value in {"user.name": "A", "user.email": "a@example.org"}.items():
        subprocess.run([*git, "config", key, value], check=True)
    (tmp_path / "a.txt").write_text("a")
    harness = HandsHarness(Effect.ALLOW)
    await agent({"commit": "It's done"}, doors=harness.hook_door).ask(turn(tmp_path))
    (call,) = harness.gate.judged
    assert call.arguments == {"command": """git add -A && git commit -q -m 'It'"'"'s done'"""}
    log = subprocess.run([*git, "log", "--format=%s"], capture_output=True, text=True, check=True)
    assert log.stdout == "It's done\n"


async def test_a_command_that_fails_is_settled_as_a_failure(tmp_path: Path) -> None:
    harness = HandsHarness(Effect.ALLOW)
    await agent({"run": "exit 7"}, doors=harness.hook_door).ask(turn(tmp_path))
    assert await harness.statuses() == [CallStatus.FAILED]


async def test_an_act_that_waits_for_a_person_is_played_again_in_its_session(
    tmp_path: Path,
) -> None:
    harness = HandsHarness(Effect.ASK, Effect.ALLOW)
    acts = [{"say": "first"}, {"run": "touch made"}, {"say": "last"}]
    role_agent = agent(*acts, doors=harness.hook_door)
    waiting = await role_agent.ask(turn(tmp_path))
    assert (waiting.text, len(waiting.waiting_approvals)) == ("first", 1)
    assert not (tmp_path / "made").exists()
    done = await role_agent.ask(turn(tmp_path, session=waiting.session))
    assert (done.text, done.waiting_approvals) == ("last", ())
    assert (tmp_path / "made").exists()


async def test_a_continued_conversation_comes_to_the_next_turn_that_fits(tmp_path: Path) -> None:
    role_agent = playing(
        {"role": "tester", "reply": "first"},
        {"role": "other", "reply": "not asked"},
        {"role": "tester", "when": "again", "reply": "second"},
    )
    replies = [await role_agent.ask(turn(tmp_path))]
    for prompt in ("again, please", "again", "something else"):
        session = replies[-1].session
        replies.append(await role_agent.ask(turn(tmp_path, prompt=prompt, session=session)))
    assert [reply.text for reply in replies] == ["first", "second", "first", "first"]


@pytest.mark.parametrize(
    "session",
    ["", "nonsense", "[]", '{"turn":7,"act":0}', '{"turn":-1,"act":0}', '{"turn":0,"act":9}'],
)
async def test_a_session_that_the_script_has_no_place_for_is_refused(
    session: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match="no conversation"):
        await agent({"say": "x"}).ask(turn(tmp_path, session=session))


async def test_its_payload_ends_its_last_words_in_a_fence(tmp_path: Path) -> None:
    payload = {"verdict": "päss", "notes": ["```"]}
    reply = await agent({"payload": payload}, reply="Fine.").ask(turn(tmp_path))
    assert reply.text.startswith('Fine.\n\n```json\n{\n  "verdict": "päss"')
    assert reply.text.endswith("\n}\n```")
    assert (reply.payload, reply.found) == (None, "none")


async def test_what_it_says_it_used_is_added_up(tmp_path: Path) -> None:
    used = {"usage": {"input": 100, "output": 20, "usd": 0.5}}
    usage = (await agent(used, used).ask(turn(tmp_path))).usage
    assert (usage.input_tokens, usage.output_tokens, usage.usd) == (200, 40, 1.0)
    assert (usage.turns, usage.complete) == (1, True)


FAILURES = {
    "not_logged_in": AgentNotLoggedIn,
    "rate_limited": RateLimited,
    "unavailable": AgentUnavailable,
    "overflow": ContextOverflow,
    "refused": AgentRefused,
    "rejected": AgentRejected,
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", FAILURES)
async def test_a_failure_of_its_provider_is_an_error_of_the_tree(kind: str, tmp_path: Path) -> None:
    failing = agent({"usage": {"input": 7}}, {"fail": {"kind": kind}}, {"say": "never"})
    with pytest.raises(PodiumError, match="'player'") as caught:
        await failing.ask(turn(tmp_path))
    assert type(caught.value) is FAILURES[kind]
    assert isinstance(caught.value.usage, Usage)
    assert (caught.value.usage.input_tokens, caught.value.usage.turns) == (7, 1)


async def test_a_limit_says_until_when(tmp_path: Path) -> None:
    clock = FixedClock()
    fail = {"fail": {"kind": "rate_limited", "retry_seconds": 90}}
    script = AgentScript.model_validate({"turns": [{"role": "tester", "acts": [fail]}]})
    role_agent = ScriptedAgent("player", script, ProcessLauncher(), FakeHookDoors(), clock=clock)
    with pytest.raises(RateLimited) as caught:
        await role_agent.ask(turn(tmp_path))
    assert caught.value.retry_at == clock.now() + timedelta(seconds=90)


async def test_what_was_used_before_a_crash_is_known(tmp_path: Path) -> None:
    with pytest.raises(AgentLost) as caught:
        await agent({"usage": {"output": 9}}, {"crash": 0}).ask(turn(tmp_path))
    assert caught.value.usage is not None
    assert (caught.value.usage.output_tokens, caught.value.usage.complete) == (9, False)


async def test_an_answer_that_was_cut_off_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(AgentLost, match="no readable answer"):
        await agent({"say": "all is well"}, {"truncate": 30}).ask(turn(tmp_path))


async def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    doors = FakeHookDoors()
    reply = await agent({"bad_bytes": True}, {"say": "\ud800"}, doors=doors).ask(turn(tmp_path))
    assert reply.text == "caf\ufffd \ufffd\ufffd\n?"
    reply.model_dump_json().encode()
    assert doors.door.progress == [("text", "caf\ufffd \ufffd\ufffd\n"), ("text", "?\n")]


async def test_fifty_megabytes_of_rubbish_do_not_hide_the_answer(tmp_path: Path) -> None:
    reply = await agent({"flood_bytes": 50_000_000}, {"say": "still here"}).ask(turn(tmp_path))
    assert reply.text == "still here"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "rubbish",
    ["[1]", "{", '{"reply": 5, "next_act": 0}', '{"usage": 5}', "null", "", "[" * 100_000],
)
async def test_lines_that_are_no_records_are_passed_over(rubbish: str, tmp_path: Path) -> None:
    (tmp_path / "rubbish").write_text(rubbish + "\n")
    shout = {"run": "cat rubbish > /proc/$PPID/fd/1", "ignore_the_gate": True}
    assert (await agent(shout, {"say": "still here"}).ask(turn(tmp_path))).text == "still here"


@pytest.mark.soak
async def test_fifty_concurrent_turns_all_get_their_answer(tmp_path: Path) -> None:
    harness = DoorHarness(*[Effect.ALLOW] * 50)
    role_agent = agent({"call": "echo"}, {"say": "done"}, doors=harness.hook_door)
    turns = [turn(tmp_path, seconds=120, step_key=f"s:{number}") for number in range(50)]
    replies = await asyncio.gather(*(role_agent.ask(item) for item in turns))
    assert [reply.text for reply in replies] == ["done"] * 50


async def test_a_role_without_a_turn_is_named_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"'auditor'.*tester"):
        await agent({"say": "x"}).ask(turn(tmp_path, role="auditor"))


async def test_the_first_turn_whose_pattern_is_in_the_prompt_is_played(tmp_path: Path) -> None:
    script = AgentScript.model_validate(
        {
            "turns": [
                {"role": "tester", "when": "^fix", "reply": "fixing"},
                {"role": "tester", "reply": "looking"},
            ]
        }
    )
    role_agent = ScriptedAgent("player", script, ProcessLauncher(), FakeHookDoors())
    assert (await role_agent.ask(turn(tmp_path, prompt="fix it"))).text == "fixing"
    assert (await role_agent.ask(turn(tmp_path, prompt="please fix it"))).text == "looking"


@pytest.mark.parametrize(
    ("act", "words"),
    [
        ({}, "exactly one action; this one has none"),
        ({"say": None}, "exactly one action; this one has none"),
        ({"say": "x", "call": "y"}, "exactly one action; this one has call, say"),
        ({"say": "x", "with": {"a": 1}}, "`with` needs `call`"),
        ({"dance": True}, "Extra inputs"),
        ({"hang": False}, "should be True"),
        ({"say": "x", "ignore_the_gate": True}, "needs `write`, `run` or `commit`"),
        ({"call": "x", "ignore_the_gate": True}, "needs `write`, `run` or `commit`"),
        ({"write": {"content": "x"}}, "Field required"),
        ({"write": {"path": ""}}, "at least 1 character"),
        ({"run": ""}, "at least 1 character"),
        ({"commit": ["x"]}, "valid string"),
        ({"payload": [1]}, "valid dictionary"),
        ({"usage": {"input": -1}}, "greater than or equal to 0"),
        ({"usage": {"usd": float("nan")}}, "finite number"),
        ({"fail": {"kind": "bored"}}, "not_logged_in"),
        ({"fail": {"kind": "refused", "retry_seconds": 1}}, "needs `kind: rate_limited`"),
        ({"fail": {"kind": "rate_limited", "retry_seconds": -1}}, "greater than or equal to 0"),
        ({"sleep_seconds": float("inf")}, "finite number|less than or equal"),
        ({"crash": 256}, "less than or equal to 255"),
        ({"truncate": -1}, "greater than or equal to 0"),
        ({"flood_bytes": "many"}, "valid integer"),
    ],
)
def test_an_act_that_cannot_be_played_is_refused_with_what_is_wrong(
    act: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        AgentScript.model_validate({"turns": [{"role": "r", "acts": [act]}]})


def _sleepers() -> set[int]:
    """Processes that are the child a scripted agent leaves behind."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if line == b"sleep\x003600\x00" and os.stat(entry).st_uid == os.getuid():
                found.add(int(entry.name))
    return found
