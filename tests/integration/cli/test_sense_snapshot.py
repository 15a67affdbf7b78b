"""In sensing mode nothing outside logs, telemetry and Podium's own state is written: by snapshot, and by the kernel."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration.cli.command_runner import CommandRunner
from tests.integration.cli.sense_harness import break_down, lay_out

WRITABLE = ("logs", "g/telemetry", ".podium")
Known = tuple[int, int, int, int, str]


def snapshot(root: Path) -> dict[str, Known]:
    """Everything outside what may be written: inode, mode, size, time of change and bytes."""
    found: dict[str, Known] = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [
            name for name in folders if os.path.relpath(f"{folder}/{name}", root) not in WRITABLE
        ]
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            stat = path.lstat()
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            found[str(path)] = (stat.st_ino, stat.st_mode, stat.st_size, stat.st_mtime_ns, content)
    return found


def prepared(cli: CommandRunner) -> None:
    """A root in which much is wrong, with work orders, links and odd names lying about."""
    lay_out(cli, mode="sensing", failing=("opal_api", "redis", "../../CLC"))
    for place in ("CLC", "CLS", "bridge/done/CLC"):
        (cli.project / place).mkdir(parents=True)
        (cli.project / place / "core.md").write_text("mine")
    (cli.project / "bridge/inbox/CLC/WO-OLD.yaml").write_text("id: WO-OLD\ntitle: old\n")
    (cli.project / "bridge/outbox/LIAM/WO-1.ack.json").write_text(
        '{"wo_id": "WO-1", "status": "failed"}'
    )
    (cli.project / "state/clc_sessions/link.yaml").symlink_to("SESSION-DEMO-001.yaml")
    (cli.project / ".podium").mkdir(mode=0o700)


def test_a_tick_with_candidates_changes_nothing_else(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GMX_ORCH_MODE", raising=False)
    prepared(cli)
    before = snapshot(cli.project)
    assert len(before) > 20
    result = cli.run("sense", "--once", "--json")
    assert result.code == 0, result.err
    assert {candidate["state"] for candidate in result.json["candidates"]} == {"logged"}
    assert len(result.json["candidates"]) > 2
    assert snapshot(cli.project) == before
    break_down(cli, "postgres")
    assert cli.run("sense", "--once", "--json").json["changed"] is True
    assert snapshot(cli.project) == before


def test_a_dry_run_is_seen_by_the_snapshot(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The snapshot sees what it should: a mode that writes candidates changes the root."""
    monkeypatch.delenv("GMX_ORCH_MODE", raising=False)
    prepared(cli)
    before = snapshot(cli.project)
    assert cli.run("sense", "--once", "--mode", "dry-run").code == 0
    changed = {path for path, known in snapshot(cli.project).items() if before.get(path) != known}
    assert {Path(path).parent.name for path in changed} >= {"wo_candidates"}


def enclosed(cli: CommandRunner, *command: str) -> list[str]:
    """The command where the kernel lets it write only these folders of the root, and its user's own."""
    shutil.which("bwrap") or pytest.skip("bubblewrap is not installed")
    cli.home.mkdir(exist_ok=True)
    places = [str(cli.project / place) for place in WRITABLE] + [str(cli.home)]
    binds = [word for place in places for word in ("--bind", place, place)]
    return ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *binds, *command]


def run_enclosed(cli: CommandRunner, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        enclosed(cli, *command),
        cwd=cli.project,
        env=cli.environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_kernel_lets_a_tick_write_nowhere_else_and_it_wants_nothing_else(
    cli: CommandRunner,
) -> None:
    prepared(cli)
    tried = run_enclosed(cli, "true")
    if tried.returncode != 0:
        pytest.skip(f"bubblewrap cannot be used here: {tried.stderr.strip()}")
    assert run_enclosed(cli, "touch", "bridge/inbox/CLC/x.yaml").returncode != 0
    before = snapshot(cli.project)
    output = run_enclosed(cli, *cli.command("sense", "--once"))
    assert output.returncode == 0, output.stderr
    assert "logged      WO-FIX-OPAL_API-" in output.stdout
    assert output.stderr == ""
    assert output.stdout.rstrip().endswith("GMX_Call_Status=OK, WOs_Created=0, WO_IDs=[]")
    assert snapshot(cli.project) == before
