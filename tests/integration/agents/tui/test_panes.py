"""Panes: found by name, started once, each in a folder and environment of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.agents.tui import Panes, Program, look
from podium.agents.tui.control import PaneGone
from podium.core.errors import BadInput, NotPossibleNow
from podium.testing import retry_until
from tests.integration.agents.tui.tmux_harness import Harness, a_server, housed

NOTIFY = "pwd > told; env >> told; tty >> told; exec sleep 1000"


def recorded_lines(folder: Path) -> list[str]:
    file = folder / "told"
    lines = file.read_text().splitlines() if file.exists() else []
    return lines if lines and lines[-1].startswith("/dev/") else []


def program(folder: Path, name: str = "planner", **env: str) -> Program:
    folder.mkdir(exist_ok=True)
    return Program(name=name, argv=("sh", "-c", NOTIFY), cwd=folder, env=env)


async def test_every_pane_has_its_own_folder_and_variables(harness: Harness) -> None:
    one, other = harness.root / "one", harness.root / "other"
    await harness.panes.open(program(one, "planner", KEY='1 "$HOME" #{pid};', ONLY="planner"))
    await harness.panes.open(program(other, "executer", KEY="2"))
    first = await retry_until(lambda: recorded_lines(one))
    second = await retry_until(lambda: recorded_lines(other))
    assert (first[0], second[0]) == (str(one), str(other))
    assert 'KEY=1 "$HOME" #{pid};' in first
    assert "KEY=2" in second
    assert "ONLY=planner" not in second


async def test_nothing_of_podiums_environment_comes_through_but_what_is_listed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "s3cret")
    async with housed(root) as harness:
        await harness.panes.open(program(root / "one"))
        assert not [
            line
            for line in await retry_until(lambda: recorded_lines(root / "one"))
            if "s3cret" in line
        ]


async def test_opening_again_starts_nothing_also_for_another_podium(harness: Harness) -> None:
    pane = await harness.panes.open(program(harness.root / "one"))
    await retry_until(lambda: recorded_lines(harness.root / "one"))
    pid = await harness.control.ask(f"display-message -p -t {pane} '#{{pane_pid}}'")
    another = a_server(harness.root)
    assert (
        await Panes(another.control, another.settings).open(program(harness.root / "one")) == pane
    )
    assert await another.control.ask(f"display-message -p -t {pane} '#{{pane_pid}}'") == pid
    await another.close()


async def test_a_pane_that_was_named_and_never_started_is_started(harness: Harness) -> None:
    """As a supervisor leaves it that was killed in between."""
    (pane,) = await harness.control.ask("list-panes -F '#{pane_id}'")
    await harness.control.run(f"set -p -t {pane} @podium_pane planner")
    assert await harness.panes.open(program(harness.root / "one")) == pane
    await retry_until(lambda: recorded_lines(harness.root / "one"))


async def test_panes_lie_side_by_side_and_have_the_intended_size(harness: Harness) -> None:
    names = ("planner", "executer", "third")
    panes = [await harness.panes.open(program(harness.root / "one", name)) for name in names]
    facts = await harness.control.ask(
        "list-panes -F '#{pane_id} #{pane_left} #{pane_width} #{pane_height}'"
    )
    assert facts == [f"{pane} {at * 101} 100 30" for at, pane in enumerate(panes)]


async def test_a_pane_is_found_by_its_name_though_others_were_closed_before_it(
    harness: Harness,
) -> None:
    first = await harness.open("composer", "planner")
    second = await harness.open("composer", "executer")
    await harness.control.run(f"kill-pane -t {first}")
    assert await harness.panes.find("executer") == second
    with pytest.raises(PaneGone, match="planner"):
        await harness.panes.find("planner")


async def test_a_window_whose_name_begins_as_the_session_is_not_mistaken_for_it(root: Path) -> None:
    """`-t p` finds a window called python."""
    async with housed(root, session="p") as harness:
        await harness.control.run("rename-window python")
        assert await harness.open("composer") == "%0"
        assert await harness.open("composer", "executer") == "%1"


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["a b;c", "#(touch bad)", "#{pid}", "50%H", "it's", "-x"])
async def test_a_folder_of_any_name_is_taken_for_what_it_is(harness: Harness, name: str) -> None:
    await harness.panes.open(program(harness.root / name))
    assert (await retry_until(lambda: recorded_lines(harness.root / name)))[0] == str(
        harness.root / name
    )
    assert not (harness.root / name / "bad").exists()


async def test_a_program_without_arguments_is_no_shell_line(harness: Harness) -> None:
    script = harness.root / "a program; exit 3"
    script.write_text("#!/bin/sh\necho it runs\nexec sleep 1000\n")
    script.chmod(0o700)
    pane = await harness.panes.open(Program(name="one", argv=(str(script),), cwd=harness.root))
    await harness.shows(pane, "it runs")


async def test_a_missing_folder_is_refused_where_tmux_would_take_another(harness: Harness) -> None:
    program = Program(name="one", argv=("sh", "-c", "true"), cwd=harness.root / "missing")
    with pytest.raises(NotPossibleNow, match="the folder does not exist"):
        await harness.panes.open(program)


@pytest.mark.parametrize("name", ["", "A=B", "A\0"])
async def test_a_name_that_no_variable_can_have_is_refused(harness: Harness, name: str) -> None:
    with pytest.raises(BadInput):
        await harness.panes.open(program(harness.root / "one", **{name: "x"}))


async def test_an_unknown_secret_stops_the_start_and_a_known_one_is_resolved(
    harness: Harness,
) -> None:
    wanting = program(harness.root / "one", KEY="secret://KEY")
    with pytest.raises(BadInput, match="secret://KEY"):
        await harness.panes.open(wanting)
    knowing = Panes(harness.control, harness.server.settings, {"secret://KEY": "value"}.__getitem__)
    await knowing.open(wanting)
    assert "KEY=value" in await retry_until(lambda: recorded_lines(harness.root / "one"))


async def test_a_program_that_ended_is_kept_and_can_be_started_again_in_its_pane(
    harness: Harness,
) -> None:
    pane = await harness.open("composer")
    await harness.shows(pane, ">")
    await harness.panes.press(pane, "C-c")

    async def is_dead() -> bool:
        return (await look(harness.control, pane)).dead

    await retry_until(is_dead)
    assert await harness.panes.open(harness.program("composer")) == pane
    assert await is_dead()
    await harness.panes.restart(pane, harness.program("composer"))
    await harness.shows(pane, ">")
    assert not await is_dead()


async def test_keys_reach_the_program_though_a_person_scrolls_back(harness: Harness) -> None:
    pane = await harness.open("composer")
    await harness.shows(pane, ">")
    await harness.control.run(f"copy-mode -t {pane}")
    await harness.panes.press(pane, "x", "y")
    await harness.shows(pane, "> xy")


async def test_a_person_opens_a_window_and_nothing_is_started_again_or_taken_from_him(
    harness: Harness,
) -> None:
    """As Ctrl-b c does it."""
    names = ("planner", "executer")
    panes = [await harness.open("composer", name) for name in names]
    (own,) = await harness.control.ask("new-window -t =main: -P -F '#{pane_id} #{pane_pid}' sh")
    assert [await harness.panes.open(harness.program("composer", name)) for name in names] == panes
    assert [await harness.panes.find(name) for name in names] == panes
    await harness.panes.resize(70, 20)
    assert await _facts(harness, "pane_id pane_width") == [
        *(f"{pane} 70" for pane in panes),
        f"{own.split()[0]} {await _width_of(harness, own.split()[0])}",
    ]
    assert await _facts(harness, "pane_id pane_pid", own.split()[0]) == [own]


async def _facts(harness: Harness, names: str, pane: str = "") -> list[str]:
    form = " ".join(f"#{{{name}}}" for name in names.split())
    recorded_lines = await harness.control.ask(f"list-panes -s -t =main: -F '{form}'")
    return [line for line in recorded_lines if line.startswith(pane)]


async def _width_of(harness: Harness, pane: str) -> str:
    (width,) = await harness.control.ask(f"display-message -p -t {pane} '#{{window_width}}'")
    return width


@pytest.mark.sample(1)
@pytest.mark.parametrize("opened", ["split-window -h", "split-window -v", "new-window"])
async def test_a_pane_that_is_missing_is_made_anew_and_never_out_of_a_persons_own(
    harness: Harness, opened: str
) -> None:
    first = await harness.open("composer", "planner")
    second = await harness.open("composer", "executer")
    own = (await harness.control.ask(f"{opened} -P -F '#{{pane_id}} #{{pane_pid}}' sh"))[0]
    await harness.control.run(f"kill-pane -t {first}")
    third = await harness.open("composer", "planner")
    assert third not in (first, second, own.split()[0])
    await harness.shows(third, ">")
    assert await _facts(harness, "pane_id pane_pid", own.split()[0]) == [own]
    assert await _active(harness) == own.split()[0]
    assert await _facts(harness, "pane_id pane_width window_id", third) == [f"{third} 100 @0"]


async def _active(harness: Harness) -> str:
    (pane,) = await harness.control.ask("display-message -p -t =main: '#{pane_id}'")
    return pane


async def test_panes_come_into_a_window_of_their_own_where_only_a_persons_are_left(
    harness: Harness,
) -> None:
    first = await harness.open("composer", "planner")
    (own,) = await harness.control.ask("split-window -h -P -F '#{pane_id} #{pane_pid}' sh")
    await harness.control.run(f"kill-pane -t {first}")
    panes = [await harness.open("composer", name) for name in ("planner", "executer")]
    assert await _facts(harness, "pane_id pane_pid", own.split()[0]) == [own]
    assert await _active(harness) == own.split()[0]
    recorded_lines = [
        (await _facts(harness, "pane_id window_id pane_width", pane))[0] for pane in panes
    ]
    assert recorded_lines == [f"{pane} @1 100" for pane in panes]


async def test_a_key_that_looks_like_an_option_is_typed_into_this_pane(harness: Harness) -> None:
    pane = await harness.open("composer")
    other = await harness.open("composer", "executer")
    await harness.shows(pane, ">")
    await harness.panes.press(pane, "-t", other, "-X", "-", ";", "ä", "x;")
    await harness.shows(pane, f"> -t{other}-X-;äx;")
    assert "-X" not in (await look(harness.control, other)).text


@pytest.mark.sample(2)
@pytest.mark.parametrize("keys", [(), ("",), ("x", ""), ("a\nb",), ("\0",), ("\x1b[A",)])
async def test_what_is_no_key_is_refused(harness: Harness, keys: tuple[str, ...]) -> None:
    with pytest.raises(BadInput, match="are not valid keys"):
        await harness.panes.press(await harness.open("composer"), *keys)
