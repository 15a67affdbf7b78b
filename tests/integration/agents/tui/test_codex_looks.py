"""Codex on a terminal without a terminal: its screens, its records, and how it is set up."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.agents.deps import AgentOptions
from podium.agents.tui import Composer, TerminalScreen
from podium.agents.tui.adapter import ProgramContext, Status, TranscriptEntry
from podium.agents.tui.codex import CodexTui, read
from podium.core.errors import BadInput, NotPossibleNow
from podium.core.model import Json

CODEX = CodexTui()
SESSION = "01a1e5b5-14ba-7440-88b7-be85c3421336"

FOOTER = "  GPT-5.5 default · /home/me/project"
EMPTY = "› Ask Codex to do anything"
DONE = "  Worked for <1s • 6:53 PM"
WORKING = "• Working (1m 2s • esc to interrupt)"
DIALOG = (
    "  Hooks need review",
    "  1 hook is new or changed.",
    "",
    "› 1. Review hooks",
    "  2. Trust all and continue",
    "",
    "  enter confirm · esc skip",
)
SIGN_IN = ("  Welcome to Codex", "", "> 1. Sign in with ChatGPT", "", "  Press enter to continue")


def screen(*lines: str, column: int = 2) -> TerminalScreen:
    return TerminalScreen(
        lines=lines,
        columns=120,
        rows=50,
        cursor=(column, 5),
        alternate=False,
        in_mode=False,
        dead=False,
        exit_code=None,
        title="",
    )


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ((), "starting"),
        (("  >_ OpenAI Codex", "", EMPTY), "starting"),
        (("  >_ OpenAI Codex", "", EMPTY, "", FOOTER), "ready"),
        (("› do it", "", WORKING, "", EMPTY, "", FOOTER), "busy"),
        (
            ("› do it", "", "Working (0s • esc to interrupt) · 1 more", "", EMPTY, "", FOOTER),
            "busy",
        ),
        (("• " + WORKING, "", "  so it says", "", DONE, "", EMPTY, "", FOOTER), "ready"),
        ((WORKING, "■ Conversation interrupted", "", EMPTY, "", FOOTER), "ready"),
        (("• I see `(3s • esc to interrupt)`", "", DONE, "", EMPTY, "", FOOTER), "ready"),
        (DIALOG, "asking"),
        (SIGN_IN, "asking"),
        (("› 1. my words", "", FOOTER), "ready"),
    ],
)
def test_what_it_is_at_is_seen(lines: tuple[str, ...], status: Status) -> None:
    assert CODEX.status(screen(*lines)) == status


TALL = "\n".join(f"a line of a tall message, number {number}" for number in range(100))


@pytest.mark.parametrize(
    ("lines", "column", "words", "composer"),
    [
        ((EMPTY,), 2, "do it", "empty"),
        (("›",), 2, "do it", "empty"),
        ((EMPTY,), 26, "Ask Codex to do anything", "ours"),
        (("› do it",), 7, "do it", "ours"),
        (("› do it, then more",), 18, "do it", "other"),
        (("› do", "", "  it\tnow"), 4, "do\n\nit\tnow", "ours"),
        (("! touch x",), 9, "!touch x", "other"),
        (("› [Pasted Content 2000 chars]",), 30, "w" * 2000, "ours"),
        (("› [Pasted Content 1999 chars]",), 30, "w" * 2000, "other"),
        (tuple(f"  {line}" for line in TALL.split("\n")[-40:]), 9, TALL, "unseen"),
        (("› " + TALL.split("\n")[60], *(f"  {x}" for x in TALL.split("\n")[61:])), 9, TALL, "ours"),
        (("  README  File", "  enter/tab insert · esc close", "› see @READ"), 11, "see @READ", "other"),
        ((WORKING, "", EMPTY), 2, "do it", "unseen"),
    ],
)  # fmt: skip
def test_text_in_its_composer_is_seen(
    lines: tuple[str, ...], column: int, words: str, composer: Composer
) -> None:
    assert CODEX.composer(screen(*lines, "", FOOTER, column=column), words) == composer


@pytest.mark.parametrize("lines", [(), DIALOG, SIGN_IN, ("  >_ OpenAI Codex", "", EMPTY)])
def test_no_composer_is_seen_before_it_is_ready_or_while_it_asks(lines: tuple[str, ...]) -> None:
    assert CODEX.composer(screen(*lines), "do it") == "unseen"


def test_question_is_shown_in_one_line_with_its_answers() -> None:
    output = CODEX.question(screen("• earlier words", *DIALOG))
    assert "Hooks need review 1 hook is new or changed. › 1. Review hooks 2. Trust all" in output
    assert "\n" not in output


@given(st.lists(st.text(alphabet="› !•■ ab(1s)\u00b7enter" + "\n", max_size=30), max_size=12))
def test_no_screen_makes_it_stumble(lines: list[str]) -> None:
    shown = screen(*lines)
    assert CODEX.status(shown) in ("starting", "ready", "busy", "asking")
    CODEX.composer(shown, "ab")
    CODEX.question(shown)


def event(kind: str, **payload: Any) -> dict[str, Any]:
    return {"type": "event_msg", "payload": {"type": kind, **payload}}


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return event("item_completed", item={"type": kind, **fields})


def spoken(*texts: str) -> dict[str, Any]:
    return item("AgentMessage", content=[{"type": "Text", "text": text} for text in texts])


def message(role: str, *texts: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text} for text in texts]
    return {
        "type": "response_item",
        "payload": {"type": "message", "role": role, "content": content},
    }


MOVED = {"/w/a": {"type": "update", "move_path": "/w/b"}, "/w/c": {"type": "add"}}


@pytest.mark.parametrize(
    ("record", "entries"),
    [
        (item("UserMessage", content=[{"type": "text", "text": "do\nit"}]), [TranscriptEntry("prompt", "do\nit")]),
        (spoken("one", "two"), [TranscriptEntry("words", "onetwo")]),
        (message("assistant", "a summary of what was said, for itself"), []),
        (message("user", "<environment_context>"), []),
        (event("task_complete", last_agent_message="x"), [TranscriptEntry("end")]),
        (event("task_complete", error={"message": "no key"}), [TranscriptEntry("end", "no key", ok=False)]),
        (event("task_complete", error="?"), [TranscriptEntry("end", "it gives no reason", ok=False)]),
        (event("turn_aborted", reason="interrupted"), [TranscriptEntry("end", "it was interrupted", ok=False)]),
        (item("CommandExecution", id="u", status="completed"), [TranscriptEntry("used", use="u")]),
        (
            item("CommandExecution", id="u", status="failed", exit_code=3),
            [TranscriptEntry("used", "exit code 3", use="u", ok=False)],
        ),
        (
            item("FileChange", id="u", status="completed", changes=MOVED),
            [TranscriptEntry("used", use=use) for use in ("u", "u#0", "u#1", "u#2", "u#3")],
        ),
        (item("Reasoning", id="u"), []),
    ],
)  # fmt: skip
def test_what_its_records_say(record: dict[str, Any], entries: list[TranscriptEntry]) -> None:
    assert read(record) == entries


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
KEYS = (
    "type",
    "role",
    "content",
    "error",
    "item",
    "id",
    "status",
    "changes",
    "reason",
    "exit_code",
)
KINDS = ("message", "item_completed", "task_complete", "turn_aborted", "UserMessage", "FileChange")


@given(
    st.sampled_from(("event_msg", "response_item", "other")),
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from((*KINDS, "assistant")) | JSON),
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(KINDS) | JSON),
)
def test_no_record_makes_it_stumble(
    kind: str, payload: dict[str, Any], inner: dict[str, Any]
) -> None:
    for entry in read({"type": kind, "payload": {**payload, "item": inner}}):
        assert isinstance(entry.text, str)
    assert read({"type": kind, "payload": payload.get("item")}) == []


def a_place(root: Path, *, confined: bool = False, **options: Any) -> ProgramContext:
    place = ProgramContext(
        name="planner",
        cwd=root / "work",
        home=root / "side/home",
        temporary=root / "side/tmp",
        options=AgentOptions.model_validate({"name": "codex", **options}),
        hook_command=("podium-hook",),
        user_home=root / "person",
        confined=confined,
    )
    for folder in (place.cwd, place.home, place.temporary, place.user_home):
        folder.mkdir(parents=True)
    return place


def settings_in(place: ProgramContext) -> dict[str, Any]:
    return tomllib.loads((place.home / ".codex/config.toml").read_text())


def test_it_is_set_up_so_that_it_asks_nobody(tmp_path: Path) -> None:
    place = a_place(tmp_path, model="m", env={"OPENAI_API_KEY": "secret://KEY"})
    launch = CODEX.launch(place, None)

    assert launch.argv == ("codex", "--no-daemon", "--no-alt-screen")
    assert launch.env["CODEX_HOME"] == str(place.home / ".codex")
    assert launch.env["OPENAI_API_KEY"] == "secret://KEY"
    settings = settings_in(place)
    assert (settings["approval_policy"], settings["sandbox_mode"]) == ("never", "workspace-write")
    assert settings["projects"][str(place.cwd)] == {"trust_level": "trusted"}
    assert settings["features"]["plugins"] is False
    assert "PODIUM_*" in settings["shell_environment_policy"]["exclude"]


@pytest.mark.parametrize(
    ("confined", "wished", "sandbox"),
    [
        (True, {}, "danger-full-access"),
        (True, {"sandbox": "read-only"}, "danger-full-access"),
        (False, {"sandbox": "read-only"}, "read-only"),
    ],
)
def test_its_own_sandbox_is_not_put_inside_of_ours(
    tmp_path: Path, confined: bool, wished: dict[str, str], sandbox: str
) -> None:
    place = a_place(tmp_path, confined=confined, options=wished)
    CODEX.launch(place, None)
    assert settings_in(place)["sandbox_mode"] == sandbox


def test_only_a_conversation_that_is_there_is_gone_on_with(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    assert CODEX.launch(place, SESSION).session == ""
    kept = place.home / f".codex/sessions/2026/11/16/rollout-2026-11-16T18-53-32-{SESSION}.jsonl"
    kept.parent.mkdir(parents=True)
    kept.write_text(begins("cli", "user"))
    assert CODEX.launch(place, "*").session == ""
    for known in (SESSION, None):
        launch = CODEX.launch(place, known)
        assert launch.session == SESSION
        assert launch.argv[-2:] == ("resume", SESSION)

    written = CODEX.written(place, SESSION)
    assert written is not None
    assert written.session == SESSION


def begins(source: Json, thread_source: Json) -> str:
    about: Json = {"source": source, "thread_source": thread_source}
    return json.dumps({"type": "session_meta", "payload": about}) + "\n"


def test_what_agents_inside_the_agent_write_is_not_its_conversation(tmp_path: Path) -> None:
    """Theirs begin with a copy of all that was said before, answers too."""
    place = a_place(tmp_path)
    written = CODEX.written(place, "")
    assert written is not None
    folder = place.home / ".codex/sessions/2026/11/16"
    folder.mkdir(parents=True)
    main = folder / f"rollout-2026-11-16T18-53-32-{SESSION}.jsonl"
    main.write_text(begins("cli", "user"))
    mark = written.end_position()
    copied = json.dumps(spoken("an old answer")) + "\n"
    for number, about in enumerate(
        (begins({"subagent": {}}, "subagent"), begins({"subagent": {}}, None), "{", "")
    ):
        (folder / f"rollout-2026-11-16T18-53-33-{number}.jsonl").write_text(about + copied)
    os.mkfifo(folder / "rollout-2026-11-16T18-53-34-pipe.jsonl")

    assert written.session == SESSION
    assert written.since(mark)[0] == []
    with main.open("a") as file:
        file.write(json.dumps(spoken("the answer")) + "\n")
    assert written.since(mark)[0] == [TranscriptEntry("words", "the answer")]


@pytest.mark.parametrize(
    ("settings", "level"),
    [
        ("work/.codex/config.toml", "untrusted"),
        ("work/.codex/hooks.json", "untrusted"),
        (".codex/config.toml", "trusted"),  # above the repository: codex does not read it
    ],
)
def test_a_project_with_settings_of_its_own_is_not_trusted(
    tmp_path: Path, settings: str, level: str
) -> None:
    place = a_place(tmp_path)
    (place.cwd / ".git").mkdir()
    (tmp_path / settings).parent.mkdir(parents=True)
    (tmp_path / settings).write_text("")
    CODEX.launch(place, None)
    assert settings_in(place)["projects"][str(place.cwd)] == {"trust_level": level}


def test_a_login_is_copied_once_and_a_renewed_one_stays(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    (place.user_home / ".codex").mkdir()
    (place.user_home / ".codex/auth.json").write_text('{"tokens": 1}')
    CODEX.launch(place, None)
    copied = place.home / ".codex/auth.json"
    assert copied.read_text() == '{"tokens": 1}'
    copied.write_text('{"tokens": 2}')
    CODEX.launch(place, None)
    assert copied.read_text() == '{"tokens": 2}'


@pytest.mark.parametrize("wrong", [{"hands": False}, {"sandbox": "none"}, {"unknown": 1}])
def test_options_that_it_does_not_have_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="'codex'"):
        CODEX.launch(a_place(tmp_path, options=wrong), None)


def test_a_workspace_that_leads_to_a_foreign_repository_is_refused(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    (tmp_path / "other/.git").mkdir(parents=True)
    (place.cwd / ".git").write_text(f"gitdir: {tmp_path / 'other/.git'}\n")
    with pytest.raises(NotPossibleNow, match="does not know it as a worktree"):
        CODEX.launch(place, None)


@pytest.mark.parametrize("words", ["do it", "do\n/it", "mail a@b.c now", "w " * 2000])
def test_plain_words_are_given_as_they_are(tmp_path: Path, words: str) -> None:
    assert CODEX.fitted(words, a_place(tmp_path)) == words


@pytest.mark.parametrize(
    "words", ["/quit", " !rm x", "see @READ", "see $HOME", "/home/me/a.png", "a b\n" * 10 + "c"]
)
def test_words_that_would_be_commands_are_given_as_a_long_paste(tmp_path: Path, words: str) -> None:
    fitted = CODEX.fitted(words, a_place(tmp_path))
    assert fitted.rstrip() == words
    assert len(fitted) > 1000
