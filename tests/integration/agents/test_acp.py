"""Any ACP agent: what it asks, how it ends, and what it gets up to, played by a pretender."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podium.agents.acp import AcpAgent
from podium.agents.acp.agent import GeminiSetup, is_gemini
from podium.agents.acp.gatekeeper import intents_of
from podium.agents.deps import AgentDeps, AgentOptions
from podium.core.decisions import CallOutcome, Effect, HookAnswer
from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    BudgetSpent,
    CallInDoubt,
    ConfigInvalid,
    ContextOverflow,
    PodiumError,
    RateLimited,
    TimedOut,
    ToolMissing,
)
from podium.core.model import Json
from podium.core.turns import Reply, Turn, TurnLimits
from podium.sandbox import ProcessLauncher
from podium.testing import (
    FakeConfinementProvider,
    FakeHookDoors,
    FixedClock,
    MemoryTranscripts,
    retry_until,
)

PRETENDER = str(Path(__file__).with_name("acp_pretender.py"))
ALLOW = HookAnswer(decision=Effect.ALLOW, call="c1")
DENY = HookAnswer(decision=Effect.DENY, say="the rules of the house")
OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "never", "name": "Never", "kind": "reject_always"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
COMMAND = {"toolCallId": "t1", "kind": "execute", "title": "`rm -rf x`", "rawInput": {}}
END = {"end": "end_turn"}


def says(text: str) -> dict[str, Any]:
    content = {"type": "text", "text": text}
    return {"update": {"sessionUpdate": "agent_message_chunk", "content": content}}


def uses(status: str, **changes: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": "tool_call_update", **COMMAND, "status": status, **changes}}


def asks(**changes: Any) -> dict[str, Any]:
    return {"ask": {"sessionId": "s1", "toolCall": {**COMMAND, **changes}, "options": OPTIONS}}


class Stage:
    """A pretender, a door that says what it is told to, and what came of it."""

    def __init__(self, tmp_path: Path, *answers: HookAnswer) -> None:
        self.workspace = tmp_path / "workspace"
        self.workspace.mkdir()
        self.doors = FakeHookDoors(answers=answers)
        self.transcripts = MemoryTranscripts()
        self.deps = AgentDeps(
            confinement_provider=FakeConfinementProvider(),
            launcher=ProcessLauncher(),
            doors=self.doors,
            transcripts=self.transcripts,
            clock=FixedClock(),
            hook_command=("hook",),
            homes=tmp_path / "homes",
            user_home=tmp_path / "person",
            environ={},
        )

    async def ask(
        self, *acts: Mapping[str, Any], turn: Any = None, model: str = "m", **plan: Any
    ) -> Reply:
        given = json.dumps({"acts": acts, **plan})
        command = (sys.executable, PRETENDER, given)
        agent = AcpAgent(AgentOptions(name="other", model=model, command=command), self.deps)
        limits = TurnLimits(seconds=20)
        turn = Turn(
            **{
                "run_id": "run_1",
                "step_key": "work#0",
                "role": "developer",
                "prompt": "go",
                "workspace": str(self.workspace),
                "limits": limits,
                **(turn or {}),
            }
        )
        return await agent.ask(turn)

    async def trouble(self, *acts: Mapping[str, Any], **plan: Any) -> PodiumError:
        with pytest.raises(PodiumError) as caught:
            await self.ask(*acts, **plan)
        return caught.value

    def requests(self) -> list[dict[str, Any]]:
        lines = (self.workspace / "heard.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def chosen(self) -> Json:
        return next(m["result"]["outcome"] for m in self.requests() if m.get("id") == "q1")


async def test_answer_is_the_text_after_its_last_tool(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    reply = await stage.ask(
        says("I look."), uses("completed", kind="read"), says("Al"), says("l."), END
    )
    assert reply.text == "All."
    assert (reply.session, reply.version, reply.agent) == ("s1", "3.2.1", "other")
    assert not reply.usage.complete
    assert '{"agent_message_chunk": "All."}' in stage.transcripts.text.splitlines()
    assert [kind for kind, _ in stage.doors.door.progress] == ["text", "tool", "text", "text"]


async def test_a_permission_is_given_once_and_never_for_good(tmp_path: Path) -> None:
    stage = Stage(tmp_path, ALLOW)
    over = uses("completed", rawOutput={"exit_code": 0})
    reply = await stage.ask(asks(), over, says("Done."), END)
    assert stage.chosen() == {"outcome": "selected", "optionId": "yes"}
    assert stage.doors.door.asked == [("request", "run_command", {"command": "rm -rf x"})]
    assert stage.doors.door.settled == {"t1#0": True}
    assert (reply.untold, reply.warnings) == ((), ())


async def test_how_a_command_ended_is_not_known_from_completed_alone(tmp_path: Path) -> None:
    stage = Stage(tmp_path, ALLOW)
    reply = await stage.ask(asks(), uses("completed"), says("Done."), END)
    assert stage.doors.door.settled == {}
    assert reply.warnings == (
        "the agent did not report how '`rm -rf x`' ended; its result is unknown",
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("payload", "ok"),
    [
        ({"rawOutput": {"exit_code": 3}}, False),
        ({"rawOutput": {"exit_code": 0}}, True),
        ({"rawOutput": {"output": "x", "metadata": {"exit": 1}}}, False),
        ({"_meta": {"terminal_exit": {"exit_code": 0, "signal": None}}}, True),
        ({"_meta": {"terminal_exit": {"exit_code": 137}}}, False),
        ({"status": "failed"}, False),
        ({"status": "failed", "rawOutput": {"exit_code": 0}}, False),
    ],
)
async def test_a_command_is_done_when_its_exit_code_says_so(
    tmp_path: Path, payload: dict[str, Any], ok: bool
) -> None:
    stage = Stage(tmp_path, ALLOW)
    await stage.ask(asks(), uses(**{"status": "completed", **payload}), says("Done."), END)
    assert stage.doors.door.settled == {"t1#0": ok}


@pytest.mark.sample(2)
@pytest.mark.parametrize("odd", [{"exit_code": "0"}, {"exit_code": True}, [], "0", None])
async def test_what_is_no_exit_code_is_none(tmp_path: Path, odd: Any) -> None:
    stage = Stage(tmp_path, ALLOW)
    await stage.ask(asks(), uses("completed", rawOutput=odd), says("Done."), END)
    assert stage.doors.door.settled == {}


async def test_a_refusal_is_for_once_and_its_reason_kept_for_the_next_prompt(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path, DENY)
    reply = await stage.ask(asks(), uses("failed"), says("No."), END)
    assert stage.chosen() == {"outcome": "selected", "optionId": "no"}
    assert reply.untold == ("Permission Denied: `rm -rf x`: the rules of the house",)
    assert stage.doors.door.settled == {}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "options", [[], None, "yes", [OPTIONS[0]], [{"kind": 3}, 7], [OPTIONS[0], OPTIONS[2]]]
)
async def test_where_only_lasting_options_are_offered_none_is_chosen(
    tmp_path: Path, options: Any
) -> None:
    stage = Stage(tmp_path, ALLOW)
    question = {"ask": {"sessionId": "s1", "toolCall": COMMAND, "options": options}}
    reply = await stage.ask(question, says("Hm."), END)
    assert stage.chosen() == {"outcome": "cancelled"}
    # The permit does not stay open, and what became of it is said in the next prompt.
    assert stage.doors.door.settled == {"t1#0": False}
    (untold,) = reply.untold
    assert "offers no option to allow it once" in untold


@pytest.mark.sample(2)
@pytest.mark.parametrize("call", [None, {}, {"toolCallId": 3}, {"kind": "execute"}, "x"])
async def test_a_question_about_nothing_is_a_no(tmp_path: Path, call: Any) -> None:
    stage = Stage(tmp_path, ALLOW)
    await stage.ask({"ask": {"toolCall": call, "options": OPTIONS}}, says("Hm."), END)
    assert stage.chosen() == {"outcome": "selected", "optionId": "no"}
    assert stage.doors.door.asked == []


async def test_one_refused_part_refuses_the_whole(tmp_path: Path) -> None:
    stage = Stage(tmp_path, ALLOW, DENY)
    diffs = [{"type": "diff", "path": name, "oldText": None, "newText": "y"} for name in ("a", "b")]
    await stage.ask(asks(kind="edit", content=diffs), says("Hm."), END)
    assert stage.chosen() == {"outcome": "selected", "optionId": "no"}
    assert stage.doors.door.settled == {"t1#0": False}


async def test_files_are_written_by_podium_or_not_at_all(tmp_path: Path) -> None:
    done = HookAnswer(decision=Effect.ALLOW, call="c1", outcome=CallOutcome(ok=True))
    stage = Stage(tmp_path, done, DENY)
    one, two = ({"sessionId": "s1", "path": name, "content": "hi"} for name in ("/w/a", "/w/b"))
    diff = [{"type": "diff", "path": "/w/a", "oldText": None, "newText": "hi"}]
    reply = await stage.ask(
        {"write": one},
        uses("completed", kind="edit", content=diff),
        {"write": two},
        says("Hm."),
        END,
    )
    first, second = [message for message in stage.requests() if message.get("id") == "q1"]
    assert first["result"] == {}
    assert second["error"]["message"] == "Permission Denied: the rules of the house"
    wished = [(how, arguments["path"]) for how, _, arguments in stage.doors.door.asked]
    assert wished == [("perform", "/w/a"), ("perform", "/w/b")]
    assert reply.untold == ("Permission Denied: writing /w/b: the rules of the house",)
    assert reply.warnings == ()


@pytest.mark.parametrize("method", ["fs/read_text_file", "terminal/create", "made/up"])
async def test_what_was_not_offered_is_not_there(tmp_path: Path, method: str) -> None:
    stage = Stage(tmp_path)
    await stage.ask({"call": method}, says("Hm."), END)
    (answer,) = [message for message in stage.requests() if message.get("id") == "q1"]
    assert answer["error"]["code"] == -32601


async def test_what_was_done_without_asking_is_named(tmp_path: Path) -> None:
    stage = Stage(tmp_path, DENY)
    free = uses("completed", toolCallId="t2", title="touch y")
    reply = await stage.ask(asks(), uses("completed"), free, says("Did it."), END)
    although, without = reply.warnings
    assert "although it was refused" in although
    assert "'touch y' without asking" in without


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("acts", "expected"),
    [
        ([says("No."), {"end": "refusal"}], AgentRefused),
        ([says("Hm."), {"end": "max_turn_requests"}], BudgetSpent),
        ([says("Hm."), {"end": "cancelled"}], AgentLost),
        ([says("Hm."), {"end": "made_up"}], AgentLost),
        ([says("Hm."), {"end": None}], AgentLost),
        ([{"end": "max_tokens"}], ContextOverflow),
        ([END], AgentUnavailable),
        ([{"fail": {"code": 401, "message": "who are you"}}], AgentNotLoggedIn),
        ([{"fail": {"code": -32000, "message": "Authentication required"}}], AgentNotLoggedIn),
        ([{"fail": {"code": 429, "message": "slow down, retry in 5s"}}], RateLimited),
        ([{"fail": {"code": 503, "message": "later"}}], AgentUnavailable),
        ([{"fail": {"code": 400, "message": "prompt is too long"}}], ContextOverflow),
        ([{"fail": {"code": -32602, "message": "Invalid params"}}], AgentRejected),
        ([{"fail": {"code": -32603, "message": "Internal error"}}], AgentUnavailable),
        ([{"fail": "nonsense"}], AgentUnavailable),
        ([says("Hm."), {"exit": 0}], AgentLost),
        ([says("Hm."), {"exit": 3}], AgentLost),
        ([{"flood": 70_000_000}, {"hang": True}], AgentLost),
    ],
)
async def test_every_end_is_read_for_what_it_is(
    tmp_path: Path, acts: Sequence[Mapping[str, Any]], expected: type[PodiumError]
) -> None:
    error = await Stage(tmp_path).trouble(*acts)
    assert type(error) is expected, error
    assert "'other'" in str(error)
    assert error.usage is not None
    assert (error.usage.turns, error.usage.complete) == (1, False)


async def test_the_turns_limit_it_ends_at_is_one_of_the_step(tmp_path: Path) -> None:
    error = await Stage(tmp_path).trouble(says("Hm."), {"end": "max_turn_requests"})
    assert isinstance(error, BudgetSpent)
    assert error.scope == "step"


@pytest.mark.sample(2)
@pytest.mark.parametrize("reason", ["end_turn", "refusal", "max_tokens", "cancelled", "made_up"])
async def test_it_may_be_silent_when_it_waits_for_an_approval(tmp_path: Path, reason: str) -> None:
    wait = HookAnswer(decision=Effect.ASK, say="wait for ap_1", approval_id="ap_1")
    stage = Stage(tmp_path, wait)
    reply = await stage.ask(says("I try."), asks(), uses("failed"), {"end": reason})
    assert reply.waiting_approvals == ("ap_1",)


PROTOCOL: dict[str, Any] = {
    "inputTokens": 100,
    "outputTokens": 10,
    "cachedReadTokens": 50,
    "thoughtTokens": 5,
}
QUOTA: dict[str, Any] = {
    "token_count": {"input_tokens": 150, "output_tokens": 15},
    "model_usage": [
        {"model": "gemini-small", "token_count": {"input_tokens": 1, "output_tokens": 1}},
        {"model": "gemini-2.5-pro", "token_count": {"input_tokens": 149, "output_tokens": 14}},
        {"model": "auto", "token_count": {"input_tokens": 999, "output_tokens": 1}},
        {"model": 3},
        None,
    ],
}


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "payload",
    [
        {"usage": PROTOCOL},
        {"_meta": {"quota": QUOTA}},
        {"usage": PROTOCOL, "_meta": {"quota": QUOTA}},
    ],
    ids=["protocol", "gemini", "both"],
)
async def test_what_is_reported_twice_is_counted_once(
    tmp_path: Path, payload: dict[str, Any]
) -> None:
    reply = await Stage(tmp_path).ask(says("Hi."), {"end": "end_turn", "more": payload})
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (150, 15)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("models", "more", "expected"),
    [
        ({}, {"_meta": {"quota": QUOTA}}, "gemini-2.5-pro"),
        ({"models": {"currentModelId": "gpt-5"}}, {}, "gpt-5"),
        ({"models": {"currentModelId": 3}}, {"_meta": {"quota": {"model_usage": 7}}}, ""),
        ({"models": [1]}, {"_meta": []}, ""),
    ],
)
async def test_model_is_the_one_it_reports(
    tmp_path: Path, models: dict[str, Any], more: dict[str, Any], expected: str
) -> None:
    opened = {"result": {"sessionId": "s1", **models}}
    end = {"end": "end_turn", "more": more}
    assert (await Stage(tmp_path).ask(says("Hi."), end, opened=opened, model="")).model == expected


async def test_call_in_doubt_on_leaving_the_door_still_reports_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)
    opened = stage.doors.open

    @asynccontextmanager
    async def in_doubt(turn: Turn, **more: Any) -> AsyncIterator[Any]:
        async with opened(turn, **more) as door:
            yield door
        raise CallInDoubt("run_1:work#0:c", "run_command")

    monkeypatch.setattr(stage.doors, "open", in_doubt)
    end = {"end": "end_turn", "more": {"usage": PROTOCOL}}
    error = await stage.trouble(says("Hi."), end)
    assert isinstance(error, CallInDoubt)
    assert error.usage is not None
    assert error.usage.input_tokens == 150


@pytest.mark.parametrize("fault", [KeyError("x"), TypeError("odd"), OSError(28, "disk full")])
async def test_what_nobody_foresaw_is_still_an_error_of_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    stage = Stage(tmp_path)

    def fail(kind: str, text: str) -> None:
        raise fault

    monkeypatch.setattr(stage.doors.door, "report_progress", fail)
    error = await stage.trouble(says("Hi."), {"hang": True})
    assert type(error) is AgentLost
    assert error.usage is not None


async def test_every_line_of_a_transcript_is_json(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    await stage.ask({"raw": "Loading...\n[1\n"}, says("Fi"), says("ne."), END)
    kept = [json.loads(line) for line in stage.transcripts.text.splitlines()]
    assert kept[0]["sent"]["method"] == "initialize"
    assert {"printed": "Loading..."} in kept


async def test_what_it_cannot_be_given_or_held_to_is_warned_of(tmp_path: Path) -> None:
    wished = ("google_web_search", "web_fetch", "subagents", "its_own_tool")
    limits = TurnLimits(seconds=20, tokens=10, usd=0.5, turns=3)
    stage = Stage(tmp_path)
    reply = await stage.ask(says("Hi."), END, turn={"own_tools": wished, "limits": limits})
    search, subagents, tokens, usd, turns = reply.warnings
    assert search == "agent 'other' has no tool 'google_web_search' of its own; it is not available"
    assert "'subagents'" in subagents
    assert ("10 tokens" in tokens, "0.5 usd" in usd, "3 turns" in turns) == (True, True, True)


def test_different_edits_are_different_calls() -> None:
    texts = ["", "x", "x\n", "x\r\n", "x\n+y", "y", "x" * 600_000, "x" * 600_000 + "y", None]
    calls: list[dict[str, Any]] = [
        {"kind": "edit", "content": [{"type": "diff", "path": "a", "oldText": old, "newText": new}]}
        for old in texts
        for new in texts
    ]
    calls += [
        {"kind": "edit", "title": "t", "locations": [{"path": "a"}], "rawInput": given}
        for given in ({}, {"new": 1}, {"new": 2})
    ]
    made = {json.dumps([item.arguments for item in intents_of(call)]) for call in calls}
    assert len(made) == len(calls)
    assert all(len(words) < 1_000_000 for words in made)


async def test_an_answer_that_was_cut_off_says_so(tmp_path: Path) -> None:
    reply = await Stage(tmp_path).ask(says("Half of"), {"end": "max_tokens"})
    assert reply.text == "Half of"
    assert reply.warnings == ("the answer was cut off at the model's output limit",)


async def test_agent_that_breaks_off_when_refused_still_reports_why(tmp_path: Path) -> None:
    reply = await Stage(tmp_path, DENY).ask(asks(), {"end": "cancelled"})
    assert reply.untold
    assert reply.warnings == ("the agent stopped after a refusal",)


async def test_garbage_on_its_output_is_passed_over(tmp_path: Path) -> None:
    garbage = {"raw": 'Loading…\n\xff\xfe\x00\n[1,2]\n{"id": 99, "result": 1}\n\n{"method": 3}\n'}
    odd = [{"update": update} for update in (None, 3, {}, {"sessionUpdate": "new_kind"})]
    reply = await Stage(tmp_path).ask(
        {"raw": garbage["raw"].replace("…", "...")}, *odd, says("Fine."), END
    )
    assert reply.text == "Fine."


async def test_unknown_protocol_version_is_reported(tmp_path: Path) -> None:
    error = await Stage(tmp_path).trouble(END, version=7)
    assert isinstance(error, AgentRejected)
    assert "version 7" in str(error)


async def test_a_session_that_needs_a_login_says_so(tmp_path: Path) -> None:
    refused = {"error": {"code": -32000, "message": "Authentication required"}}
    error = await Stage(tmp_path).trouble(END, opened=refused)
    assert isinstance(error, AgentNotLoggedIn)


async def test_a_loaded_conversation_is_not_taken_for_the_answer(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    reply = await stage.ask(says("New."), END, loads=True, late=5, turn={"session": "s1"})
    assert (reply.text, reply.session, reply.warnings) == ("New.", "s1", ())


async def test_an_agent_that_cannot_continue_begins_anew_and_says_so(tmp_path: Path) -> None:
    reply = await Stage(tmp_path).ask(says("New."), END, turn={"session": "s0"})
    assert reply.session == "s1"
    assert "cannot resume conversations" in reply.warnings[0]


async def test_a_silent_agent_ends_with_the_seconds_of_the_turn(tmp_path: Path) -> None:
    error = await Stage(tmp_path).trouble({"hang": True}, turn={"limits": TurnLimits(seconds=1)})
    assert isinstance(error, TimedOut)


async def test_cancelling_notifies_the_agent_and_ends_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    asking = asyncio.create_task(stage.ask(says("x"), {"hang": True}))
    await retry_until(lambda: bool(stage.doors.door.progress))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert '"session/cancel"' in stage.transcripts.text
    assert stage.doors.opened == 0


@pytest.mark.parametrize(
    ("call", "tool", "arguments"),
    [
        (
            {"kind": "execute", "title": "run", "rawInput": {"command": ["ls", "-l"], "cwd": "/w"}},
            "run_command",
            {"command": ["ls", "-l"], "cwd": "/w"},
        ),
        ({"kind": "execute", "title": "a `b` c"}, "run_command", {"command": "a `b` c"}),
        (
            {"kind": "execute", "title": "x", "rawInput": {"command": [1]}},
            "run_command",
            {"command": "x"},
        ),
        (
            {
                "kind": "edit",
                "content": [{"type": "diff", "path": "/w/a", "oldText": "x", "newText": "y"}],
            },
            "edit_file",
            {"path": "/w/a", "change": "-x\n+y"},
        ),
        (
            {"kind": "edit", "title": "change a", "locations": [{"path": "/w/a"}]},
            "edit_file",
            {"path": "/w/a", "change": "change a"},
        ),
        ({"kind": "delete", "locations": [{"path": "/w/a"}]}, "delete_file", {"path": "/w/a"}),
        ({"kind": "read", "locations": [{"path": "/w/a"}]}, "read_file", {"path": "/w/a"}),
        ({"kind": "search", "title": "TODO"}, "search_text", {"pattern": "TODO", "path": "."}),
        (
            {"kind": "search", "title": "KEY", "rawInput": {"include": ".env"}},
            "search_text",
            {"pattern": "KEY", "path": ".", "glob": ".env"},
        ),
        ({"kind": "fetch", "title": "http://x"}, "web_fetch", {"url": "http://x"}),
        ({"kind": "think", "title": "hm"}, "keep_notes", {"text": "hm"}),
        ({"kind": "edit", "title": "odd"}, "own_tool", {"name": "odd", "arguments": {}}),
        ({"kind": "move", "title": "mv"}, "own_tool", {"name": "mv", "arguments": {}}),
        ({"kind": 3, "title": None}, "own_tool", {"name": "3", "arguments": {}}),
        ({}, "own_tool", {"name": "None", "arguments": {}}),
    ],
)
def test_what_is_asked_becomes_a_call_that_the_gate_knows(
    call: Mapping[str, Json], tool: str, arguments: dict[str, Json]
) -> None:
    assert intents_of(call) == [(tool, arguments)]


@pytest.mark.parametrize(
    ("details", "tool", "cwd"),
    [
        ("[current working directory /w]", "run_command", None),
        ("[in sub] (list [all] of it)", "run_command", "sub"),
        ("[in sub] [background]", "run_command", "sub"),
        ("[in ok] (] (x)", "run_command", "ok"),
        ("[in ok] x] (y)", "own_tool", None),
        ("[in ../[x]", "own_tool", None),
        ("", "own_tool", None),
    ],
)
def test_the_folder_of_a_command_is_read_only_where_it_is_plain(
    tmp_path: Path, details: str, tool: str, cwd: str | None
) -> None:
    options = AgentOptions(name="gemini", command=("gemini", "--acp"))
    setup = GeminiSetup(options, Stage(tmp_path).deps)
    content = [{"type": "content", "content": {"type": "text", "text": details}}]
    call = {"toolCallId": "run_shell_command__1", "title": "ls", "content": content}
    (intent,) = setup.intents(call)
    assert (intent.tool, intent.arguments.get("cwd")) == (tool, cwd)


def test_gemini_is_known_by_its_program() -> None:
    assert is_gemini(("gemini", "--acp"))
    assert is_gemini(("node", "/opt/gemini-cli/bundle/gemini.js", "--acp"))
    assert not is_gemini(("codex-acp",))
    assert not is_gemini(("my-gemini-wrapper", "--acp"))


async def test_missing_program_is_reported_by_the_agent(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    agent = AcpAgent(AgentOptions(name="other", command=("/nonexistent/agent",)), stage.deps)
    turn = Turn(run_id="r", step_key="s", role="x", prompt="go", workspace=str(stage.workspace))
    with pytest.raises(ToolMissing, match="`command` in its settings"):
        await agent.ask(turn)


async def test_a_login_file_is_copied_and_conversations_are_kept(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    (tmp_path / "person/.other").mkdir(parents=True)
    (tmp_path / "person/.other/auth.json").write_text("{}")
    given = json.dumps({"acts": [says("x"), END]})
    script = 'ls "$HOME/.other" > seen.txt; mkdir -p "$HOME/talk"; touch "$HOME/talk/t" "$HOME/junk"; exec "$@"'
    command = ("sh", "-c", script, "sh", sys.executable, PRETENDER, given)
    own = {"copy_files": [".other/auth.json"], "keep": ["talk"]}
    agent = AcpAgent(AgentOptions(name="other", command=command, options=own), stage.deps)
    turn = Turn(run_id="r", step_key="s", role="x", prompt="go", workspace=str(stage.workspace))
    await agent.ask(turn)
    await agent.ask(turn)
    assert (stage.workspace / "seen.txt").read_text() == "auth.json\n"
    assert list((tmp_path / "homes").rglob("talk/t"))
    assert not list((tmp_path / "homes").rglob("auth.json"))


def test_settings_that_are_no_settings_are_named(tmp_path: Path) -> None:
    deps = Stage(tmp_path).deps
    with pytest.raises(ConfigInvalid, match="command"):
        AcpAgent(AgentOptions(name="other"), deps)
    with pytest.raises(ConfigInvalid, match="fast"):
        AcpAgent(AgentOptions(name="other", command=("x",), options={"fast": True}), deps)
