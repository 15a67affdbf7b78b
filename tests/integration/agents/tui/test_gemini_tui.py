"""The real Gemini CLI on a terminal: it starts without a question, and words go both ways to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.agents.deps import AgentOptions
from podium.agents.tui.adapter import TranscriptEntry
from podium.agents.tui.gemini import GeminiTui
from podium.ports import nameless_use
from podium.testing import retry_until
from tests.integration.agents import clis
from tests.integration.agents.tui.live import (
    Live,
    alive,
    files_with_the_key,
    hooked,
    kinds_of,
    recording_hook,
    words_of,
)

MODEL = "gemini-2.5-flash"
FOUND = "@README"


def options(url: str) -> AgentOptions:
    return AgentOptions(
        name="planner",
        model=MODEL,
        base_url=url,
        command=clis.gemini(),
        env={"GEMINI_API_KEY": "secret://KEY"},
        options={"attempts": 1},
    )


async def entries_after(live: Live, text: str) -> list[TranscriptEntry]:
    """A whole turn, with the words made fit as whoever sends them does."""
    return await live.ask(GeminiTui().fitted(text, live.place))


BLOCK = (
    '[[POLI:MSG {"to":"EXECUTER","type":"plan","id":"T1-abcd"}]]\n<PLAN>\n'
    "# Title *star* _under_ `tick`\n\n\tdef f():\n\t\treturn 'ünïcödé 漢字 🎭 \\ &lt;'\n"
    f"| a | b |\n|---|---|\n{'long ' * 500}\n</PLAN>\n[[/POLI:MSG]]"
)


@pytest.mark.smoke
async def test_it_starts_without_a_question_words_go_both_ways_and_what_is_denied_does_not_run(
    root: Path,
) -> None:
    asked = "SCRIPT:plan `$(id)` ünïcödé 漢字 🎭\n\n  second;\n-x #{pid} [x] *y*\nfourth\\ !"
    steps = {
        "plan": [BLOCK],
        "work": [
            {"text": "One.", "run": "echo one > one; exit 3"},
            {"text": "Two.", "run": "touch forbidden"},
            "Done.",
        ],
    }
    hook = recording_hook(root, "forbidden")
    async with alive(root, GeminiTui(), options, steps, hook=hook) as live:
        await live.becomes("ready")
        response = await entries_after(live, asked)
        assert live.server.prompts() == [asked]
        assert response == [
            TranscriptEntry("prompt", asked),
            TranscriptEntry("words", BLOCK),
            TranscriptEntry("end"),
        ]
        assert live.written.session == live.launched.session
        assert files_with_the_key(root) == []
        await live.becomes("ready")
        response = await entries_after(live, "SCRIPT:work")
        made = {path.name for path in live.place.cwd.iterdir()}
    assert made == {"one"}
    assert words_of(response) == ["One.", "Two.", "Done."]
    assert kinds_of(response) == ["prompt", "words", "used", "words", "used", "words", "end"]
    ran, denied = [item for item in response if item.kind == "used"]
    assert (ran.ok, ran.text) == (False, "exit code 3")
    assert not denied.ok
    assert "the rules of the house" in denied.text
    hooks = [nameless_use(event["tool_name"], event["tool_input"]) for event in hooked(root)]
    assert hooks == [ran.use, denied.use]


@pytest.mark.soak
@pytest.mark.parametrize("hook", [("false",), ("/nowhere/hook",), ("echo", "{}")])
async def test_a_hook_that_fails_closes_the_door(root: Path, hook: tuple[str, ...]) -> None:
    steps = {"work": [{"run": "touch ran"}, {"write": {"path": "wrote", "content": "x"}}, "Done."]}
    async with alive(root, GeminiTui(), options, steps, hook=hook) as live:
        await live.becomes("ready")
        response = await entries_after(live, "SCRIPT:work")
        made = list(live.place.cwd.iterdir())
    assert made == []
    assert [item.ok for item in response if item.kind == "used"] == [False, False]


@pytest.mark.soak
async def test_what_it_may_not_use_is_refused_without_asking_a_person(root: Path) -> None:
    call = {"name": "web_fetch", "arguments": {"prompt": "http://127.0.0.1:9"}}
    async with alive(
        root, GeminiTui(), options, {"web": [{"tools": [call]}, "Done."]}, hook=recording_hook(root)
    ) as live:
        await live.becomes("ready")
        response = await entries_after(live, "SCRIPT:web")
    assert words_of(response) == ["Done."]
    assert hooked(root) == []


DRIPPING = {"text": "one two three four five six " * 20, "drip_seconds": 0.2, "chunk_characters": 9}
SLEEPING = [{"text": "I sleep.", "run": "sleep 100"}, "Slept."]


@pytest.mark.soak
async def test_an_answer_and_a_tool_are_interrupted_and_the_next_message_is_taken(
    root: Path,
) -> None:
    steps = {"drip": [DRIPPING], "sleep": SLEEPING, "next": ["Next."]}
    async with alive(root, GeminiTui(), options, steps, hook=recording_hook(root)) as live:
        await live.becomes("ready")
        for script, sign in (("drip", "one two three"), ("sleep", "Shell sleep 100")):
            mark = live.written.end_position()
            await live.deliver(f"SCRIPT:{script}")
            await live.shows(sign)
            await live.press(*GeminiTui().interrupt_keys)
            response = await live.hears(mark)
            end = next(item for item in response if item.kind == "end")
            assert (end.ok, end.text) == (False, "Request cancelled.")
            await live.becomes("ready")
        assert words_of(await entries_after(live, "SCRIPT:next")) == ["Next."]


HARD = (
    "!touch banged SCRIPT:ok",
    "@nothing SCRIPT:ok @pytest.mark a@b.example",
    "SCRIPT:ok see @READ",
    "# SCRIPT:ok a heading",
    "? SCRIPT:ok",
    "// SCRIPT:ok",
    "SCRIPT:ok ends in \\",
    "SCRIPT:ok three\n\\\nlines\\",
    "SCRIPT:ok C-c Escape; rm;\nEnter;",
    "SCRIPT:ok [Pasted Text: 7 lines]",
    "SCRIPT:ok\na\nb\nc\nd",
    "SCRIPT:ok\na\nb\nc\nd\ne\\",
    f"SCRIPT:ok {'x' * 490}",
    f"SCRIPT:ok {'x' * 491}",
    f"SCRIPT:ok {'漢🎭' * 200}",
    f"SCRIPT:ok {'x' * 20_000}",
    "SCRIPT:ok\n" + "line of a long message, ünïcödé\n" * 1700 + "end",
)


@pytest.mark.soak
async def test_words_that_could_be_taken_for_something_else_arrive_to_the_byte(root: Path) -> None:
    async with alive(root, GeminiTui(), options, {"ok": ["Fine."]}) as live:
        await live.becomes("ready")
        (live.place.cwd / "README").write_text("do not read me\n")
        for text in HARD:
            response = await entries_after(live, text)
            assert live.server.prompts()[-1] == text
            assert response == [
                TranscriptEntry("prompt", text),
                TranscriptEntry("words", "Fine."),
                TranscriptEntry("end"),
            ]
        assert len(live.server.prompts()) == len(HARD)
        assert not (live.place.cwd / "banged").exists()


@pytest.mark.soak
async def test_a_command_and_a_file_that_is_there_lose_their_meaning(root: Path) -> None:
    """Not to the byte: it has no way to be told them as they are."""
    async with alive(root, GeminiTui(), options, {"ok": ["Fine."]}) as live:
        await live.becomes("ready")
        (live.place.cwd / "README").write_text("do not read me\n")
        await entries_after(live, "/help SCRIPT:ok")
        await entries_after(live, f"SCRIPT:ok {FOUND} {FOUND}")
        assert live.server.prompts() == [
            "Message:\n/help SCRIPT:ok",
            "SCRIPT:ok \\@README \\@README",
        ]
        assert "do not read me" not in str(live.server.requests[-1].body)


@pytest.mark.soak
async def test_long_answers_come_whole_and_only_what_nobody_sees_is_taken_off(root: Path) -> None:
    long = "".join(f"{line}. ünïcödé \x1b[31m漢字\t`x` **y** {'z' * line}\n" for line in range(400))
    steps = {"long": [f"{long}end"], "trimmed": ["  a <!-- b --> c  \n"]}
    async with alive(root, GeminiTui(), options, steps) as live:
        await live.becomes("ready")
        assert words_of(await entries_after(live, "SCRIPT:long")) == [f"{long}end"]
        assert words_of(await entries_after(live, "SCRIPT:trimmed")) == ["a  c"]


@pytest.mark.soak
async def test_one_that_is_killed_goes_on_with_its_conversation(root: Path) -> None:
    async with alive(root, GeminiTui(), options, {"one": ["First."], "two": ["Second."]}) as live:
        await live.becomes("ready")
        await entries_after(live, "SCRIPT:one")
        mark = live.written.end_position()
        session = live.launched.session
        await live.start_again()
        assert live.launched.session == session
        await live.becomes("starting")
        await live.becomes("ready")
        response = await entries_after(live, "SCRIPT:two")
        contents = str(live.server.requests[-1].body["contents"])
        assert "SCRIPT:one" in contents
        assert "First." in contents
        assert words_of(response) == ["Second."]
        assert live.written.since(mark)[0] == response
        assert live.written.session == session


@pytest.mark.soak
async def test_one_that_is_killed_before_its_first_turn_begins_anew(root: Path) -> None:
    async with alive(root, GeminiTui(), options, {"one": ["First."]}) as live:
        await live.becomes("ready")
        session = live.launched.session
        await live.start_again()
        assert live.launched.session != session
        await live.becomes("starting")
        await live.becomes("ready")
        assert words_of(await entries_after(live, "SCRIPT:one")) == ["First."]
        assert live.written.session == live.launched.session


@pytest.mark.soak
async def test_a_message_that_comes_while_it_works_waits_for_its_turn(root: Path) -> None:
    steps = {"slow": [{"text": "Slow.", "delay_seconds": 3}], "next": ["Next."]}
    async with alive(root, GeminiTui(), options, steps) as live:
        await live.becomes("ready")
        mark = live.written.end_position()
        await live.deliver("SCRIPT:slow")
        await live.becomes("busy")
        await live.deliver("SCRIPT:next")
        response = await live.hears(mark, count=2)
    assert kinds_of(response) == ["prompt", "words", "end"] * 2
    assert words_of(response) == ["Slow.", "Next."]


@pytest.mark.soak
async def test_message_of_the_provider_is_reported_as_the_end_of_the_turn(root: Path) -> None:
    steps = {
        "bad": [{"status": 400, "message": "No such thing."}],
        "cut": [{"text": "Half of", "fault": "truncate"}],
        "next": ["Next."],
    }
    async with alive(root, GeminiTui(), options, steps) as live:
        await live.becomes("ready")
        bad = await entries_after(live, "SCRIPT:bad")
        assert bad[1:] == [TranscriptEntry("end", "No such thing.", ok=False)]
        cut = await entries_after(live, "SCRIPT:cut")
        assert cut[1:] == [
            TranscriptEntry("end", "Model stream ended without a finish reason.", ok=False)
        ]
        assert words_of(await entries_after(live, "SCRIPT:next")) == ["Next."]


@pytest.mark.soak
async def test_a_provider_that_is_too_busy_is_not_asked_without_end_but_a_person(
    root: Path,
) -> None:
    async with alive(root, GeminiTui(), options, {"quota": [{"status": 429}]}) as live:
        await live.becomes("ready")
        mark = live.written.end_position()
        await live.deliver("SCRIPT:quota")
        screen = await live.becomes("asking")
        assert "high demand" in GeminiTui().question(screen)
        assert "Keep trying" in GeminiTui().question(screen)
        assert live.server.request_count == 1
        await live.press("2")
        assert (await live.hears(mark))[-1] == TranscriptEntry(
            "end", "You exceeded your current quota.", ok=False
        )
        await live.becomes("ready")


@pytest.mark.soak
async def test_session_cleared_by_a_person_is_ready_and_received(root: Path) -> None:
    async with alive(root, GeminiTui(), options, {"one": ["First."], "two": ["Second."]}) as live:
        await live.becomes("ready")
        await entries_after(live, "SCRIPT:one")
        mark, before = live.written.end_position(), live.written.session
        await live.deliver("/clear")
        await retry_until(lambda: live.written.session != before)
        await live.becomes("ready")
        await live.deliver("SCRIPT:two")
        assert words_of(await live.hears(mark)) == ["Second."]


@pytest.mark.soak
async def test_what_is_too_long_for_a_paste_can_be_read_as_a_file(root: Path) -> None:
    """It reads no file outside of its workspace that it was not told of."""
    file = root / "side/messages/1.txt"
    read = {"name": "read_file", "arguments": {"file_path": str(file)}}
    steps = {"read": [{"tools": [read]}, "I have read it."]}
    async with alive(root, GeminiTui(), options, steps, hook=recording_hook(root)) as live:
        await live.becomes("ready")
        file.write_text("the hidden word is xyzzy")
        assert words_of(await entries_after(live, "SCRIPT:read")) == ["I have read it."]
        assert "the hidden word is xyzzy" in str(live.server.requests[-1].body)


@pytest.mark.soak
async def test_a_quarter_of_a_megabyte_is_pasted_to_the_byte(root: Path) -> None:
    longest = GeminiTui().patience.longest_paste_bytes
    text = "SCRIPT:ok\n" + "line of a long message, ünïcödé\n" * (longest // 40) + "end"
    async with alive(root, GeminiTui(), options, {"ok": ["Fine."]}) as live:
        await live.becomes("ready")
        assert words_of(await entries_after(live, text)) == ["Fine."]
        assert live.server.prompts() == [text]
