"""Any program as an agent: what it is given, how its answer is read, what does not count."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podium.agents.deps import AgentDeps, AgentOptions
from podium.agents.headless.command_agent import CommandAgent
from podium.core.decisions import Effect
from podium.core.errors import (
    AgentLost,
    AgentRejected,
    BadInput,
    CallInDoubt,
    PodiumError,
    TimedOut,
    ToolMissing,
)
from podium.core.turns import Turn, TurnLimits
from podium.ports import Translate
from podium.sandbox import HookServer, ProcessLauncher, hook_command
from podium.testing import (
    FakeConfinementProvider,
    FakeHookDoors,
    FakeTurnDoor,
    FixedClock,
    MemoryJournal,
    MemoryTranscripts,
    ScriptedGate,
    decision,
    retry_until,
)
from tests.integration.agents.claude_harness import living
from tests.unit.tools.toolbox_harness import make_harness

ANSWER = {
    "out": [{"text": "Hello."}],
    "id": "talk-7",
    "used": {"in": 120, "out": 8, "usd": 0.25},
}
PATHS = {
    "text": "out.0.text",
    "session": "id",
    "input_tokens": "used.in",
    "output_tokens": "used.out",
    "usd": "used.usd",
}


def an_agent(
    tmp_path: Path,
    *command: str,
    options: Mapping[str, Any] | None = None,
    doors: FakeHookDoors | HookServer | None = None,
    model: str = "",
    transcripts: MemoryTranscripts | None = None,
) -> CommandAgent:
    deps = AgentDeps(
        confinement_provider=FakeConfinementProvider(),
        launcher=ProcessLauncher(resolve_secret={"KEY": "the-key-itself"}.__getitem__),
        doors=doors or FakeHookDoors(),
        transcripts=transcripts or MemoryTranscripts(),
        clock=FixedClock(),
        hook_command=hook_command(),
        homes=tmp_path / "homes",
        user_home=tmp_path / "person",
        environ={},
    )
    given = AgentOptions(
        name="any",
        command=command,
        model=model,
        env={"KEY": "secret://KEY"},
        options=dict(options or {}),
    )
    return CommandAgent(given, deps)


def a_turn(tmp_path: Path, prompt: str = "do it", **changes: Any) -> Turn:
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    given: dict[str, Any] = {
        "run_id": "run_1",
        "step_key": "work#0",
        "role": "developer",
        "prompt": prompt,
        "workspace": str(workspace),
        **changes,
    }
    return Turn(**given)


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-IS", "-c", code)


async def test_the_prompt_comes_on_stdin_and_the_answer_on_stdout(tmp_path: Path) -> None:
    agent = an_agent(tmp_path, "cat")
    reply = await agent.ask(a_turn(tmp_path, "grüße\nan alle\n"))
    assert reply.text == "grüße\nan alle"
    assert (reply.agent, reply.session, reply.payload) == ("any", None, None)
    assert (reply.usage.turns, reply.usage.complete) == (1, False)


async def test_the_prompt_may_come_in_a_private_file_that_is_gone_afterwards(
    tmp_path: Path,
) -> None:
    code = "import os, sys; p = sys.argv[1]; print(p, oct(os.stat(p).st_mode), open(p).read())"
    agent = an_agent(tmp_path, *python(code), "{prompt_file}", options={"prompt": "file"})
    path, mode, output = (await agent.ask(a_turn(tmp_path, "do it"))).text.split(maxsplit=2)
    assert (mode, output) == ("0o100600", "do it")
    assert not Path(path).exists()


async def test_every_place_in_the_command_is_filled_once(tmp_path: Path) -> None:
    agent = an_agent(
        tmp_path, "echo", "{workspace}", "--model={model}", "{unknown}", model="m{workspace}"
    )
    reply = await agent.ask(a_turn(tmp_path))
    assert reply.text == f"{tmp_path}/workspace --model=m{{workspace}} {{unknown}}"


async def test_json_is_read_by_its_paths(tmp_path: Path) -> None:
    agent = an_agent(tmp_path, "echo", json.dumps(ANSWER), options={"output": "json", **PATHS})
    reply = await agent.ask(a_turn(tmp_path))
    assert (reply.text, reply.session) == ("Hello.", "talk-7")
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.usd) == (120, 8, 0.25)
    assert reply.usage.complete


async def test_json_lines_are_read_to_the_last_and_noise_is_passed_over(tmp_path: Path) -> None:
    lines = [
        '{"text": "One."}',
        "some noise",
        "[" * 9_999,
        '{"text": "Two.", "id": "talk-8"}',
        "{}",
    ]
    code = f"print({chr(10).join(lines)!r})"
    agent = an_agent(tmp_path, *python(code), options={"output": "jsonl", "session": "id"})
    reply = await agent.ask(a_turn(tmp_path))
    assert (reply.text, reply.session) == ("Two.", "talk-8")
    joined = {"output": "jsonl", "join_text": True}
    assert (await an_agent(tmp_path, *python(code), options=joined).ask(a_turn(tmp_path))).text == (
        "One.Two."
    )


async def test_tokens_without_a_price_are_priced_by_the_model(tmp_path: Path) -> None:
    priced = {"output": "json", **PATHS, "usd": ""}
    agent = an_agent(
        tmp_path, "echo", json.dumps(ANSWER), options=priced, model="claude-sonnet-4-5"
    )
    reply = await agent.ask(a_turn(tmp_path))
    assert reply.usage.usd > 0
    assert reply.usage.complete


async def test_a_conversation_goes_on_by_the_words_for_it(tmp_path: Path) -> None:
    agent = an_agent(tmp_path, "echo", "go", options={"resume": ["--resume", "{session}"]})
    assert (await agent.ask(a_turn(tmp_path))).text == "go"
    again = await agent.ask(a_turn(tmp_path, session="talk-7"))
    assert (again.text, again.session) == ("go --resume talk-7", "talk-7")


async def test_without_words_for_it_no_conversation_goes_on(tmp_path: Path) -> None:
    with pytest.raises(AgentRejected, match="resume"):
        await an_agent(tmp_path, "cat").ask(a_turn(tmp_path, session="talk-7"))


@pytest.mark.parametrize("name", ["--yolo", "a\nb", "", "x" * 501, 7, None])
async def test_a_conversation_whose_name_could_do_harm_has_none(tmp_path: Path, name: Any) -> None:
    text = json.dumps({"text": "Hello.", "id": name})
    agent = an_agent(tmp_path, "echo", text, options={"output": "json", "session": "id"})
    assert (await agent.ask(a_turn(tmp_path))).session is None


@pytest.mark.parametrize(
    ("code", "output", "words"),
    [
        ("print('All done.'); raise SystemExit(3)", "text", "exit 3"),
        ("pass", "text", "without an answer"),
        ("print('   ')", "text", "without an answer"),
        ("print('not json')", "json", "not JSON"),
        ("print('{}')", "json", "'text'"),
        ("print('[' * 99999)", "json", "not JSON"),
        ("print('not json')", "jsonl", "'text'"),
        ("import os; os.kill(os.getpid(), 9)", "text", "signal 9"),
        ("import sys; print('why not', file=sys.stderr); sys.exit(1)", "text", "why not"),
    ],
)
async def test_neither_a_good_exit_nor_words_alone_count(
    tmp_path: Path, code: str, output: str, words: str
) -> None:
    agent = an_agent(tmp_path, *python(code), options={"output": output})
    with pytest.raises(AgentLost, match=words) as caught:
        await agent.ask(a_turn(tmp_path))
    assert caught.value.usage is not None


async def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    agent = an_agent(tmp_path, "sleep", "986")
    with pytest.raises(TimedOut):
        await agent.ask(a_turn(tmp_path, limits=TurnLimits(seconds=0.3)))
    assert living(str(tmp_path / "workspace")) == []


async def test_cancelling_leaves_no_process_not_even_a_detached_one(tmp_path: Path) -> None:
    agent = an_agent(tmp_path, "sh", "-c", "setsid sleep 985 & sleep 985")
    asking = asyncio.create_task(agent.ask(a_turn(tmp_path)))
    await retry_until(lambda: len(living(str(tmp_path / "workspace"))) >= 3)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert living(str(tmp_path / "workspace")) == []


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match="no-such-program"):
        await an_agent(tmp_path, "no-such-program").ask(a_turn(tmp_path))


@pytest.mark.soak
async def test_a_large_answer_and_a_prompt_nobody_reads_do_no_harm(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.buffer.write(b'\\xff' + b'x' * 50_000_000 + b' end')"
    reply = await an_agent(tmp_path, *python(code)).ask(a_turn(tmp_path, "p" * 5_000_000))
    assert len(reply.text) == 50_000_005
    assert reply.text.startswith("\ufffd")


async def test_a_flood_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The real limits would take a quarter of a gigabyte to reach.
    for name, limit in (("ANSWER", 10_000), ("STREAM", 20_000)):
        module = "podium.agents.headless.command_agent"
        monkeypatch.setattr(f"{module}.MAX_{name}_BYTES", limit)
    for output, limit in (("text", 10_000), ("json", 10_000), ("jsonl", 20_000)):
        agent = an_agent(tmp_path, "yes", options={"output": output})
        with pytest.raises(AgentLost, match=f"{limit} bytes"):
            await agent.ask(a_turn(tmp_path))
    assert living(str(tmp_path / "workspace")) == []


async def test_it_has_a_private_home_with_the_logins_it_was_given(tmp_path: Path) -> None:
    login = tmp_path / "person/.tool/auth"
    login.parent.mkdir(parents=True)
    login.write_text("logged in")
    given = {"logins": [".tool/auth"], "keep": [".tool/talks"]}
    look = "cat ~/.tool/auth; ls ~/.tool ~/.tool/talks; mkdir -p ~/.tool/talks/one ~/other"
    agent = an_agent(tmp_path, "sh", "-c", f"{look}; echo $KEY", options=given)
    first = await agent.ask(a_turn(tmp_path))
    second = await agent.ask(a_turn(tmp_path))
    assert first.text.startswith("logged in")
    assert first.text.endswith("the-key-itself")
    assert "one" in second.text
    assert list((tmp_path / "homes").rglob("auth")) == []


ASKING_FOR = """
import json, os, socket
def ask(op):
    line = socket.socket(socket.AF_UNIX)
    line.connect(os.environ["PODIUM_DOOR"])
    message = {"token": os.environ["PODIUM_DOOR_TOKEN"], "op": op, "tool": "write_file",
               "arguments": {"path": "made.txt", "content": "made"}}
    line.sendall(json.dumps(message).encode() + b"\\n")
    return json.loads(line.makefile().readline())["decision"]
