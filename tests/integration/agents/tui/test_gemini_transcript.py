"""Gemini CLI's transcript and start command, without the program itself."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podium.agents.deps import AgentOptions
from podium.agents.headless.gemini.program import CONVERSATIONS
from podium.agents.tui.adapter import ProgramContext, TranscriptEntry
from podium.agents.tui.gemini import GeminiTui, GeminiWritten
from podium.core.errors import AgentNotLoggedIn, BadInput
from podium.ports import nameless_use

SESSION = "5f0c3d38-3615-47b4-8e59-ddae9f534f7c"
OTHER = "6a1d4e49-3615-47b4-8e59-ddae9f534f7c"
CONTEXT = {"id": "0", "type": "user", "content": [{"text": "<session_context>"}]}


def a_place(tmp_path: Path, **changes: Any) -> ProgramContext:
    env = {"GEMINI_API_KEY": "secret://KEY"}
    given = AgentOptions(name="planner", model="gemini-2.5-flash", env=env, **changes)
    place = ProgramContext(
        name="planner",
        cwd=tmp_path / "work",
        home=tmp_path / "side/home",
        temporary=tmp_path / "side/tmp",
        options=given,
        hook_command=("ask", "the door"),
        user_home=tmp_path / "person",
        confined=False,
    )
    for folder in (place.cwd, place.home, place.temporary, place.user_home):
        folder.mkdir(parents=True)
    return place


class Conversation:
    """A file as the CLI writes it."""

    def __init__(
        self, place: ProgramContext, session: str = SESSION, minute: str = "18-56"
    ) -> None:
        folder = place.home / CONVERSATIONS
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / f"session-2026-11-16T{minute}-{session[:8]}.jsonl"
        self.add({"sessionId": session, "projectHash": "x"}, {"$set": {"messages": [CONTEXT]}})

    def add(self, *records: Any) -> None:
        with self.file.open("a") as file:
            file.writelines(f"{json.dumps(record)}\n" for record in records)


def prompt(text: str) -> dict[str, Any]:
    return {"id": f"u{text}", "type": "user", "content": [{"text": text}]}


def words(text: str, name: str = "g1", **more: Any) -> dict[str, Any]:
    return {"id": name, "type": "gemini", "content": text, **more}


ENDED = {"podium": "ended", "number": "1-2-3"}


def call(output: str, status: str = "success") -> dict[str, Any]:
    answer = {"functionResponse": {"response": {"output": output}}}
    shell = {"name": "run_shell_command", "args": {"command": "x"}}
    return {"id": "c1", **shell, "result": [answer], "status": status}


FENCED = "<untrusted_context>\nOutput: {}\n{}Process Group PGID: 7\n</untrusted_context>"


def test_turn_is_reported_record_by_record_and_repeated_words_once(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    kept, written = Conversation(place), GeminiWritten(place.home)
    mark = written.end_position()
    kept.add(prompt("do it"), {"$set": {"lastUpdated": "x"}}, words("I run."))
    output, mark = written.since(mark)
    assert output == [TranscriptEntry("prompt", "do it"), TranscriptEntry("words", "I run.")]
    kept.add(words("I run.", toolCalls=[call(FENCED.format("out", ""))]))
    kept.add({"id": "u2", "type": "user", "content": [{"functionResponse": {"response": {}}}]})
    kept.add({"$set": {"messages": [CONTEXT, prompt("do it")]}}, words("Done.", "g2"), ENDED)
    output, mark = GeminiWritten(place.home).since(json.loads(json.dumps(mark)))
    use = nameless_use("run_shell_command", {"command": "x"})
    assert output == [
        TranscriptEntry("used", use=use),
        TranscriptEntry("words", "Done."),
        TranscriptEntry("end"),
    ]
    assert written.since(mark)[0] == []


@pytest.mark.parametrize(
    ("output", "status", "text"),
    [
        (FENCED.format("out", "Exit Code: 3\n"), "success", "exit code 3"),
        ("Tool execution blocked: no", "error", "Tool execution blocked: no"),
        ("[Operation Cancelled]", "cancelled", "[Operation Cancelled]"),
        ("", "success", "no result was reported"),
    ],
)
def test_unsuccessful_tool_is_reported_with_its_reason(
    tmp_path: Path, output: str, status: str, text: str
) -> None:
    place = a_place(tmp_path)
    kept, written = Conversation(place), GeminiWritten(place.home)
    mark = written.end_position()
    kept.add(words("", toolCalls=[call(output, status)]))
    (used,) = written.since(mark)[0]
    assert (used.kind, used.ok, used.text) == ("used", False, text)


API_ERROR = '[API Error: {"error":{"code":401,"message":"API key not valid.","status":"X"}}]'


def test_a_turn_that_failed_ends_with_the_reason_and_the_next_one_does_not(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    kept, written = Conversation(place), GeminiWritten(place.home)
    mark = written.end_position()
    kept.add(prompt("1"), {"id": "e", "type": "error", "content": API_ERROR})
    _, mark = written.since(mark)
    kept.add(ENDED, prompt("2"), ENDED)
    kept.add(prompt("3"), {"id": "i", "type": "info", "content": "Request cancelled."})
    output, _ = written.since(mark)
    ends = [item for item in output if item.kind == "end"]
    assert ends == [
        TranscriptEntry("end", "API key not valid.", ok=False),
        TranscriptEntry("end"),
        TranscriptEntry("end", "Request cancelled.", ok=False),
    ]


def test_what_was_typed_counts_and_not_the_files_that_it_put_in(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    kept, written = Conversation(place), GeminiWritten(place.home)
    mark = written.end_position()
    kept.add({**prompt("see @x\n--- all of x"), "displayContent": [{"text": "see @x"}]})
    assert written.since(mark)[0] == [TranscriptEntry("prompt", "see @x")]


ODD: list[Any] = [
    None, [], 7, "x", {}, {"type": "user"}, {"type": "user", "content": {"a": 1}},
    {"type": "gemini", "content": [None, 7, {"text": 7}], "toolCalls": [7, {}, {"result": {}}]},
    {"type": "gemini", "toolCalls": [{"result": [{"functionResponse": {"response": []}}]}]},
    {"type": "error"}, {"type": "info", "content": []}, {"podium": []}, {"$set": 7},
]  # fmt: skip


def test_records_of_any_shape_are_taken(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    kept, written = Conversation(place), GeminiWritten(place.home)
    mark = written.end_position()
    kept.add(*ODD, prompt("after"))
    assert written.since(mark)[0][-1] == TranscriptEntry("prompt", "after")
    for damaged in (None, 7, {"reading": 7}, {"reading": {"told": [], "fault": 7}}):
        assert written.since(damaged)[0][-1] == TranscriptEntry("prompt", "after")


def test_the_file_that_resuming_leaves_behind_is_not_taken_for_the_conversation(
    tmp_path: Path,
) -> None:
    place = a_place(tmp_path)
    kept, written = Conversation(place), GeminiWritten(place.home)
    kept.add(prompt("one"), words("First."), ENDED)
    mark = written.end_position()
    Conversation(place, minute="18-57")
    assert written.since(mark)[0] == []
    kept.add(prompt("two"))
    assert written.since(mark)[0] == [TranscriptEntry("prompt", "two")]


def test_a_new_conversation_in_the_same_home_is_followed(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    kept, written = Conversation(place), GeminiWritten(place.home)
    kept.add(prompt("one"), words("First."), ENDED)
    mark = written.end_position()
    Conversation(place, OTHER, "19-00").add(prompt("two"))
    assert written.since(mark)[0] == [TranscriptEntry("prompt", "two")]
    assert written.session == OTHER


def test_nothing_is_written_before_it_has_begun(tmp_path: Path) -> None:
    written = GeminiWritten(a_place(tmp_path).home)
    assert (written.session, written.since(written.end_position())[0]) == ("", [])


def _conversation_of(place: ProgramContext, session: str | None) -> tuple[str, str]:
    launched = GeminiTui().launch(place, session)
    assert launched.argv[-1] == launched.session
    return launched.argv[-2], launched.session


def test_only_a_conversation_with_something_in_it_is_resumed(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    how, new = _conversation_of(place, None)
    assert how == "--session-id"
    kept = Conversation(place)
    assert _conversation_of(place, SESSION)[0] == "--session-id"
    kept.add(prompt("fails"), {"$set": {"messages": [CONTEXT]}})
    how, other = _conversation_of(place, SESSION)
    assert how == "--session-id"
    assert len({new, other, SESSION}) == 3
    kept.add(prompt("one"), words("First."))
    assert _conversation_of(place, SESSION) == ("--resume", SESSION)
    assert _conversation_of(place, OTHER)[0] == "--session-id"


def test_its_title_says_whether_an_old_conversation_is_yet_to_be_shown(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    assert "CLI_TITLE" not in GeminiTui().launch(place, None).env
    Conversation(place).add(prompt("one"))
    assert GeminiTui().launch(place, SESSION).env["CLI_TITLE"] == "resumed: work"


def test_key_is_in_no_file_and_in_the_variables_as_a_reference(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    launched = GeminiTui().launch(place, None)
    assert launched.env["GEMINI_API_KEY"] == "secret://KEY"
    assert launched.env["HOME"] == str(place.home)
    laid = [path for path in place.home.rglob("*") if path.is_file()]
    assert laid
    assert not [path for path in laid if path.stat().st_mode & 0o077]


def test_one_without_hands_or_login_is_refused_before_anything_starts(tmp_path: Path) -> None:
    place = a_place(tmp_path, options={"hands": False})
    with pytest.raises(BadInput, match="headless"):
        GeminiTui().launch(place, None)
    stranger = replace(place, options=AgentOptions(name="planner"))
    with pytest.raises(AgentNotLoggedIn, match="GEMINI_API_KEY"):
        GeminiTui().launch(stranger, None)


def test_a_login_of_the_person_is_copied_where_there_is_no_key(tmp_path: Path) -> None:
    place = replace(a_place(tmp_path), options=AgentOptions(name="planner"))
    own = place.user_home / ".gemini/oauth_creds.json"
    own.parent.mkdir()
    own.write_text('{"access_token": "x"}')
    GeminiTui().launch(place, None)
    settings = json.loads((place.home / ".gemini/settings.json").read_text())
    assert settings["security"]["auth"]["selectedType"] == "oauth-personal"
    assert (place.home / ".gemini/oauth_creds.json").read_text() == own.read_text()


def test_it_stops_no_repetition_unless_configured_to(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    output = replace(
        place, options=place.options.model_copy(update={"options": {"stop_loops": True}})
    )
    for item, is_off in ((place, True), (output, False)):
        GeminiTui().launch(item, None)
        settings = json.loads((place.home / ".gemini/settings.json").read_text())
        assert settings["model"]["disableLoopDetection"] is is_off


def test_hook_adds_its_record_to_the_transcript_named_to_it(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    GeminiTui().launch(place, None)
    laid = place.home / ".gemini/extensions/podium/hooks/hooks.json"
    (hook,) = json.loads(laid.read_text())["hooks"]["AfterAgent"][0]["hooks"]
    kept = Conversation(place)
    odd = kept.file.rename(kept.file.with_name('odd "name" \\n $HOME.jsonl'))
    before = odd.read_text()
    event = {"session_id": SESSION, "transcript_path": str(odd), "cwd": "/", "prompt": '"cwd":'}
    text = json.dumps(event, separators=(",", ":"))
    for _ in range(2):
        subprocess.run(["bash", "-c", hook["command"]], input=text, text=True, check=True)
    first, second = odd.read_text().removeprefix(before).splitlines()
    assert json.loads(first)["podium"] == json.loads(second)["podium"] == "ended"
    assert first != second
    nowhere = json.dumps({**event, "transcript_path": str(tmp_path / "none")})
    subprocess.run(["bash", "-c", hook["command"]], input=nowhere, text=True, check=True)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("plain words", "plain words"),
        ("  blanks around \n", "blanks around"),
        ("ends in \\", "ends in \\ "),
        ("see @x", "see @x "),
        ("/help", "Message:\n/help"),
        ("  /help", "Message:\n/help"),
        ("// no command", "// no command"),
        ("see @here now", "see \\@here now"),
        (f"{'x' * 600}\\", f"{'x' * 600}\\"),
    ],
)
def test_words_are_given_so_that_none_is_taken_for_a_command(
    tmp_path: Path, words: str, given: str
) -> None:
    place = a_place(tmp_path)
    (place.cwd / "here").write_text("x")
    assert GeminiTui().fitted(words, place) == given
