"""The real Claude Code on a terminal: it starts without a question, and words go both ways to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.agents.deps import AgentOptions
from podium.agents.tui.adapter import TranscriptEntry
from podium.agents.tui.claude import ClaudeTui
from podium.testing.modelserver import Script
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

MODEL = "claude-sonnet-4-5"


def options(url: str) -> AgentOptions:
    return AgentOptions(
        name="planner",
        model=MODEL,
        base_url=url,
        command=(clis.claude(),),
        env={"ANTHROPIC_API_KEY": "secret://KEY"},
    )


async def entries_after(live: Live, text: str) -> list[TranscriptEntry]:
    """A whole turn, with the words made fit as whoever sends them does."""
    return await live.ask(ClaudeTui().fitted(text, live.place))


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
            {"text": "One.", "run": "echo one > one"},
            {"text": "Two.", "run": "touch forbidden"},
            "Done.",
        ],
    }
    hook = recording_hook(root, "forbidden")
    async with alive(root, ClaudeTui(), options, steps, hook=hook) as live:
        await live.becomes("ready")
        response = await entries_after(live, asked)
        assert live.server.prompts() == [asked]
        assert response[0] == TranscriptEntry("prompt", asked)
        assert words_of(response) == [BLOCK]
        assert response[-1] == TranscriptEntry("end")
        assert live.written.session == live.launched.session
        assert files_with_the_key(root) == []
        await live.becomes("ready")
        response = await entries_after(live, "SCRIPT:work")
        made = {path.name for path in live.place.cwd.iterdir()}
    assert made == {"one"}
    assert words_of(response) == ["One.", "Two.", "Done."]
    assert kinds_of(response) == ["prompt", "words", "used", "words", "used", "words", "end"]
    allowed, denied = [item for item in response if item.kind == "used"]
    assert (allowed.ok, denied.ok) == (True, False)
    assert "Permission Denied: the rules of the house" in denied.text
    assert "hook.py" not in denied.text, "the model reads where the hook lies"
    assert [event["tool_use_id"] for event in hooked(root)] == [allowed.use, denied.use]


@pytest.mark.soak
@pytest.mark.parametrize(
    "hook", [("false",), ("/nowhere/hook",), ("echo", "{}"), ("sh", "-c", "exit 1")]
)
async def test_a_hook_that_fails_closes_the_door(root: Path, hook: tuple[str, ...]) -> None:
    steps = {"work": [{"run": "touch ran"}, {"write": {"path": "wrote", "content": "x"}}, "Done."]}
    async with alive(root, ClaudeTui(), options, steps, hook=hook) as live:
        await live.becomes("ready")
        response = await entries_after(live, "SCRIPT:work")
        made = list(live.place.cwd.iterdir())
    assert made == []
    assert [item.ok for item in response if item.kind == "used"] == [False, False]


SLOW = {"delay_seconds": 30, "text": "Too late."}
DRIPPING = {"text": "word " * 500, "drip_seconds": 0.2, "chunk_characters": 20}


async def test_an_interrupted_turn_is_over_and_the_next_message_is_taken(root: Path) -> None:
    steps = {"slow": [SLOW], "next": ["Next."]}
    async with alive(root, ClaudeTui(), options, steps) as live:
        await live.becomes("ready")
        mark = live.written.end_position()
        await live.deliver("SCRIPT:slow")
        await live.server.wait_for_requests(1, 60)
        await live.becomes("busy")
        await live.press(*ClaudeTui().interrupt_keys)
        response = await live.hears(mark)
        await live.becomes("ready")
        after = await entries_after(live, "SCRIPT:next")
    assert kinds_of(response) == ["prompt", "end"]
    assert not response[-1].ok
    assert words_of(after) == ["Next."]


@pytest.mark.soak
async def test_an_answer_and_a_tool_are_interrupted_in_the_middle(root: Path) -> None:
    steps = {"drip": [DRIPPING], "sleep": [{"run": "sleep 100"}, "Slept."], "next": ["Next."]}
    async with alive(root, ClaudeTui(), options, steps, hook=recording_hook(root)) as live:
        await live.becomes("ready")
        for script, sign in (("drip", "word word word"), ("sleep", "$ sleep 100")):
            mark = live.written.end_position()
            await live.deliver(f"SCRIPT:{script}")
            await live.shows(sign)
            await live.press(*ClaudeTui().interrupt_keys)
            response = await live.hears(mark)
            assert not response[-1].ok
            await live.becomes("ready")
        assert words_of(await entries_after(live, "SCRIPT:next")) == ["Next."]


HARD = (
    "/help me SCRIPT:ok",
    "/compact\nSCRIPT:ok",
    "!touch banged SCRIPT:ok",
    "@f.txt SCRIPT:ok",
    "SCRIPT:ok see @f",
    "# SCRIPT:ok a heading",
    "? SCRIPT:ok",
    "& SCRIPT:ok",
    "SCRIPT:ok ends in \\",
    "SCRIPT:ok three\n\\\nlines\\",
    "SCRIPT:ok C-c Escape; rm;\nEnter;",
    "SCRIPT:ok [Pasted text #7 +3 lines]",
    f"SCRIPT:ok {'x' * 20_000}",
    "SCRIPT:ok\n" + "line of a long message, ünïcödé\n" * 1700 + "end",
    "SCRIPT:ok " + "word " * 150,
)


@pytest.mark.soak
async def test_no_words_are_taken_for_a_command_or_a_key(root: Path) -> None:
    async with alive(root, ClaudeTui(), options, {"ok": ["Ok."]}) as live:
        (live.place.cwd / "f.txt").write_text("private")
        await live.becomes("ready")
        for hard in HARD:
            response = await entries_after(live, hard)
            assert response[0].text.strip() == hard.strip()
            assert words_of(response) == ["Ok."]
        prompts = [prompt.strip() for prompt in live.server.prompts()]
        made = [path.name for path in live.place.cwd.iterdir()]
        sent = repr([seen.body for seen in live.server.requests])
    assert prompts == [hard.strip() for hard in HARD]
    assert made == ["f.txt"]
    assert "private" not in sent


@pytest.mark.soak
@pytest.mark.parametrize("word", ["exit", ":q", "quit"])
async def test_word_that_would_end_the_program_is_passed_to_the_model(
    root: Path, word: str
) -> None:
    script = {"default": {"steps": ["Still here."]}}
    async with alive(root, ClaudeTui(), options, Script.model_validate(script)) as live:
        await live.becomes("ready")
        assert words_of(await entries_after(live, word)) == ["Still here."]
        assert live.server.prompts() == [f"Message: {word}"]


@pytest.mark.soak
@pytest.mark.parametrize("signs", ["👍🏽 👩🏿‍🚀", "👨‍👩‍👧‍👦 🇩🇪 ❤️ 1️⃣", "क्षि हिन्दी", "ที่นี่ e\u0301"])
async def test_signs_that_terminals_measure_in_their_own_ways_do_no_harm(
    root: Path, signs: str
) -> None:
    script = {"default": {"steps": [f"Yes {signs} yes.\n\n- {signs}\n"] * 9}}
    async with alive(root, ClaudeTui(), options, Script.model_validate(script)) as live:
        for turn in ("first", "second", "third"):
            await live.becomes("ready")
            response = await entries_after(live, f"The {turn} has {signs} in it")
            assert f"Yes {signs} yes." in words_of(response)[-1]


@pytest.mark.soak
async def test_words_with_a_tab_are_read_from_a_file_for_it_would_make_blanks_of_it(
    root: Path,
) -> None:
    file = root / "own/messages/0-1.txt"
    script = {"rules": [{"when": "0-1.txt", "steps": [{"read": str(file)}, "Read."]}]}
    async with alive(root, ClaudeTui(), options, script, hook=recording_hook(root)) as live:
        await live.becomes("ready")
        response = await entries_after(live, "say:\n\tone\n")
    (used,) = [item for item in response if item.kind == "used"]
    assert used.ok
    assert "\tone" in used.text
    assert words_of(response) == ["Read."]


@pytest.mark.soak
@pytest.mark.parametrize(
    "answer", ["x" * 70_000, "- *item* `code`\n\n\tünï 漢字 🎭\n" * 2_500, "\n  lead\n\ntrail  \n"]
)
async def test_an_answer_of_any_length_is_read_to_the_byte(root: Path, answer: str) -> None:
    async with alive(
        root, ClaudeTui(), options, {"say": [{"text": answer, "thinking": "Hm."}]}
    ) as live:
        await live.becomes("ready")
        response = await entries_after(live, "SCRIPT:say")
    assert words_of(response) == [answer]
    assert response[-1].kind == "end"


@pytest.mark.soak
async def test_one_that_was_killed_goes_on_in_its_conversation(root: Path) -> None:
    steps = {"one": ["First."], "two": ["Second."]}
    async with alive(root, ClaudeTui(), options, steps) as live:
        await live.becomes("ready")
        await entries_after(live, "SCRIPT:one")
        session, mark = live.launched.session, live.written.end_position()
        await live.start_again()
        assert live.launched.session == session
        await live.becomes("ready")
        await live.deliver("SCRIPT:two")
        response = await live.hears(mark)
        assert "First." in repr(live.server.requests[-1].body["messages"])
    assert words_of(response) == ["Second."]


@pytest.mark.soak
async def test_program_killed_before_its_first_message_begins_anew(root: Path) -> None:
    async with alive(root, ClaudeTui(), options, {"one": ["First."]}) as live:
        await live.becomes("ready")
        await live.start_again()
        await live.becomes("ready")
        assert words_of(await entries_after(live, "SCRIPT:one")) == ["First."]


@pytest.mark.soak
async def test_one_that_was_killed_at_work_still_has_the_message(root: Path) -> None:
    steps = {"slow": [SLOW], "next": ["Next."]}
    async with alive(root, ClaudeTui(), options, steps) as live:
        await live.becomes("ready")
        mark = live.written.end_position()
        await live.deliver("SCRIPT:slow")
        await live.server.wait_for_requests(1, 60)
        assert kinds_of(await live.hears(mark, "prompt")) == ["prompt"]
        await live.start_again()
        await live.becomes("ready")
        mark = live.written.end_position()
        await live.deliver("SCRIPT:next")
        assert words_of(await live.hears(mark)) == ["Next."]


@pytest.mark.soak
async def test_message_to_a_busy_program_is_answered_after_that(root: Path) -> None:
    steps = {"slow": [{"text": "First.", "delay_seconds": 3}], "next": ["Second."]}
    async with alive(root, ClaudeTui(), options, steps) as live:
        await live.becomes("ready")
        mark = live.written.end_position()
        await live.deliver("SCRIPT:slow")
        await live.becomes("busy")
        await live.deliver("SCRIPT:next")
        response = await live.hears(mark, "words", 2)
    assert words_of(response) == ["First.", "Second."]
    assert [item.text for item in response if item.kind == "prompt"] == [
        "SCRIPT:slow",
        "SCRIPT:next",
    ]
    between = kinds_of(response)[kinds_of(response).index("words") :]
    assert between.index("end") < between.index("prompt")


@pytest.mark.soak
@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
async def test_a_model_that_fails_ends_the_turn_with_its_words(root: Path, status: int) -> None:
    steps = {"fail": [{"status": status, "message": "the model is unwell"}], "next": ["Next."]}
    async with alive(root, ClaudeTui(), options, steps) as live:
        await live.becomes("ready")
        response = await entries_after(live, "SCRIPT:fail")
        assert not response[-1].ok
        assert response[-1].text
        await live.becomes("ready")
        assert words_of(await entries_after(live, "SCRIPT:next")) == ["Next."]


@pytest.mark.soak
async def test_a_conversation_that_grew_too_long_is_shortened_within_the_turn(root: Path) -> None:
    overflowing = {"fault": "context_overflow"}
    script = {
        "rules": [
            {"marker": "one", "steps": ["First."]},
            {
                "marker": "over",
                "each_time": True,
                "steps": [overflowing, "Fits."],
            },
        ]
    }
    async with alive(root, ClaudeTui(), options, script) as live:
        await live.becomes("ready")
        for _ in range(3):
            await entries_after(live, "SCRIPT:one")
        response = await entries_after(live, "SCRIPT:over")
    assert [(item.kind, item.text) for item in response] == [
        ("prompt", "SCRIPT:over"),
        ("words", "Fits."),
        ("end", ""),
    ]


@pytest.mark.soak
async def test_question_that_opens_anyway_is_seen_and_reported(root: Path) -> None:
    async with alive(root, ClaudeTui(), options, {}, started=False) as live:
        known = live.place.home / ".claude/.claude.json"
        known.write_text(known.read_text().replace("hasTrustDialogAccepted", "unknown"))
        await live.start()
        screen = await live.becomes("asking")
        assert "trust" in live.adapter.question(screen)
        assert live.adapter.composer(screen, "words") == "unseen"
