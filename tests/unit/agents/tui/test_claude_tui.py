"""Interpretation of Claude Code's screen and transcript, and a home in which it asks nothing."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.agents.deps import AgentOptions
from podium.agents.tui import Composer, TerminalScreen
from podium.agents.tui.adapter import ProgramContext, Status, TranscriptEntry
from podium.agents.tui.claude import ClaudeTui, entries_in
from podium.core.errors import BadInput
from podium.core.model import Json

RULE = "─" * 100
CLAUDE = ClaudeTui()


def screen(*lines: str, cursor: tuple[int, int] = (2, 27)) -> TerminalScreen:
    return TerminalScreen(
        lines=lines,
        columns=100,
        rows=30,
        cursor=cursor,
        alternate=True,
        in_mode=False,
        dead=False,
        exit_code=None,
        title="✳ Claude Code",
    )


def shown(
    typed: str, *above: str, below: str = "  ⏵⏵ don't ask on", column: int = 9
) -> TerminalScreen:
    """The program with this in its composer, its lines as it breaks them."""
    return screen("● Hi.", *above, RULE, f"❯ {typed}".rstrip(), RULE, below, cursor=(column, 27))


@pytest.mark.parametrize(
    ("typed", "column", "composer"),
    [
        ("", 2, "empty"),
        ('Try "fix the tests"', 2, "empty"),
        ('Try "fix the tests"', 9, "other"),
        ("Press up to edit queued messages", 2, "empty"),
        ("one two", 9, "ours"),
        ("one", 5, "other"),
        ("draft", 7, "other"),
        ("draft one two", 15, "other"),
        ("[Pasted text #3]", 18, "ours"),
        ("[Pasted text #3 +4 lines]", 18, "other"),
        ("draft [Pasted text #3]", 24, "other"),
    ],
)
def test_a_composer_is_read(typed: str, column: int, composer: Composer) -> None:
    assert CLAUDE.composer(shown(typed, column=column), "one two") == composer


def test_words_whose_emoji_are_drawn_in_part_are_ours() -> None:
    words = "the \U0001f468\u200d\U0001f469\u200d\U0001f467 goes"
    drawn = "the \U0001f468\u200d\U0001f469 goes"
    assert CLAUDE.composer(shown(drawn), words) == "ours"
    assert CLAUDE.composer(shown(drawn), words.replace("goes", "went")) == "other"


def test_words_that_are_broken_into_lines_are_ours() -> None:
    words = "many words " * 20
    broken = f"{'many words ' * 8}many\n  {'words many ' * 8}words\n  {'many words ' * 3}"
    lines = shown(broken.strip()).text.split("\n")
    assert CLAUDE.composer(screen(*lines), words) == "ours"
    assert CLAUDE.composer(screen(*lines), words.replace("many", "few")) == "other"


@pytest.mark.parametrize("words", ["1\n2\n3\n4", "1\n2\n3\n4\n\n", "\n\n1\n2\n3\n4"])
def test_a_stand_in_is_ours_with_as_many_lines(words: str) -> None:
    whole, inner = words.count("\n"), words.strip().count("\n")
    for count in (whole, inner):
        assert CLAUDE.composer(shown(f"[Pasted text #1 +{count} lines]"), words) == "ours"
    assert CLAUDE.composer(shown("[Pasted text #1 +9 lines]"), words) == "other"


SPINNING = "✢ Recombobulating… (4s · ↓ 8 tokens)"
DIALOG = (
    RULE,
    " Accessing workspace:",
    " Is this a project you created or one you trust?",
    " ❯ 1. Yes, I trust this folder",
    "   2. No, exit",
    " Enter to confirm · Esc to cancel",
)


@pytest.mark.parametrize(
    ("seen", "status"),
    [
        (screen(), "starting"),
        (screen("  ▐▜▛██    Claude Code v2.1.325"), "starting"),
        (shown(""), "ready"),
        (shown("", "✻ Sautéed for 6s · done 6:59 PM"), "ready"),
        (shown("a draft", "✻ Sautéed for 6s · done 6:59 PM"), "ready"),
        (shown("", "  * an answer that ends in…"), "ready"),
        (shown("", SPINNING), "busy"),
        (shown("a draft", SPINNING), "busy"),
        (shown("", "✻ 429 too fast · Retrying in 3s · attempt 1/2"), "busy"),
        (shown("", below="  ⏵⏵ don't ask on · esc to interrupt"), "busy"),
        (screen(*DIALOG), "asking"),
        (screen("● Hi.", "", *DIALOG), "asking"),
        (shown("", "  1. Yes, I trust it", "  Enter to confirm"), "ready"),
    ],
)
def test_a_status_is_seen(seen: TerminalScreen, status: Status) -> None:
    assert CLAUDE.status(seen) == status


def test_question_is_shown_in_one_line() -> None:
    question = CLAUDE.question(screen("● Hi.", *DIALOG))
    assert question.startswith("Accessing workspace: Is this a project you created")
    assert "\n" not in question


def of_user(content: Json, **beside: Json) -> dict[str, Json]:
    return {"type": "user", "message": {"role": "user", "content": content}, **beside}


def of_model(content: Json, stop: str | None = None, **beside: Json) -> dict[str, Json]:
    message = {"role": "assistant", "content": content, "stop_reason": stop, "model": "m"}
    return {"type": "assistant", "message": message, **beside}


TEXT = {"type": "text", "text": "Hi."}
THOUGHT = {"type": "thinking", "thinking": "Hm."}
USE = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "out", "is_error": True}
CUT = {"type": "text", "text": "[Request interrupted by user for tool use]"}
MADE_UP = {"content": [TEXT], "model": "<synthetic>", "stop_reason": "stop_sequence"}


@pytest.mark.parametrize(
    ("record", "entries"),
    [
        (of_user("go", promptSource="typed"), [TranscriptEntry("prompt", "go")]),
        (of_user([TEXT], promptSource="queued"), [TranscriptEntry("prompt", "Hi.")]),
        (of_user("go", promptSource="typed", isSidechain=True), []),
        (of_user("Resume directly.", isMeta=True), []),
        (of_user("This session is being continued.", isCompactSummary=True), []),
        (of_user("Commands are in the form `/command [args]`"), []),
        (of_user("[Request interrupted by user] is a text", promptSource="typed"), [
            TranscriptEntry("prompt", "[Request interrupted by user] is a text"),
        ]),
        (of_user([RESULT]), [TranscriptEntry("used", "out", "toolu_1", ok=False)]),
        (of_user([CUT]), [TranscriptEntry("end", "Request interrupted by user for tool use", ok=False)]),
        (of_model([TEXT], "tool_use"), [TranscriptEntry("words", "Hi.")]),
        (of_model([TEXT]), [TranscriptEntry("words", "Hi.")]),
        (of_model([USE], "tool_use"), []),
        (of_model([THOUGHT], "end_turn"), []),
        (of_model([TEXT], "end_turn"), [TranscriptEntry("words", "Hi."), TranscriptEntry("end")]),
        (of_model([TEXT], "end_turn", isSidechain=True), []),
        (of_model([TEXT], "max_tokens"), [TranscriptEntry("words", "Hi.")]),
        (of_model([TEXT], isApiErrorMessage=True), [TranscriptEntry("end", "Hi.", ok=False)]),
        ({"type": "assistant", "message": MADE_UP}, []),
        ({"type": "system", "subtype": "turn_duration"}, [TranscriptEntry("end")]),
        ({"type": "system", "subtype": "informational", "content": "x"}, []),
        ({}, []),
    ],
)  # fmt: skip
def test_a_record_says_what_it_means(
    record: dict[str, Json], entries: list[TranscriptEntry]
) -> None:
    assert entries_in(record) == entries


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["user", "text"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "content", "model"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.sampled_from(["user", "assistant", "system"]), ANY, ANY, ANY)
def test_records_of_any_shape_are_taken(
    kind: str, message: Json, content: Json, flag: Json
) -> None:
    for body in (message, {"content": content}):
        record = {"type": kind, "message": body, "promptSource": flag, "isApiErrorMessage": flag}
        assert all(isinstance(item, TranscriptEntry) for item in entries_in(record))


def a_place(tmp_path: Path, **options: object) -> ProgramContext:
    given = {"name": "planner", "env": {"ANTHROPIC_API_KEY": "secret://KEY"}, **options}
    for name in ("work", "home", "tmp", "person"):
        (tmp_path / name).mkdir(exist_ok=True)
    return ProgramContext(
        name="planner",
        cwd=tmp_path / "work",
        home=tmp_path / "home",
        temporary=tmp_path / "tmp",
        options=AgentOptions.model_validate(given),
        hook_command=("hook", "a b"),
        user_home=tmp_path / "person",
        confined=True,
    )


def test_a_key_stays_a_reference_and_is_handed_over_by_another_name(tmp_path: Path) -> None:
    launch = CLAUDE.launch(a_place(tmp_path), None)
    assert "ANTHROPIC_API_KEY" not in launch.env
    assert launch.env["PODIUM_MODEL_KEY"] == "secret://KEY"
    settings = json.loads(launch.argv[launch.argv.index("--settings") + 1])
    assert settings["apiKeyHelper"] == "printenv PODIUM_MODEL_KEY"


def test_other_ways_to_log_in_are_handed_over_as_they_are(tmp_path: Path) -> None:
    place = a_place(tmp_path, env={"ANTHROPIC_AUTH_TOKEN": "secret://TOKEN"})
    launch = CLAUDE.launch(place, None)
    assert launch.env["ANTHROPIC_AUTH_TOKEN"] == "secret://TOKEN"
    assert "apiKeyHelper" not in json.loads(launch.argv[launch.argv.index("--settings") + 1])


def test_a_login_is_copied_where_no_key_is_set(tmp_path: Path) -> None:
    place = a_place(tmp_path, env={})
    login = place.user_home / ".claude/.credentials.json"
    login.parent.mkdir()
    login.write_text('{"claudeAiOauth": {}}')
    CLAUDE.launch(place, None)
    copied = place.home / ".claude/.credentials.json"
    assert copied.read_text() == login.read_text()
    assert copied.stat().st_mode & 0o077 == 0


def test_the_hook_is_one_command_line_whatever_is_in_its_words(tmp_path: Path) -> None:
    launch = CLAUDE.launch(a_place(tmp_path), None)
    settings = json.loads(launch.argv[launch.argv.index("--settings") + 1])
    ((entry,),) = settings["hooks"].values()
    assert entry["hooks"][0]["command"] == "hook 'a b' deny-as-json"


def test_only_a_conversation_that_has_begun_is_gone_on_with(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    first = CLAUDE.launch(place, None)
    again = CLAUDE.launch(place, first.session)
    assert "--resume" not in again.argv
    assert again.session != first.session
    (folder,) = (place.home / ".claude/projects").iterdir()
    record = json.dumps(of_user("go", promptSource="typed"))
    (folder / f"{again.session}.jsonl").write_text(record + "\n")
    resumed = CLAUDE.launch(place, again.session)
    assert resumed.argv[-2:] == ("--resume", again.session)
    assert resumed.session == again.session


@pytest.mark.parametrize("session", ["", "*", "../x", "not a uuid"])
def test_a_conversation_of_a_strange_name_is_begun_anew(tmp_path: Path, session: str) -> None:
    launch = CLAUDE.launch(a_place(tmp_path), session)
    assert launch.argv[-2] == "--session-id"
    assert launch.session != session


@pytest.mark.parametrize("wrong", [{"hands": False}, {"effort": "none"}, {"unknown": 1}])
def test_options_that_it_does_not_have_are_refused(tmp_path: Path, wrong: dict[str, Json]) -> None:
    with pytest.raises(BadInput, match="planner"):
        CLAUDE.launch(a_place(tmp_path, options=wrong), None)


@pytest.mark.parametrize(
    ("words", "fitted"),
    [
        ("plain /words !", "plain /words !"),
        ("/compact now", "\n/compact now"),
        ("!rm -rf x", "\n!rm -rf x"),
        ("ends in \\", "ends in \\ "),
        ("/both\\", "\n/both\\ "),
        ("exit", "Message: exit"),
        (" :Q\n", "Message: :Q"),
        ("exit now", "exit now"),
    ],
)
def test_words_are_made_fit_for_it(tmp_path: Path, words: str, fitted: str) -> None:
    assert CLAUDE.fitted(words, a_place(tmp_path)) == fitted


def test_a_title_or_a_size_changes_nothing() -> None:
    seen = dataclasses.replace(shown("one two"), title="", columns=20)
    assert (CLAUDE.composer(seen, "one two"), CLAUDE.status(seen)) == ("ours", "ready")
