"""Findings of a hostile review of the worker of orders, and the behaviour that replaced each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.core.errors import NotPossibleNow
from podium.core.model import Json
from podium.core.work import Run, RunStatus
from podium.jobs.sense import WORK_ORDER
from podium.jobs.sense.orders.policy import LAUNCHERS
from podium.jobs.sense.orders.worker import inbox_tender
from podium.testing import retry_until
from tests.integration.sense.attack_harness import Ground, Hands
from tests.unit.sense.process_death import Death
from tests.unit.sense.sense_harness import ACKS, CLAIMED, DONE, INBOX, PARKED, Post, Station

NOTES = "logs/notes.log"
APPEND = {"op": "append", "path": NOTES, "content": "a line\n"}
STEPS = ["seen", "weigh", "release", "call", "ack", "put-away"]
TOKEN = "ghp_" + "z1Y2x3W4v5" * 4


def at_work(tmp_path: Path, **more: Json) -> Station:
    return Station(tmp_path, settings={"mode": "autonomous", **more})


def dropped(station: Station, *ops: Json, name: str = "WO-1", file: str = "") -> None:
    order = {"id": name, "title": f"order {name}", "ops": list(ops)}
    station.write(f"{INBOX}/{file or name}.yaml", yaml.safe_dump(order))


def running(command: str) -> dict[str, Json]:
    return {"op": "run", "command": f"sh -c '{command}'"}


async def ended(post: Post) -> list[Run]:
    """All orders once each has ended; people say yes to whatever they are asked, and time passes."""

    async def look() -> list[Run] | None:
        for asked in await post.waiting_approvals():
            await post.say_yes(asked.id)
        post.station.pass_time(5)
        runs = await post.runs(WORK_ORDER)
        return runs if runs and all(run.status.ended for run in runs) else None

    found = await retry_until(look)
    assert found is not None
    return found


# --- what orders may not touch -----------------------------------------------------------------


@pytest.mark.parametrize("launcher", LAUNCHERS)
async def test_an_order_that_rewrites_a_launcher_asks(tmp_path: Path, launcher: str) -> None:
    station = at_work(tmp_path)
    station.write(launcher, "exec podium sense\n")
    dropped(station, {"op": "write", "path": launcher, "content": "touch /tmp/owned\n"})
    async with station.open() as post:
        [run] = await post.work()
        [asked] = await post.waiting_approvals()
    assert run.status is RunStatus.WAITING
    assert (asked.tool, str(asked.tier)) == ("write_file", "T2")
    assert station.read(launcher) == "exec podium sense\n"


@pytest.mark.sample(1)
@pytest.mark.parametrize("launcher", LAUNCHERS)
async def test_a_command_cannot_rewrite_a_launcher(tmp_path: Path, launcher: str) -> None:
    ground = Ground(tmp_path)
    (ground.root / launcher).write_text("exec podium sense\n")
    tricks = [
        f"echo x > {launcher}",
        f"rm -f {launcher}; echo x > {launcher}",
        f"echo x > g/tools/new; mv g/tools/new {launcher}",
        f"mv g/tools g/docs/away && mkdir g/tools && echo x > {launcher}",
    ]
    for number, trick in enumerate(tricks, start=1):
        await Hands(ground).do(number, running(trick))
        assert (ground.root / launcher).read_text() == "exec podium sense\n", trick
    assert await Hands(ground).do(9, running("echo x > g/tools/other")) in ("done", "asked")
    assert (ground.root / "g/tools/other").exists(), "the folder itself can be worked in"


@pytest.mark.sample(1)
@pytest.mark.parametrize("launcher", LAUNCHERS)
async def test_a_command_cannot_make_a_launcher_where_there_is_none(
    tmp_path: Path, launcher: str
) -> None:
    ground = Ground(tmp_path)
    (ground.root / "g/docs/e.sh").write_text(f"rm -f {launcher}; echo owned > {launcher}\n")
    end = await Hands(ground).do(1, {"op": "run", "command": "sh g/docs/e.sh"})
    assert end.startswith("refused: ")
    assert "podium" in (ground.root / launcher).read_text(), "Podium's own lies there now"


async def test_no_command_runs_where_a_launcher_is_a_link(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    (ground.root / LAUNCHERS[0]).symlink_to("../docs/readme.md")
    end = await Hands(ground).do(1, running("echo x > g/docs/x"))
    assert f"{LAUNCHERS[0]!r} is started by schedulers but is not a regular file" in end
    assert not (ground.root / "g/docs/x").exists()


@pytest.mark.sample(1)
@pytest.mark.parametrize("folder", ["outbox/LIAM", "inbox/CLC", "claimed/CLC", "done/CLC"])
async def test_a_command_cannot_make_and_fill_a_folder_of_the_bridge_that_is_not_there(
    tmp_path: Path, folder: str
) -> None:
    ground = Ground(tmp_path)
    place = ground.root / "bridge" / folder
    place.rename(tmp_path / "away")
    place.parent.rmdir()
    forged = f"mkdir -p bridge/{folder}; echo {{}} > bridge/{folder}/VICTIM.ack.json"
    end = await Hands(ground).do(1, running(forged))
    assert end.startswith("refused: ")
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("kind", ["link", "file"])
async def test_no_command_runs_where_a_folder_of_the_bridge_leads_elsewhere(
    tmp_path: Path, kind: str
) -> None:
    ground = Ground(tmp_path)
    (ground.root / "bridge").rename(tmp_path / "away")
    if kind == "link":
        (ground.root / "bridge").symlink_to(ground.outside)
    else:
        (ground.root / "bridge").write_text("")
    before = sorted(ground.outside.iterdir())
    end = await Hands(ground).do(1, running("echo x > g/docs/x"))
    assert end.startswith("refused: ")
    assert "bridge" in end
    assert not (ground.root / "g/docs/x").exists()
    assert sorted(ground.outside.iterdir()) == before


@pytest.mark.parametrize("victim", ["podium.yaml", ".podium/podium.db", "CLC/rules.md"])
async def test_a_command_is_refused_while_a_hard_link_leads_out_of_the_safe_zones(
    tmp_path: Path, victim: str
) -> None:
    ground = Ground(tmp_path)
    link = ground.root / "g/docs/link"
    link.hardlink_to(ground.root / victim)
    before = link.read_text()
    end = await Hands(ground).do(1, running("echo evil >> g/docs/link; echo x > g/docs/x"))
    assert "'g/docs/link' has a hard link outside the safe zones" in end
    assert (ground.root / victim).read_text() == before
    assert not (ground.root / "g/docs/x").exists()


async def test_a_hard_link_between_safe_zones_stops_no_command(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    (ground.root / "g/reports/link").hardlink_to(ground.root / "g/docs/readme.md")
    end = await Hands(ground).do(1, running("echo x > g/docs/x"))
    assert end in ("done", "asked")
    assert (ground.root / "g/docs/x").read_text() == "x\n"


async def test_where_nothing_confines_it_the_test_command_of_an_order_asks(tmp_path: Path) -> None:
    station = at_work(tmp_path)
    station.home.mkdir()
    (station.home / "config.yaml").write_text("sandbox: none\n")
    station.write("g/tools/test_x.py", "open('g/docs/ran', 'w')\n")
    dropped(station, {"op": "run", "command": "pytest g/tools/test_x.py"})
    async with station.open() as post:
        [run] = await post.work()
        [asked] = await post.waiting_approvals()
    assert run.status is RunStatus.WAITING
    assert (asked.tool, str(asked.tier)) == ("run_command", "T2")
    assert not (station.root / "g/docs/ran").exists()


# --- nothing is done twice ---------------------------------------------------------------------


async def test_an_append_whose_fate_nobody_knows_is_not_done_again(tmp_path: Path) -> None:
    station = at_work(tmp_path)
    dropped(station, APPEND)
    death = Death(STEPS.index("call") + 1, "acted")
    async with station.open({WORK_ORDER: death}) as post:
        await post.serve()
        await post.tend()
        await post.dies_with(death)
    with (station.root / NOTES).open("a") as file:
        file.write("somebody else\n")
    async with station.open() as post:
        await post.serve()
        [run] = await ended(post)
    assert run.status is RunStatus.FAILED
    assert station.read(NOTES) == "a line\nsomebody else\n"
    ack = station.ack("WO-1")
    assert ack.status == "failed"
    assert "cannot tell whether this was done" in ack.error
    assert len(station.files(PARKED)) == 2


async def test_a_command_that_fails_runs_once(tmp_path: Path) -> None:
    station = at_work(tmp_path)
    dropped(
        station, {"op": "mkdir", "path": "g/docs"}, running("echo charged >> g/docs/F3; exit 1")
    )
    async with station.open() as post:
        await post.serve()
        await post.tend()
        await ended(post)
    assert station.read("g/docs/F3") == "charged\n"
    assert station.ack("WO-1").status == "failed"


@pytest.mark.parametrize("step", ["call", "ack"])
async def test_what_was_begun_under_a_record_that_is_gone_is_parked_and_not_done_again(
    tmp_path: Path, step: str
) -> None:
    station = at_work(tmp_path)
    dropped(station, APPEND)
    death = Death(STEPS.index(step) + 1, "acted")
    async with station.open({WORK_ORDER: death}) as post:
        await post.serve()
        await post.tend()
        await post.dies_with(death)
    assert ("WO-1.ack.json" in station.files(ACKS)) == (step == "ack")
    station.pass_time(60)
    gone = list((station.root / ".podium").glob("podium.db*"))
    assert gone
    for file in gone:
        file.unlink()
    async with station.open() as post:
        await post.podium.begin_anew()
        await post.serve()
        assert await post.tend() == 0
        assert await post.runs(WORK_ORDER) == []
    assert station.read(NOTES) == "a line\n"
    assert station.files(CLAIMED) == []
    order, reason = station.files(PARKED)
    assert order.startswith("WO-1.")
    assert "the record of its run is lost" in station.read(f"{PARKED}/{reason}")


async def test_an_order_that_was_answered_under_a_lost_record_and_is_put_back_is_a_duplicate(
    tmp_path: Path,
) -> None:
    station = at_work(tmp_path)
    dropped(station, APPEND)
    async with station.open() as post:
        await post.work()
    station.pass_time(60)
    for file in (station.root / ".podium").glob("podium.db*"):
        file.unlink()
    dropped(station, APPEND)
    async with station.open() as post:
        await post.podium.begin_anew()
        [run] = await post.work()
    assert run.failure is not None
    assert "duplicate" in run.failure.message
    assert station.read(NOTES) == "a line\n"


# --- nothing is stranded -----------------------------------------------------------------------


class _Full:
    """An engine that can store no run for a while."""

    def __init__(self, inner: Any, *, refused: int) -> None:
        self._inner = inner
        self._left = refused

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def start(self, *given: Any, **more: Any) -> Run:
        self._left -= 1
        if self._left >= 0:
            raise NotPossibleNow("the disk is full")
        run: Run = await self._inner.start(*given, **more)
        return run


@pytest.mark.sample(1)
@pytest.mark.parametrize("refused", [1, 3])
async def test_claims_that_could_not_be_started_are_started_later_by_the_same_worker(
    tmp_path: Path, refused: int
) -> None:
    station = at_work(tmp_path)
    names = ["WO-1", "WO-2", "WO-3"]
    for name in names:
        dropped(station, {**APPEND, "content": f"{name}\n"}, name=name)
    async with station.open() as post:
        await post.serve()
        tender = await inbox_tender(post.podium)
        full = replace(tender, engine=_Full(tender.engine, refused=refused))
        with pytest.raises(NotPossibleNow, match="the disk is full"):
            await full.tend()
        assert len(await post.runs(WORK_ORDER)) == len(names) - refused
        assert station.files(INBOX) == []
        assert await full.tend() == refused
        assert await full.tend() == 0
        runs = await ended(post)
    assert [run.status for run in runs] == [RunStatus.SUCCEEDED] * len(names)
    assert sorted(station.read(NOTES).split()) == names
    assert station.files(CLAIMED) == []


@pytest.mark.parametrize("obstacle", ["no outbox", "a folder of the answer's name"])
async def test_an_order_whose_answer_cannot_be_written_is_answered_later(
    tmp_path: Path, obstacle: str
) -> None:
    station = at_work(tmp_path)
    place = station.root / (ACKS if obstacle == "no outbox" else f"{ACKS}/WO-1.ack.json")
    stderr = tmp_path / "aside"
    if obstacle == "no outbox":
        place.rename(stderr)
        place.write_text("a file")
    else:
        place.mkdir()
    dropped(station, APPEND)
    async with station.open() as post:
        await post.serve()
        await post.tend()

        async def set_back() -> bool:
            [run] = await post.runs(WORK_ORDER)
            assert not run.status.ended
            return run.setbacks > 0

        await retry_until(set_back)
        assert station.read(NOTES) == "a line\n"
        assert len(station.files(CLAIMED)) == 1
        if obstacle == "no outbox":
            place.unlink()
            stderr.rename(place)
        else:
            place.rmdir()
        [run] = await ended(post)
    assert run.status is RunStatus.SUCCEEDED
    assert station.ack("WO-1").status == "done"
    assert station.read(NOTES) == "a line\n"
    assert len(station.files(DONE)) == 1
    assert station.files(CLAIMED) == []


async def test_a_link_in_place_of_an_answer_strands_no_order_and_leads_nowhere(
    tmp_path: Path,
) -> None:
    station = at_work(tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("keep")
    (station.root / ACKS / "WO-1.ack.json").symlink_to(victim)
    dropped(station, APPEND)
    async with station.open() as post:
        await post.serve()
        await post.tend()
        [run] = await ended(post)
    assert run.status is RunStatus.SUCCEEDED
    assert not (station.root / ACKS / "WO-1.ack.json").is_symlink()
    assert station.ack("WO-1").status == "done"
    assert victim.read_text() == "keep"
    assert station.files(CLAIMED) == []


# --- secrets -----------------------------------------------------------------------------------


async def test_an_order_with_a_secret_is_parked_and_nothing_of_it_is_done(tmp_path: Path) -> None:
    station = at_work(tmp_path)
    dropped(station, APPEND, {**APPEND, "content": f"token {TOKEN}\n"})
    async with station.open() as post:
        [run] = await post.work()
    assert run.status is RunStatus.FAILED
    assert not (station.root / NOTES).exists()
    order, reason = station.files(PARKED)
    assert "it contains a secret in plain text" in station.read(f"{PARKED}/{reason}")
    [answer] = [name for name in station.files(ACKS) if "WO-1" in name]
    assert TOKEN not in station.read(f"{ACKS}/{answer}")
    assert TOKEN in station.read(f"{PARKED}/{order}"), "what somebody sent is theirs to mend"
    recorded = b"".join(file.read_bytes() for file in (station.root / ".podium").glob("podium.db*"))
    assert TOKEN.encode() not in recorded


async def test_an_order_whose_file_name_looks_like_a_secret_is_done_and_put_away(
    tmp_path: Path,
) -> None:
    station = at_work(tmp_path)
    dropped(station, APPEND, file=TOKEN)
    async with station.open() as post:
        [run] = await post.work()
    assert run.status is RunStatus.SUCCEEDED
    assert station.read(NOTES) == "a line\n"
    assert station.files(CLAIMED) == []
    assert len(station.files(DONE)) == 1
