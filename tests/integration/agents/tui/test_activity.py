"""Signs of life: told by the kernel, bounded on disk, kept up without a supervisor."""

from __future__ import annotations

import asyncio
import os
import stat
from functools import partial
from pathlib import Path

import pytest

from podium.agents.tui import Activity, Program, look
from podium.agents.tui import activity as activity_module
from podium.agents.tui.activity import watch_folder
from podium.core.errors import NotPossibleNow
from podium.testing import retry_until
from tests.integration.agents.tui.tmux_harness import Harness, a_server, housed


async def shell(harness: Harness, line: str) -> str:
    pane = await harness.panes.open(
        Program(name="shell", argv=("sh", "-c", line), cwd=harness.root)
    )
    await harness.activity.follow(pane)
    return pane


async def test_what_a_pane_writes_wakes_whoever_waits_and_another_pane_does_not(
    harness: Harness,
) -> None:
    one, other = await harness.open("composer"), await harness.open("composer", "executer")
    await harness.shows(one, ">")
    await harness.shows(other, ">")
    heartbeats, silent = harness.activity.signs(one), harness.activity.signs(other)
    waiting = asyncio.ensure_future(harness.activity.beyond(one, heartbeats, 30.0))
    await harness.panes.press(one, "x")
    assert await waiting
    assert harness.activity.signs(other) == silent
    assert not await harness.activity.beyond(other, silent, 0.05)


async def test_the_screen_is_never_older_than_the_sign_of_life(harness: Harness) -> None:
    pane = await shell(harness, "for i in $(seq 1 50); do read line; echo got $i; done")
    for number in range(1, 20):
        heartbeats = harness.activity.signs(pane)
        await harness.control.run(f"send-keys -t {pane} Enter")
        while f"got {number}" not in (await look(harness.control, pane)).text:
            assert await harness.activity.beyond(pane, heartbeats, 30.0)
            heartbeats = harness.activity.signs(pane)


async def test_the_end_of_a_program_is_a_sign_of_life(harness: Harness) -> None:
    # It goes a while after its last word, so that nothing else can tell of it.
    pane = await shell(harness, "stty -echo; echo ready; read line; sleep 0.3; exit 3")
    await harness.shows(pane, "ready")
    await harness.control.run(f"send-keys -t {pane} Enter")
    heartbeats = harness.activity.signs(pane)
    while not (await look(harness.control, pane)).dead:
        assert await harness.activity.beyond(pane, heartbeats, 30.0)
        heartbeats = harness.activity.signs(pane)


async def test_when_all_is_silent_tmux_is_asked_whether_it_missed_an_end(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_module, "SILENCE_SECONDS", 0.01)
    asked: list[str] = []

    async def send_commands(commands: str) -> None:
        asked.append(commands)

    monkeypatch.setattr(
        harness.control, "run", send_commands
    )  # a missed end cannot be made at will
    assert not await harness.activity.beyond("%0", 0, 0.2)
    assert {"pane_dead" in item and "run-shell" in item for item in asked} == {True}


