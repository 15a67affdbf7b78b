"""Any program as an agent: what it is given, how its answer is read, what does not count."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from podium.agents.headless.command import CommandAgent
from podium.agents.kit import AgentKit, AgentOptions
from podium.domain.asking import Turn, TurnLimits
from podium.domain.errors import AgentLost, AgentRejected, BadInput, TimedOut, ToolMissing
from podium.sandbox import HookDoor, ProcessLauncher, hook_command
from podium.testing import FakeHookDoors, FixedClock, MemoryJournal, MemoryTranscripts, retry_until
from tests.agents.claude_rig import living
from tests.tools.rig import make_rig

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
    doors: FakeHookDoors | HookDoor | None = None,
    model: str = "",
) -> CommandAgent:
    kit = AgentKit(
        launcher=ProcessLauncher(resolve_secret={"KEY": "the-key-itself"}.__getitem__),
        doors=doors or FakeHookDoors(),
        transcripts=MemoryTranscripts(),
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
    return CommandAgent(given, kit)


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
    path, mode, said = (await agent.ask(a_turn(tmp_path, "do it"))).text.split(maxsplit=2)
    assert (mode, said) == ("0o100600", "do it")
    assert not Path(path).exists()


async def test_places_in_the_command_are_filled_each_once(tmp_path: Path) -> None:
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
    said = json.dumps({"text": "Hello.", "id": name})
    agent = an_agent(tmp_path, "echo", said, options={"output": "json", "session": "id"})
    assert (await agent.ask(a_turn(tmp_path))).session is None


@pytest.mark.parametrize(
    ("code", "output", "words"),
    [
        ("print('All done.'); raise SystemExit(3)", "text", "exit 3"),
        ("pass", "text", "said nothing"),
        ("print('   ')", "text", "said nothing"),
        ("print('not json')", "json", "no JSON"),
        ("print('{}')", "json", "'text'"),
        ("print('[' * 99999)", "json", "no JSON"),
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


async def test_a_large_answer_and_a_prompt_nobody_reads_do_no_harm(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.buffer.write(b'\\xff' + b'x' * 50_000_000 + b' end')"
    reply = await an_agent(tmp_path, *python(code)).ask(a_turn(tmp_path, "p" * 5_000_000))
    assert len(reply.text) == 50_000_005
    assert reply.text.startswith("\ufffd")


async def test_a_flood_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The real limit would take a quarter of a gigabyte to reach.
    monkeypatch.setattr("podium.agents.headless.command.agent.LARGEST_OUTPUT_BYTES", 10_000)
    with pytest.raises(AgentLost, match="10000 bytes"):
        await an_agent(tmp_path, "yes").ask(a_turn(tmp_path))
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


async def test_it_finds_the_door_of_its_turn(tmp_path: Path) -> None:
    rig = make_rig(tmp_path)
    doors = HookDoor(rig.door, rig.toolbox, MemoryJournal(rig.store))
    code = """
import json, os, socket
line = socket.socket(socket.AF_UNIX)
line.connect(os.environ["PODIUM_DOOR"])
ask = {"token": os.environ["PODIUM_DOOR_TOKEN"], "op": "perform", "tool": "write_file",
       "arguments": {"path": "made.txt", "content": "made"}}
line.sendall(json.dumps(ask).encode() + b"\\n")
print(json.loads(line.makefile().readline())["decision"])
"""
    reply = await an_agent(tmp_path, *python(code), doors=doors).ask(a_turn(tmp_path))
    assert reply.text == "allow"
    assert (tmp_path / "workspace/made.txt").read_text() == "made"
    (receipt,) = await rig.receipts()
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
