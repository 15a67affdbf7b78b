"""The real Gemini CLI, asked plainly: words, conversations, figures, prompts."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from podium.agents.deps import AgentOptions
from podium.agents.headless.gemini import GeminiCliAgent
from podium.agents.headless.gemini.tools import MAX_BYTES, prompt_for
from podium.core.errors import AgentNotLoggedIn, AgentRejected, ConfigInvalid, ContextOverflow
from podium.core.events import AgentProgressed
from podium.store import FileTranscripts
from tests.integration.agents import clis
from tests.integration.agents.claude_harness import git
from tests.integration.agents.gemini_harness import KEY, MODEL, Steps, gemini_harness
from tests.soaking import in_soak


async def test_a_plain_question_gets_a_plain_answer(tmp_path: Path) -> None:
    payload = {"text": "Hello \x1b[31mthere\x1b[0m.", "usage": {"input": 1000, "output": 20}}
    async with gemini_harness(tmp_path, {"hello": [payload]}) as harness:
        reply = await harness.ask("hello")
    assert reply.text == payload["text"]
    assert (reply.payload, reply.found) == (None, "none")
    assert (reply.agent, reply.model) == ("gemini", MODEL)
    assert reply.version == clis.versions()["gemini"]
    assert reply.warnings == ()
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (1000, 20)
    assert reply.usage.turns == 1
    assert 0 < reply.usage.usd < 0.01
    assert reply.usage.complete


async def test_answer_is_the_text_after_its_last_tool_and_the_rest_is_progress(
    tmp_path: Path,
) -> None:
    steps = {
        "work": [{"text": "I look.", "run": "ls"}, {"text": "Seen it all.", "chunk_characters": 3}]
    }
    async with gemini_harness(tmp_path, steps) as harness:
        reply = await harness.ask("work")
        messages = [
            event for event in await harness.tools.events() if isinstance(event, AgentProgressed)
        ]
    assert reply.text == "Seen it all."
    assert "I look." in "".join(event.text for event in messages if event.kind == "text")
    assert [event.text for event in messages if event.kind == "tool"] == ["run_shell_command ls"]


async def test_a_conversation_goes_on_where_it_was(tmp_path: Path) -> None:
    usage = {"input": 1000, "output": 20}
    steps = {
        "one": [{"text": "First.", "usage": usage}],
        "two": [{"text": "Second.", "usage": usage}],
    }
    async with gemini_harness(tmp_path, steps) as harness:
        first = await harness.ask("one")
        second = await harness.ask("two", session=first.session)
        fresh = await harness.ask("one")
        _, again, alone = harness.server.requests
    assert (second.text, second.session) == ("Second.", first.session)
    assert "First." in repr(again.body)
    assert second.usage.input_tokens == first.usage.input_tokens == 1000
    assert fresh.session != first.session
    assert "Second." not in repr(alone.body)


@pytest.mark.parametrize("session", ["0b5ba0e2-6d3d-4a6e-8a36-3f0f6d0ad9a1", "latest", "-x"])
async def test_unknown_conversation_is_reported_plainly(tmp_path: Path, session: str) -> None:
    async with gemini_harness(tmp_path, {"hello": ["Hello."]}) as harness:
        with pytest.raises(AgentRejected, match="conversation"):
            await harness.ask("hello", session=session)
        assert harness.server.requests == []


async def test_a_prompt_reaches_the_model_as_it_was_written(tmp_path: Path) -> None:
    prompt = "/plan SCRIPT:hello\n\n  ünï \\n '\"`$(x)` @missing @pytest.fixture a@b.c  !{x} @{y}\n"
    async with gemini_harness(tmp_path, {"hello": ["Hello."]}) as harness:
        reply = await harness.ask("hello", prompt=prompt)
        asked = harness.server.requests[0].body["contents"][-1]["parts"][-1]["text"]
    assert reply.text == "Hello."
    assert asked == f"\n{prompt}"


async def test_a_file_named_in_a_prompt_is_not_read_behind_the_gate(tmp_path: Path) -> None:
    async with gemini_harness(tmp_path, {"hello": ["Hello."]}) as harness:
        (harness.workspace / "notes.txt").write_text("what nobody may read")
        (harness.workspace / "sub").mkdir()
        (harness.workspace / "sub/notes.md").write_text("what nobody may read")
        prompt = "SCRIPT:hello see @notes.txt, @sub/ and @notes and @generalist"
        await harness.ask("hello", prompt=prompt)
        asked = harness.server.requests[0].body["contents"][-1]["parts"]
        assert "nobody may read" not in harness.model_messages()
    assert asked[-1]["text"] == r"SCRIPT:hello see \@notes.txt, \@sub/ and @notes and \@generalist"


def test_a_prompt_longer_than_the_cli_reads_is_not_cut_in_silence(tmp_path: Path) -> None:
    assert len(prompt_for("gemini", "x" * MAX_BYTES, str(tmp_path))) == MAX_BYTES
    with pytest.raises(ContextOverflow, match="shorten it"):
        prompt_for("gemini", "x" * (MAX_BYTES + 1), str(tmp_path))


@pytest.mark.soak  # test_identity.py holds where the name comes from
async def test_it_commits_in_the_name_of_the_person(tmp_path: Path) -> None:
    steps = {"commit": [{"run": "git commit --allow-empty -qm second"}, "Done."]}
    person = tmp_path / "person"
    person.mkdir()
    (person / ".gitconfig").write_text("[user]\n\tname = Ann Other\n\temail = ann@example.org\n")
    async with gemini_harness(tmp_path, steps) as harness:
        await harness.ask("commit")
        log = git(harness.workspace, "log", "-1", "--format=%an <%ae> %cn %s")
    assert log == "Ann Other <ann@example.org> Ann Other second"


async def test_it_commits_in_the_name_that_its_settings_give(tmp_path: Path) -> None:
    steps = {"commit": [{"run": "git commit --allow-empty -qm second"}, "Done."]}
    env = {
        "GEMINI_API_KEY": "secret://GEMINI_KEY",
        "GIT_AUTHOR_NAME": "Robin",
        "GIT_AUTHOR_EMAIL": "robin@example.org",
    }
    async with gemini_harness(tmp_path, steps, options={"env": env}) as harness:
        await harness.ask("commit")
        log = git(harness.workspace, "log", "-1", "--format=%an <%ae> %cn")
    assert log == "Robin <robin@example.org> Robin"


async def test_its_commands_see_neither_the_key_nor_the_door(tmp_path: Path) -> None:
    steps = {"dump": [{"run": "env"}, "Dumped."]}
    async with gemini_harness(tmp_path, steps) as harness:
        await harness.ask("dump")
        output = harness.model_messages()
        homes = [path for path in (tmp_path / "homes").rglob("*") if path.is_file()]
        assert not any(KEY.encode() in path.read_bytes() for path in homes)
    assert "GEMINI_CLI=1" in output
    assert KEY not in output
    assert "PODIUM_DOOR" not in output


@pytest.mark.soak  # the contract of all media holds it for every file
async def test_a_key_that_is_printed_does_not_get_into_the_transcript(tmp_path: Path) -> None:
    def redact(text: str) -> str:
        return text.replace(KEY, "[removed]")

    transcripts = FileTranscripts(tmp_path / "state", redact)
    async with gemini_harness(
        tmp_path, {"tell": [f"The key is {KEY}."]}, transcripts=transcripts
    ) as harness:
        reply = await harness.ask("tell")
    assert reply.transcript is not None
    kept = Path(reply.transcript)
    assert "The key is [removed]." in kept.read_text()
    assert all(KEY not in file.read_text() for file in kept.parent.rglob("*") if file.is_file())


@pytest.mark.parametrize("size", [2_000_000, in_soak(50_000_000)])
async def test_a_huge_answer_comes_whole(tmp_path: Path, size: int) -> None:
    flood = {"flood_bytes": size, "then": "THE END"}
    calm = {"options": {"stop_loops": False}}
    async with gemini_harness(tmp_path, {"much": [flood]}, options=calm) as harness:
        reply = await harness.ask("much")
    assert len(reply.text) >= size
    assert reply.text.endswith("THE END")


async def test_a_later_version_is_warned_of_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium.agents.headless.gemini.agent.TRIED_VERSION", "0.60.9")
    async with gemini_harness(tmp_path, {"hello": ["Hello."]}) as harness:
        reply = await harness.ask("hello")
    assert reply.text == "Hello."
    assert "0.60.9" in reply.warnings[0]


LOGGED_IN = """
import json, os, pathlib, sys
sys.stdin.read()
home = pathlib.Path(os.environ["HOME"]) / ".gemini"
login = json.loads((home / "oauth_creds.json").read_text())
(home / "oauth_creds.json").write_text(json.dumps({**login, "access_token": "new", "expiry_date": 4000000000000}))
chosen = json.loads((home / "settings.json").read_text())["security"]["auth"]["selectedType"]
print(json.dumps({"type": "message", "role": "assistant", "content": chosen}))
print(json.dumps({"type": "result", "status": "success"}))
"""


async def test_it_is_logged_in_with_a_copy_and_only_fresh_tokens_come_back(tmp_path: Path) -> None:
    login = tmp_path / "person/.gemini/oauth_creds.json"
    login.parent.mkdir(parents=True)
    login.write_text(json.dumps({"access_token": "old", "refresh_token": "r", "expiry_date": 1}))
    program = tmp_path / "logged_in.py"
    program.write_text(LOGGED_IN)
    given = {"env": {}, "command": (sys.executable, str(program))}
    async with gemini_harness(tmp_path, {}, options=given) as harness:
        reply = await harness.ask("hello")
    assert reply.text == "oauth-personal"
    assert not reply.usage.complete
    after = json.loads(login.read_text())
    assert after == {"access_token": "new", "refresh_token": "r", "expiry_date": 4000000000000}
    assert not list((tmp_path / "homes").rglob("oauth_creds.json"))


@pytest.mark.soak  # test_loopback_only.py sees it too
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
async def test_it_connects_to_its_model_alone(tmp_path: Path) -> None:
    seen = tmp_path / "connects.txt"
    tracing = ("strace", "-f", "-qq", "-e", "trace=connect", "-o", str(seen))
    steps: Steps = {"work": [{"run": "true"}, "Done."]}
    async with gemini_harness(
        tmp_path, steps, options={"command": (*tracing, *clis.gemini())}
    ) as harness:
        reply = await harness.ask("work")
        port = harness.server.port
    assert reply.text == "Done."
    places = set(re.findall(r"sin6?_port=htons\((\d+)\).*?\"([0-9a-f.:]+)\"", seen.read_text()))
    assert places == {(str(port), "127.0.0.1")}


async def test_without_key_and_login_it_is_not_even_started(tmp_path: Path) -> None:
    async with gemini_harness(tmp_path, {"hello": ["Hello."]}, options={"env": {}}) as harness:
        with pytest.raises(AgentNotLoggedIn, match="GEMINI_API_KEY"):
            await harness.ask("hello")
        assert not list((tmp_path / "homes").rglob("settings.json"))


async def test_settings_that_are_no_settings_are_named(tmp_path: Path) -> None:
    async with gemini_harness(tmp_path, {}) as harness:
        wrong = AgentOptions(name="gemini", options={"attempts": 0, "fast": True})
        with pytest.raises(ConfigInvalid, match=r"attempts.*\n.*fast"):
            GeminiCliAgent(wrong, harness.deps)