@pytest.mark.parametrize("count", [20, pytest.param(300, marks=pytest.mark.soak)])
async def test_end_of_every_one_of_many_programs_is_reported_though_tmux_misses_some(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Of forty ends tmux 3.3a missed six. Silence tells too late here, so that the kernel has to."""
    monkeypatch.setattr(activity_module, "SILENCE_SECONDS", 600.0)
    pane = await shell(harness, "exec sleep 1000")
    # Some say a lot at the end, which tmux reads first.
    ends = ("sleep 0.05; exit 3", "seq 1 9000; exit 3")
    for number in range(count):
        argv = ("sh", "-c", f"stty -echo; echo ready; read line; {ends[number % 2]}")
        await harness.panes.restart(pane, Program(name="shell", argv=argv, cwd=harness.root))
        await harness.activity.expect_end(pane)
        await harness.shows(pane, "ready")
        heartbeats = harness.activity.signs(pane)
        await harness.control.run(f"send-keys -t {pane} Enter")
        while (await look(harness.control, pane)).exit_code != 3:
            assert await harness.activity.beyond(pane, heartbeats, 60.0)
            heartbeats = harness.activity.signs(pane)


async def test_what_is_kept_is_bounded_private_and_the_newest(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_module, "_BLOCKS", 8)  # 32 KB instead of 4 MB, to be quick
    pane = await shell(harness, "read line; seq 1 60000; exec sleep 1000")
    await harness.control.run(f"send-keys -t {pane} Enter")
    await harness.shows(pane, "60000")
    folder = harness.server.settings.folder / "activity"

    def kept() -> bytes:
        parts = [folder / f"{pane[1:]}.{part}" for part in ("before", "now")]
        try:
            return b"".join(part.read_bytes() for part in parts if part.exists())
        except FileNotFoundError:
            return b""  # just then the newer part became the older one

    await retry_until(lambda: kept().endswith(b"60000\r\n"))
    numbers = list(map(int, kept().split(b"\r\n")[1:-1]))
    assert numbers == list(range(numbers[0], 60001)), "nothing is lost between two files"
    assert len(kept()) <= 2 * 8 * 4096
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.glob("*.now")} == {0o600}


async def test_a_second_podium_follows_the_same_pane_without_disturbing_the_first(
    harness: Harness,
) -> None:
    pane = await harness.open("composer")
    await harness.shows(pane, ">")
    kept = harness.server.settings.folder / "activity" / f"{pane[1:]}.now"
    await harness.panes.press(pane, "a")
    await retry_until(kept.exists)
    before = await retry_until(kept.read_bytes)
    another = a_server(harness.root)
    activity = Activity(another.control, another.settings.folder / "activity")
    await activity.follow(pane)
    await activity.follow(pane)
    assert await harness.control.ask(f"display-message -p -t {pane} '#{{pane_pipe}}'") == ["1"]
    heartbeats = activity.signs(pane), harness.activity.signs(pane)
    await harness.panes.press(pane, "x")
    assert await activity.beyond(pane, heartbeats[0], 30.0)
    assert await harness.activity.beyond(pane, heartbeats[1], 30.0)
    assert kept.read_bytes().startswith(before), "the first pipe goes on"
    activity.close()
    await another.close()


async def test_a_program_started_again_in_its_pane_is_still_followed(harness: Harness) -> None:
    pane = await harness.open("composer")
    await harness.shows(pane, ">")
    await harness.panes.restart(pane, harness.program("composer"))
    await harness.shows(pane, ">")
    heartbeats = harness.activity.signs(pane)
    await harness.panes.press(pane, "x")
    assert await harness.activity.beyond(pane, heartbeats, 30.0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["50%H", "a b;c", "#(touch bad)", "it's $HOME"])
async def test_a_folder_of_any_name_can_keep_what_panes_write(root: Path, name: str) -> None:
    async with housed(root, folder=root / name) as harness:
        pane = await harness.open("composer")
        await harness.shows(pane, ">")
        heartbeats = harness.activity.signs(pane)
        await harness.panes.press(pane, "x")
        assert await harness.activity.beyond(pane, heartbeats, 30.0)
        assert sorted(os.listdir(root)) == sorted([name, "s"])


async def test_a_folder_is_watched_until_that_is_stopped(tmp_path: Path) -> None:
    messages: list[str] = []
    watch = watch_folder(tmp_path, messages.append)
    (tmp_path / "one").write_text("x")
    await retry_until(lambda: "one" in messages)
    watch.stop()
    watch.stop()
    messages.clear()
    others: list[str] = []
    other = watch_folder(tmp_path, others.append)
    (tmp_path / "two").write_text("x")
    await retry_until(lambda: "two" in others)
    other.stop()
    assert messages == []


@pytest.mark.soak
async def test_flood_is_received_in_few_batches_and_later_changes_as_usual(
    tmp_path: Path,
) -> None:
    messages: list[str] = []
    watch = watch_folder(tmp_path, messages.append)
    for number in range(400):
        (tmp_path / str(number % 4)).write_text("x")
    await retry_until(lambda: {"0", "1", "2", "3"} <= set(messages))
    assert len(messages) < 100, "each file once in a go, however often it was written to"
    # So many that it is a flood no longer.
    for late in map("late {}".format, range(30)):
        (tmp_path / late).write_text("x")
        await retry_until(partial(messages.__contains__, late))
    watch.stop()


async def test_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotPossibleNow, match="cannot be watched"):
        watch_folder(tmp_path / "missing", print)
