"""The real codex on a real terminal, with a loopback model to talk to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podium.agents.deps import AgentOptions
from podium.agents.tui.adapter import TranscriptEntry
from podium.agents.tui.codex import CodexTui
from podium.testing import retry_until
from tests.integration.agents import clis
from tests.integration.agents.tui.live import (
    Live,
    alive,
    files_with_the_key,
    hooked,
    recording_hook,
    words_of,
)

CODEX = CodexTui()

MARKDOWN = (
    """# Plan ✅ für 東京

```python
def f(x):
    return x * "*_`~"	# tab
```
| a | b |
|---|---|
- [ ] *star* _under_ <b>tag</b> &lt; \\n
[[POLI:MSG {"to":"EXECUTER","type":"plan","id":"T-1"}]]
<PLAN>
    indented
</PLAN>
[[/POLI:MSG]]
"""
    + "long " * 100
)


def options(url: str, **changes: object) -> AgentOptions:
    given = {
        "name": "codex",
        "model": "gpt-5.5",
        "base_url": url,
        "command": (clis.codex(),),
        "env": {"OPENAI_API_KEY": "secret://KEY"},
        **changes,
    }
    return AgentOptions.model_validate(given)


async def entries_after(live: Live, words: str) -> list[TranscriptEntry]:
    return await live.ask(CODEX.fitted(words, live.place))


def model_received(live: Live) -> list[str]:
    """The user's messages of the last request of the conversation, not of the one for its title."""
    asked = [seen.body for seen in live.server.requests]
    talks = [body for body in asked if "Generate a concise" not in json.dumps(body)]
    return [
        part["text"]
        for item in talks[-1]["input"]
        if item.get("type") == "message" and item.get("role") == "user"
        for part in item["content"]
        if not part["text"].startswith("<")
    ]


@pytest.mark.smoke
async def test_words_are_exact_both_ways_and_what_the_hook_denies_does_not_happen(
    root: Path,
) -> None:
    prompt = f"SCRIPT:md {MARKDOWN.rstrip()}"
    steps = {
        "md": [MARKDOWN],
        "no": [{"run": "touch forbidden.txt"}, "I may not"],
        "yes": [{"run": "echo yes > allowed.txt"}, "done"],
    }
    hook = recording_hook(root, "forbidden")
    async with alive(root, CODEX, options, steps, hook=hook, confined=True) as live:
        await live.becomes("ready")
        response = await entries_after(live, prompt)

        assert [item.kind for item in response] == ["prompt", "words", "end"]
        assert response[0].text == prompt
        assert words_of(response) == [MARKDOWN]
        assert response[-1].ok
        assert model_received(live) == [prompt]
        assert live.written.session
        assert files_with_the_key(root) == []
        await live.becomes("ready")
        denied = await entries_after(live, "SCRIPT:no touch it")
        await live.becomes("ready")
        allowed = await entries_after(live, "SCRIPT:yes write it")

        assert words_of(denied) == ["I may not"]
        assert not any(item.kind == "used" and item.ok for item in denied)
        assert not (live.place.cwd / "forbidden.txt").exists()
        assert "the rules of the house" in json.dumps([s.body for s in live.server.requests])
        assert (live.place.cwd / "allowed.txt").read_text() == "yes\n"
        asked = [(event["tool_name"], event["tool_input"]["command"]) for event in hooked(root)]
        assert asked == [("Bash", "touch forbidden.txt"), ("Bash", "echo yes > allowed.txt")]
        uses = [item.use for item in allowed if item.kind == "used" and item.ok]
        assert uses == [hooked(root)[1]["tool_use_id"]]


async def test_while_it_works_its_input_is_not_to_be_seen_and_escape_ends_it(root: Path) -> None:
    steps = {"slow": [{"text": "too late", "delay_seconds": 60}], "hi": ["hello"]}
    async with alive(root, CODEX, options, steps) as live:
        ready = await live.becomes("ready")
        assert CODEX.composer(ready, "x") == "empty"
        mark = live.written.end_position()
        await live.deliver("SCRIPT:slow think long")
        busy = await live.becomes("busy")

        assert CODEX.composer(busy, "x") == "unseen"
        await live.press(*CODEX.interrupt_keys)
        response = await live.hears(mark)
        assert (response[-1].ok, response[-1].text) == (False, "it was interrupted")
        assert CODEX.composer(await live.becomes("ready"), "x") == "empty"
        assert words_of(await entries_after(live, "SCRIPT:hi again")) == ["hello"]


@pytest.mark.soak
@pytest.mark.parametrize("size", [65_000, 300_000])
async def test_long_words_are_exact_both_ways(root: Path, size: int) -> None:
    line = "zwölf Boxkämpfer 東京 `*_` | x\\\n"
    answer = (line * (size // len(line.encode())))[:-1]
    prompt = f"SCRIPT:long {answer}"
    async with alive(root, CODEX, options, {"long": [answer]}) as live:
        await live.becomes("ready")
        response = await entries_after(live, prompt)

        assert words_of(response) == [answer]
        assert response[0].text == prompt
        assert model_received(live) == [prompt]


@pytest.mark.soak
async def test_words_that_look_like_commands_arrive_as_words(root: Path) -> None:
    words = [
        "/quit SCRIPT:hi",
        "!touch shell.txt SCRIPT:hi",
        "SCRIPT:hi see @READ",
        "SCRIPT:hi see $HOME",
        "#SCRIPT:hi",
        "? SCRIPT:hi",
        "SCRIPT:hi trailing \\",
        "1. SCRIPT:hi",
        "Ask Codex to do anything SCRIPT:hi",
        "SCRIPT:hi " + "\n".join(map(str, range(200))),
        "- SCRIPT:hi\n\n\n\ttabbed; 👩‍👩‍👧 e\u0301 \u202eleft",
    ]
    async with alive(root, CODEX, options, {"hi": ["hello"]}) as live:
        (live.place.cwd / "README").write_text("x")
        for word in words:
            await live.becomes("ready")
            response = await entries_after(live, word)
            assert words_of(response) == ["hello"]
            assert response[0].text.rstrip() == word
            assert model_received(live)[-1].rstrip() == word
        assert not (live.place.cwd / "shell.txt").exists()


@pytest.mark.soak
async def test_a_killed_program_goes_on_in_its_conversation(root: Path) -> None:
    async with alive(root, CODEX, options, {"one": ["first"], "two": ["second"]}) as live:
        await live.becomes("ready")
        await entries_after(live, "SCRIPT:one remember")
        session = live.written.session
        await live.start_again()
        await live.becomes("ready")
        response = await entries_after(live, "SCRIPT:two what was it")

        assert live.launched.session == session == live.written.session
        assert words_of(response) == ["second"]
        assert model_received(live) == ["SCRIPT:one remember", "SCRIPT:two what was it"]


@pytest.mark.soak
async def test_summary_written_when_shortening_its_memory_is_no_answer(root: Path) -> None:
    async with alive(root, CODEX, options, {"hi": ["hello"]}) as live:
        await live.becomes("ready")
        await entries_after(live, "SCRIPT:hi there")
        await live.becomes("ready")
        mark = live.written.end_position()
        await live.press(*"/compact")
        await live.shows("summarize conversation")
        await live.press("Enter")

        assert words_of(await live.hears(mark)) == []
        await live.becomes("ready")
        assert words_of(await entries_after(live, "SCRIPT:hi again")) == ["hello"]


@pytest.mark.soak
async def test_an_agent_inside_the_agent_is_not_taken_for_it(root: Path) -> None:
    spawn = {"name": "spawn_agent", "arguments": {"message": "SCRIPT:in", "task_name": "inner"}}
    steps = {"hi": ["hello"], "out": [{"tools": [spawn]}, "spawned"], "in": ["from inside"]}
    hook = recording_hook(root)

    def newer(url: str) -> AgentOptions:
        return options(url, model="gpt-6-sol")

    async with alive(root, CODEX, newer, steps, hook=hook, confined=True) as live:
        await live.becomes("ready")
        await entries_after(live, "SCRIPT:hi there")
        session = live.written.session
        await live.becomes("ready")

        assert words_of(await entries_after(live, "SCRIPT:out spawn it")) == ["spawned"]
        # Its own name for it: the `inner` of the first agent, which it calls the root.
        await live.shows("Completed `/root/inner`")
        assert live.written.session == session
        assert [event["tool_name"] for event in hooked(root)] == ["collaborationspawn_agent"]


@pytest.mark.soak
async def test_a_turn_that_fails_says_why_and_leaves_it_ready(root: Path) -> None:
    steps = {"bad": [{"status": 500}], "key": [{"status": 401}], "hi": ["hello"]}
    async with alive(root, CODEX, options, steps) as live:
        await live.becomes("ready")
        for marker in ("bad", "key"):
            response = await entries_after(live, f"SCRIPT:{marker} try")
            assert not response[-1].ok
            assert response[-1].text
            await live.becomes("ready")
        assert words_of(await entries_after(live, "SCRIPT:hi again")) == ["hello"]


@pytest.mark.soak
async def test_files_that_a_patch_changes_are_reported_one_by_one(root: Path) -> None:
    patch = (
        "*** Begin Patch\n*** Add File: new.txt\n+x\n*** Update File: old.txt\n*** Move to: moved.txt\n"
        "@@\n-old\n+new\n*** End Patch\n"
    )
    steps = {"patch": [{"custom_tool": {"name": "apply_patch", "input": patch}}, "done"]}
    hook = recording_hook(root)
    async with alive(root, CODEX, options, steps, hook=hook, confined=True) as live:
        (live.place.cwd / "old.txt").write_text("old\n")
        await live.becomes("ready")
        response = await entries_after(live, "SCRIPT:patch it")

        assert (live.place.cwd / "moved.txt").read_text() == "new\n"
        messages = {item.use for item in response if item.kind == "used" and item.ok}
        assert {event["tool_use_id"] for event in hooked(root)} <= messages


@pytest.mark.soak
async def test_a_hook_that_codex_does_not_know_is_asked_about_and_not_skipped(root: Path) -> None:
    async with alive(root, CODEX, options, {"hi": ["hello"]}, started=False) as live:
        hooks = live.place.home / ".codex/hooks.json"
        hooks.write_text(hooks.read_text().replace('"timeout": 60', '"timeout": 61'))
        await live.start()
        asking = await live.becomes("asking")

        assert CODEX.composer(asking, "x") == "unseen"
        assert "Hooks need review" in CODEX.question(asking)


@pytest.mark.soak
async def test_a_hook_that_is_taken_away_while_it_runs_still_holds(root: Path) -> None:
    """Its commands can write to its home: the boundary around both is the sandbox."""
    steps = {"no": [{"run": "touch forbidden.txt"}, "I may not"]}
    hook = recording_hook(root, "forbidden")
    async with alive(root, CODEX, options, steps, hook=hook, confined=True) as live:
        await live.becomes("ready")
        home = live.place.home / ".codex"
        (home / "hooks.json").write_text('{"hooks": {}}')
        settings = (home / "config.toml").read_text()
        (home / "config.toml").write_text(settings.replace("hooks", "without"))

        assert words_of(await entries_after(live, "SCRIPT:no touch it")) == ["I may not"]
        assert not (live.place.cwd / "forbidden.txt").exists()


@pytest.mark.soak
async def test_settings_of_the_project_do_not_count_before_a_person_has_looked(root: Path) -> None:
    async with alive(root, CODEX, options, {"hi": ["hello"]}, started=False) as live:
        planted = live.place.cwd / ".codex"
        planted.mkdir()
        server = {"command": "touch", "args": [str(root / "planted")]}
        (planted / "config.toml").write_text(
            f"[mcp_servers.evil]\ncommand = '{server['command']}'\nargs = {server['args']!r}\n"
        )
        live.launched = CODEX.launch(live.place, None)
        await live.start()
        asking = await live.becomes("asking")
        assert "Folder access" in CODEX.question(asking)
        await retry_until(lambda: opened_restricted(live))

        assert words_of(await entries_after(live, "SCRIPT:hi there")) == ["hello"]
        assert not (root / "planted").exists()


@pytest.mark.soak
async def test_its_own_sandbox_holds_where_nothing_else_does(root: Path) -> None:
    """And lets it commit."""
    outside = root / "outside.txt"
    steps = {"out": [{"run": f"echo x > {outside}"}, {"run": "echo x > in.txt"}, "done"]}
    hook = recording_hook(root)
    async with alive(root, CODEX, options, steps, hook=hook) as live:
        await live.becomes("ready")
        response = await entries_after(live, "SCRIPT:out write")
        if not any(item.kind == "used" and item.ok for item in response):
            pytest.skip("codex's own sandbox does not work on this machine")

        assert (live.place.cwd / "in.txt").exists()
        assert not outside.exists()


async def opened_restricted(live: Live) -> bool:
    """A key that comes right after the dialog is not taken."""
    status = CODEX.status(await live.screen())
    if status == "asking":
        await live.press("Enter")
    return status == "ready"
