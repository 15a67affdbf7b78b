"""A disk that fills while Podium works: the end is recorded, the order answered, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podium.store.sqlite import RESERVE_BYTES, SLICE_BYTES, free_bytes
from tests.integration.cli.ask_harness import NEW_LEAD
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.cli.pipeline_harness import (
    AUDITORS,
    TASK,
    architects,
    developer,
    git,
    plan_reviewer,
    set_up,
)
from tests.integration.cli.sense_harness import INBOX, lay_out
from tests.integration.cli.test_receipts import RUN, perform
from tests.integration.playbook.playbook_harness import EDIT, Stage, call

FILL = "dd if=/dev/zero of=big.bin bs=65536 count=1600"
FULL = "the disk is full"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 10 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=10m", "podium-test", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here: it takes root and CAP_SYS_ADMIN")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.fixture
def cli(
    small_disk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandRunner:
    cli = CommandRunner(small_disk, capsys)
    for name in ("PODIUM_HOME", "PODIUM_USER"):
        monkeypatch.setenv(name, cli.environ[name])
    monkeypatch.chdir(cli.project)
    return cli


def put_order(cli: CommandRunner, *ops: dict[str, Any]) -> None:
    order = {"id": "WO-1", "title": "Fill it up", "ops": ops}
    (cli.project / INBOX / "WO-1.yaml").write_text(json.dumps(order))


def ack(cli: CommandRunner) -> dict[str, Any]:
    return dict(json.loads((cli.project / "bridge/outbox/LIAM/WO-1.ack.json").read_text()))


def fill(cli: CommandRunner, *, but: int = 0) -> Path:
    big = cli.project / "big.bin"
    big.write_bytes(bytes(free_bytes(cli.project) - but))
    return big


def reserve_of(cli: CommandRunner) -> int:
    return (cli.project / ".podium" / "reserve").stat().st_size


def test_order_that_fills_the_disk_is_answered_and_the_worker_leaves_with_1(
    cli: CommandRunner,
) -> None:
    lay_out(cli)
    put_order(cli, {"op": "run", "command": FILL.replace("big", "g/reports/big")})
    ended = cli.run("worker", "--once", "--json")
    assert ended.code == 1, ended.err
    [run] = ended.json["runs"]
    assert (run["status"], ack(cli)["status"]) == ("failed", "failed")
    assert ack(cli)["ops"][0]["receipt"] == 1, "what was done is proved"
    assert list((cli.project / "bridge/claimed/CLC").iterdir()) == []
    assert reserve_of(cli) < RESERVE_BYTES
    (cli.project / "g/reports/big.bin").unlink()
    assert cli.run("worker", "--once").code == 0, "nothing was left to do"
    assert reserve_of(cli) == RESERVE_BYTES, "it is made again where there is room"


def test_operations_behind_the_one_that_filled_the_disk_are_not_begun(cli: CommandRunner) -> None:
    lay_out(cli)
    put_order(
        cli,
        {"op": "run", "command": ["sh", "-c", "cat /dev/zero > g/reports/big 2>/dev/null || true"]},
        {"op": "write", "path": "g/reports/late.txt", "content": "late"},
    )
    assert cli.run("worker", "--once").code == 1
    assert FULL in ack(cli)["error"]
    assert not (cli.project / "g/reports/late.txt").exists()


def test_command_that_takes_all_space_again_and_again_cannot_hold_up_the_worker(
    cli: CommandRunner,
) -> None:
    lay_out(cli)
    (cli.project / "g/tools").mkdir(exist_ok=True)
    greedy = "n=0; while [ $n -lt 60 ]; do cat /dev/zero >> g/reports/big 2>/dev/null; n=$((n+1)); sleep 0.1; done"
    (cli.project / "g/tools/greedy.sh").write_text(greedy)
    put_order(
        cli,
        {"op": "run", "command": ["sh", "g/tools/greedy.sh"], "timeout_seconds": 5},
    )
    ended = cli.run("worker", "--once")
    assert ended.code == 1, ended.err
    assert ended.err.count(FULL) <= 3, "it is not repeated every second"


@pytest.mark.soak
def test_playbook_stops_on_a_full_disk_and_goes_on_when_there_is_room(cli: CommandRunner) -> None:
    stage = Stage(cli)
    stage.acts(call("run_command", command=["sh", "-c", f"{FILL} 2>/dev/null || true"]), EDIT)
    ended = stage.run()
    assert ended.code == 1, ended.out + ended.err
    assert FULL in ended.err
    run_id = resumable(cli, ended.err)
    (cli.project / "big.bin").unlink()
    ended = cli.run("resume", run_id)
    assert ended.code == 0, ended.err
    assert stage.text("version.txt") == "2.0\n"


@pytest.mark.soak
def test_pipeline_stops_on_a_full_disk_and_loses_nothing(cli: CommandRunner) -> None:
    fills = {"run": f"{FILL}; true"}
    turns = [*architects(), plan_reviewer(), developer(fills), *AUDITORS]
    set_up(cli, turns)
    larger = "remount,size=64m"  # `podium run` begins with 50 MB free
    subprocess.run(["mount", "-o", larger, str(cli.project.parent)], check=True)
    ended = cli.run("run", TASK)
    assert ended.code == 1, ended.out + ended.err
    run_id = resumable(cli, ended.err)
    for big in cli.project.parent.rglob("big.bin"):
        big.unlink()
    (cli.project / "script.yaml").write_text(
        (cli.project / "script.yaml").read_text().replace(FILL, "true")
    )
    ended = cli.run("resume", run_id)
    assert ended.code == 0, ended.out + ended.err
    commits = git(cli, "log", "--all", "--format=%s").splitlines()
    assert commits.count("Say goodbye") == 1


@pytest.mark.usefixtures("roofing")
def test_full_disk_at_the_start_is_named_and_nothing_is_begun(cli: CommandRunner) -> None:
    big = fill(cli)
    ended = cli.run("ask", NEW_LEAD, "-M", "execute")
    assert ended.code == 1
    assert FULL in ended.err
    assert "free space in" in ended.err
    big.unlink()
    assert cli.run("ask", NEW_LEAD, "-M", "execute").code == 0


@pytest.mark.usefixtures("roofing")
def test_ask_on_a_disk_that_is_full_by_now_can_be_retried(cli: CommandRunner) -> None:
    assert cli.run("ask", NEW_LEAD, "-M", "execute").code == 0
    big = fill(cli, but=70_000)
    ended = cli.run("ask", "new lead: Tom 0400123457 in Clayton", "-M", "execute")
    assert ended.code == 1, ended.out + ended.err
    assert FULL in ended.out
    # The pack's records meet the full disk before Podium's own do.
    run_id = ended.out.rpartition("podium retry ")[2].split()[0]
    big.unlink()
    assert cli.run("retry", run_id, "--from", "call#1").code == 0


def test_record_can_be_read_on_a_full_disk(cli: CommandRunner) -> None:
    perform(cli, "a")
    cli.add_run(run_id=RUN)
    fill(cli)
    for command in (["runs"], ["receipts", "verify"]):
        read = cli.run(*command)
        assert (read.code, read.err) == (0, ""), command
    assert 0 < RESERVE_BYTES - reserve_of(cli) <= 2 * SLICE_BYTES


def resumable(cli: CommandRunner, text: str) -> str:
    """The run that a person is told to resume, and where."""
    assert "free space in" in text, text
    return text.rpartition("podium resume ")[2].partition("`")[0]