"""


@pytest.mark.parametrize("output", ["text", "json", "jsonl"])
@pytest.mark.parametrize("op", ["request", "perform"])
async def test_a_turn_that_waits_for_a_person_may_end_without_a_word(
    tmp_path: Path, output: str, op: str
) -> None:
    harness = make_harness(tmp_path, gate=ScriptedGate(lambda call, context: decision(Effect.ASK)))
    doors = HookServer(harness.door, harness.toolbox, MemoryJournal(harness.store))
    code = f"{ASKING_FOR}\nassert ask({op!r}) == 'ask'"
    agent = an_agent(tmp_path, *python(code), doors=doors, options={"output": output})
    reply = await agent.ask(a_turn(tmp_path))
    assert reply.text == ""
    assert len(reply.waiting_approvals) == 1
    assert not (tmp_path / "workspace/made.txt").exists()


@pytest.mark.parametrize("output", ["json", "jsonl"])
async def test_silent_turn_still_reports_its_conversation(tmp_path: Path, output: str) -> None:
    doors = FakeHookDoors(waiting_approvals=("appr_1",))
    options = {"output": output, "session": "id"}
    agent = an_agent(tmp_path, "echo", '{"id": "talk-9"}', doors=doors, options=options)
    reply = await agent.ask(a_turn(tmp_path))
    assert (reply.text, reply.session) == ("", "talk-9")


async def test_waiting_for_a_person_excuses_no_bad_end(tmp_path: Path) -> None:
    doors = FakeHookDoors(waiting_approvals=("appr_1",))
    with pytest.raises(AgentLost, match="exit 3"):
        await an_agent(tmp_path, *python("raise SystemExit(3)"), doors=doors).ask(a_turn(tmp_path))
    with pytest.raises(AgentLost, match="not JSON"):
        await an_agent(tmp_path, "echo", "hm", doors=doors, options={"output": "json"}).ask(
            a_turn(tmp_path)
        )


@pytest.mark.parametrize(("how", "place"), [("stdin", ()), ("file", ("{prompt_file}",))])
async def test_a_prompt_that_is_no_text_in_parts_is_asked_all_the_same(
    tmp_path: Path, how: str, place: tuple[str, ...]
) -> None:
    agent = an_agent(tmp_path, "cat", *place, options={"prompt": how})
    assert (await agent.ask(a_turn(tmp_path, "half \ud83d a pair"))).text == "half ? a pair"


async def test_tools_it_lacks_and_limits_it_cannot_keep_are_reported(tmp_path: Path) -> None:
    limits = TurnLimits(tokens=1000, usd=0.5, turns=3)
    agent = an_agent(tmp_path, "echo", "Hello.")
    reply = await agent.ask(a_turn(tmp_path, own_tools=("web_search",), limits=limits))
    assert reply.warnings == (
        "agent 'any' has no tool 'web_search' of its own; it is not available",
        "the turn's limit of 1000 tokens cannot be enforced for agent 'any'",
        "the turn's limit of 0.5 usd cannot be enforced for agent 'any'",
        "the turn's limit of 3 turns cannot be enforced for agent 'any'",
    )
    assert (await agent.ask(a_turn(tmp_path))).warnings == ()


@pytest.mark.parametrize("output", ["text", "jsonl"])
async def test_every_line_of_the_transcript_is_json(tmp_path: Path, output: str) -> None:
    transcripts = MemoryTranscripts()
    text = '{"text": "Hello."}'
    agent = an_agent(
        tmp_path,
        *("printf", f'say "grüße"\\n{text}\\n'),
        options={"output": output},
        transcripts=transcripts,
    )
    await agent.ask(a_turn(tmp_path))
    lines = [json.loads(line) for line in transcripts.transcripts[0].lines]
    last = {"text": "Hello."} if output == "jsonl" else {"printed": text}
    assert lines == [{"printed": 'say "grüße"'}, last]


async def test_usage_is_reported_even_when_the_door_is_left_in_doubt(tmp_path: Path) -> None:
    class DoubtfulDoors(FakeHookDoors):
        @asynccontextmanager
        async def open(
            self, turn: Turn, *, agent: str = "", translate: Translate | None = None
        ) -> AsyncIterator[FakeTurnDoor]:
            yield self.door
            raise CallInDoubt("run_1:work#0:x.0", "run_command")

    agent = an_agent(tmp_path, "echo", "Hello.", doors=DoubtfulDoors())
    with pytest.raises(CallInDoubt) as raised:
        await agent.ask(a_turn(tmp_path))
    assert raised.value.usage is not None
    assert (raised.value.usage.turns, raised.value.usage.complete) == (1, False)


async def test_a_home_that_cannot_be_made_is_an_error_of_the_tree(tmp_path: Path) -> None:
    (tmp_path / "homes").write_text("a file where a folder should be")
    with pytest.raises(PodiumError) as raised:
        await an_agent(tmp_path, "echo", "Hello.").ask(a_turn(tmp_path))
    assert raised.value.usage is not None
    assert raised.value.usage.turns == 0


async def test_it_finds_the_door_of_its_turn(tmp_path: Path) -> None:
    harness = make_harness(tmp_path)
    doors = HookServer(harness.door, harness.toolbox, MemoryJournal(harness.store))
    code = f"{ASKING_FOR}\nprint(ask('perform'))"
    reply = await an_agent(tmp_path, *python(code), doors=doors).ask(a_turn(tmp_path))
    assert reply.text == "allow"
    assert (tmp_path / "workspace/made.txt").read_text() == "made"
    (receipt,) = await harness.receipts()
    assert receipt.tool == "write_file"


@pytest.mark.parametrize(
    ("command", "options", "model", "words"),
    [
        ((), {}, "", "command"),
        (("cat",), {"outptu": "json"}, "", "outptu"),
        (("cat",), {"output": "xml"}, "", "output"),
        (("cat",), {"prompt": "file"}, "", "prompt_file"),
        (("cat", "{prompt_file}"), {}, "", "prompt_file"),
        (("cat", "{session}"), {}, "", "resume"),
        (("cat", "{model}"), {}, "", "model"),
        (("cat",), {"resume": ["--continue"]}, "", "session"),
        (("cat",), {"logins": ["/etc/passwd"]}, "", "logins"),
        (("cat",), {"keep": ["../other"]}, "", "keep"),
    ],
)
def test_options_that_cannot_work_are_refused_before_anything_runs(
    tmp_path: Path, command: tuple[str, ...], options: dict[str, Any], model: str, words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        an_agent(tmp_path, *command, options=options, model=model)
