"""The real Claude Code, asked plainly: words, payloads, conversations, figures."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from pydantic import BaseModel

from podium.agents.deps import AgentOptions
from podium.agents.headless.claude import ClaudeCliAgent
from podium.core.errors import BadInput
from podium.core.events import AgentProgressed
from podium.store import FileTranscripts
from tests.integration.agents import clis
from tests.integration.agents.claude_harness import KEY, MODEL, claude_harness
from tests.soaking import in_soak


class Verdict(BaseModel):
    name: str
    good: bool


async def test_a_plain_question_gets_a_plain_answer(tmp_path: Path) -> None:
    payload = {"text": "Hello there.", "usage": {"input": 1000, "output": 20, "cached": 400}}
    async with claude_harness(tmp_path, {"hello": [payload]}) as harness:
        reply = await harness.ask("hello")
    assert reply.text == "Hello there."
    assert (reply.payload, reply.found) == (None, "none")
    assert (reply.agent, reply.model) == ("claude", MODEL)
    assert reply.version == clis.versions()["claude"]
    assert reply.warnings == ()
    assert reply.session
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (1000, 20)
    assert reply.usage.turns == 1
    assert 0 < reply.usage.usd < 0.01
    assert reply.usage.complete


async def test_a_contract_is_met_by_the_schema_of_the_cli_itself(tmp_path: Path) -> None:
    answer = {"name": "StructuredOutput", "arguments": {"name": "Ada", "good": True}}
    async with claude_harness(tmp_path, {"judge": [{"tools": [answer]}, "Done."]}) as harness:
        reply = await harness.ask("judge", contract=Verdict)
        assert harness.gate.judged == []
    assert reply.payload == {"name": "Ada", "good": True}
    assert reply.found == "native"


async def test_an_answer_that_ignores_the_schema_comes_as_words(tmp_path: Path) -> None:
    async with claude_harness(tmp_path, {"judge": ["Ada is good."]}) as harness:
        reply = await harness.ask("judge", contract=Verdict)
    assert (reply.text, reply.payload, reply.found) == ("Ada is good.", None, "none")


async def test_the_answering_tool_is_an_ordinary_one_without_a_contract(tmp_path: Path) -> None:
    answer = {"name": "StructuredOutput", "arguments": {"name": "Ada"}}
    async with claude_harness(tmp_path, {"judge": [{"tools": [answer]}, "Done."]}) as harness:
        reply = await harness.ask("judge")
    assert (reply.text, reply.payload) == ("Done.", None)


async def test_a_conversation_goes_on_where_it_was(tmp_path: Path) -> None:
    usage = {"input": 1000, "output": 20}
    steps = {
        "one": [{"text": "First.", "usage": usage}],
        "two": [{"text": "Second.", "usage": usage}],
    }
    async with claude_harness(tmp_path, steps) as harness:
        first = await harness.ask("one")
        second = await harness.ask("two", session=first.session)
        asked = harness.server.requests[-1].body
    assert second.text == "Second."
    assert second.session == first.session
    assert "First." in repr(asked["messages"])
    # The CLI's own total goes on counting over the conversation; a turn's usage must not.
    assert second.usage.input_tokens == first.usage.input_tokens == 1000
    assert second.usage.usd == first.usage.usd


async def test_a_fresh_turn_knows_nothing_of_the_one_before(tmp_path: Path) -> None:
    async with claude_harness(tmp_path, {"one": ["First."], "two": ["Second."]}) as harness:
        first = await harness.ask("one")
        second = await harness.ask("two")
        assert "First." not in repr(harness.server.requests[-1].body)
    assert second.session != first.session


async def test_progress_is_reported_while_it_works(tmp_path: Path) -> None:
    steps = {"work": [{"text": "I look.", "run": "ls"}, "That was all."]}
    async with claude_harness(tmp_path, steps) as harness:
        await harness.ask("work")
        messages = [event for event in await harness.events() if isinstance(event, AgentProgressed)]
    assert "I look." in "".join(event.text for event in messages if event.kind == "text")
    assert [event.text for event in messages if event.kind == "tool"] == ["Bash ls"]


async def test_transcript_keeps_the_conversation(tmp_path: Path) -> None:
    async with claude_harness(tmp_path, {"hello": ["Hello there."]}) as harness:
        reply = await harness.ask("hello")
        (kept,) = harness.transcripts.transcripts
    assert reply.transcript == kept.path
    assert any('"type":"result"' in line.replace(" ", "") for line in kept.lines)
    assert KEY not in harness.transcripts.text


async def test_a_version_nobody_has_tried_is_named_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Newer programs do not exist yet; an older known version is the same to the code.
    monkeypatch.setattr("podium.agents.headless.claude.agent.TRIED_VERSION", "2.1.1")
    async with claude_harness(tmp_path, {"hello": ["Hello."]}) as harness:
        reply = await harness.ask("hello")
    assert reply.text == "Hello."
    assert len(reply.warnings) == 1
    assert clis.versions()["claude"] in reply.warnings[0]


@pytest.mark.parametrize("size", [2_000_000, in_soak(50_000_000)])
async def test_megabytes_of_answer_arrive_whole(tmp_path: Path, size: int) -> None:
    flood = {"flood_bytes": size, "then": "the end", "chunk_characters": 100_000}
    async with claude_harness(tmp_path, {"flood": [flood]}) as harness:
        reply = await harness.ask("flood")
    assert len(reply.text) >= size
    assert reply.text.endswith("the end")


async def test_a_long_prompt_arrives_whole(tmp_path: Path) -> None:
    async with claude_harness(tmp_path, {"long": ["Read."]}) as harness:
        prompt = "SCRIPT:long " + "word " * 1_000_000 + "last-word"
        reply = await harness.ask("long", prompt=prompt)
        assert "last-word" in harness.server.requests[-1].prompt
    assert reply.text == "Read."


@pytest.mark.parametrize(
    "prompt", ["/cost SCRIPT:hello", in_soak("/compact SCRIPT:hello"), in_soak("! ls SCRIPT:hello")]
)
async def test_a_prompt_is_never_taken_for_a_command(tmp_path: Path, prompt: str) -> None:
    async with claude_harness(tmp_path, {"hello": ["Hello."]}) as harness:
        reply = await harness.ask("hello", prompt=prompt)
        assert prompt in harness.model_messages()
    assert reply.text == "Hello."


async def test_a_path_in_the_prompt_does_not_open_the_file(tmp_path: Path) -> None:
    private = tmp_path / "private.txt"
    private.write_text("what nobody may read")
    async with claude_harness(tmp_path, {"hello": ["Hello."]}) as harness:
        await harness.ask("hello", prompt=f"SCRIPT:hello look at @{private} and @README")
        assert str(private) in harness.model_messages()
        assert "what nobody may read" not in harness.model_messages()


async def test_tools_of_its_own_are_there_only_where_the_role_names_them(tmp_path: Path) -> None:
    async with claude_harness(tmp_path, {"hello": ["Hello."]}) as harness:
        await harness.ask("hello")
        await harness.ask("hello", own_tools=("web_search", "web_fetch", "subagents", "telepathy"))
        reply = await harness.ask("hello", allowed_tools=("read_file",), own_tools=("telepathy",))
        plain, more, less = (seen.tools for seen in harness.server.requests)
    assert plain == ("Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Write")
    assert set(more) - set(plain) == {"WebSearch", "WebFetch", "Agent"}
    assert less == ("Read",)
    assert "telepathy" in reply.warnings[0]


async def test_the_login_of_the_person_is_copied_and_taken_away_again(tmp_path: Path) -> None:
    tokens = {
        "accessToken": KEY,
        "refreshToken": "refresh",
        "expiresAt": 4_000_000_000_000,
        "scopes": ["user:inference"],
        "subscriptionType": "max",
    }
    login = tmp_path / "person/.claude/.credentials.json"
    login.parent.mkdir(parents=True)
    login.write_text(json.dumps({"claudeAiOauth": tokens}))
    async with claude_harness(tmp_path, {"hello": ["Hello."]}, options={"env": {}}) as harness:
        reply = await harness.ask("hello")
    assert reply.text == "Hello."
    assert json.loads(login.read_text()) == {"claudeAiOauth": tokens}
    assert list((tmp_path / "homes").rglob(".credentials.json")) == []


async def test_key_it_prints_appears_in_no_record(tmp_path: Path) -> None:
    transcripts = FileTranscripts(tmp_path / "runs", lambda text: text.replace(KEY, "[redacted]"))
    async with claude_harness(
        tmp_path, {"dump": [{"run": "env"}, "Dumped."]}, transcripts=transcripts
    ) as harness:
        reply = await harness.ask("dump")
        events = repr(await harness.events())
    assert "ANTHROPIC_API_KEY" in events
    assert KEY not in events
    kept = [path.read_text() for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert any("[redacted]" in text for text in kept)
    assert not any(KEY in text for text in kept)
    assert KEY not in repr(reply)


async def test_its_own_options_reach_it_and_others_are_refused(tmp_path: Path) -> None:
    own = {"options": {"effort": "high", "append_system_prompt": "Speak like a sailor."}}
    async with claude_harness(tmp_path, {"hello": ["Ahoy."]}, options=own) as harness:
        await harness.ask("hello")
        assert "Speak like a sailor." in harness.model_messages()
        with pytest.raises(BadInput, match="efort"):
            ClaudeCliAgent(AgentOptions(name="claude", options={"efort": "high"}), harness.deps)


@pytest.mark.soak  # test_loopback_only.py sees it too
async def test_it_connects_to_nothing_but_its_model(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed; it sees where a program connects to")
    trace = tmp_path / "connections"
    command = (strace, "-f", "-qq", "-e", "trace=connect", "-o", str(trace), clis.claude())
    steps = {"work": [{"run": "ls"}, "Done."]}
    async with claude_harness(tmp_path, steps, options={"command": command}) as harness:
        await harness.ask("work", own_tools=("web_search", "web_fetch", "subagents"))
        port = harness.server.port
    places = set(re.findall(r"connect\(\d+, \{(sa_family=AF_INET6?,.*?)\}", trace.read_text()))
    assert places == {f'sa_family=AF_INET, sin_port=htons({port}), sin_addr=inet_addr("127.0.0.1")'}


async def test_a_reply_is_by_the_model_of_the_agent_not_of_its_subagent(tmp_path: Path) -> None:
    hand_on = {
        "description": "d",
        "prompt": "SCRIPT:sub go",
        "subagent_type": "general-purpose",
        "model": "haiku",
    }
    steps = {
        "main": [{"tools": [{"name": "Agent", "arguments": hand_on}]}, "Handed on."],
        "sub": [{"text": "Found.", "usage": {"input": 500, "output": 5}}],
    }
    async with claude_harness(tmp_path, steps) as harness:
        reply = await harness.ask("main", own_tools=("subagents",))
        used = {seen.model for seen in harness.server.requests}
    assert len(used) == 2
    assert reply.model == MODEL
    assert reply.usage.input_tokens > 500
