"""The layout with its samples and shims: whole, never over what is there, never through a link."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from podium.core.errors import NotPossibleNow
from podium.jobs.sense.io.layout import Scaffolded, write_layout
from podium.jobs.sense.io.safe_files import (
    create_file,
    install_file,
    make_folder,
    read_installed,
    remove_file,
)
from podium.jobs.sense.io.schedule import TickSchedule

SAMPLES = {"gmx_plan_idle.json": '{"items": []}\n'}
SHIM = "g/tools/gmx_clc_orchestrator.zsh"
PARSER = "g/tools/gmx_clc_parse_plan.py"
LAYOUT = {
    SHIM,
    PARSER,
    "g/tools/samples/gmx_plan_idle.json",
    "g/docs/GMX_PLAN_SCHEMA_v1.md",
    "g/docs/CLC_GMX_ORCHESTRATOR_SPEC_v1.md",
    "g/knowledge/clc/README.md",
    "g/telemetry/health_check_latest.json",
    "state/clc_sessions/SESSION-DEMO-001.yaml",
    "LaunchAgents/com.02luka.gmx-clc-orchestrator.plist",
    "bridge/inbox/CLC/",
    "bridge/outbox/LIAM/",
    "logs/",
    "g/reports/wo_candidates/",
}
SHELLS = [name for name in ("sh", "dash", "bash", "zsh") if shutil.which(name)]
ODD_NAMES = [
    "plain",
    "with space",
    'it\'s "quoted"',
    "100% $HOME `id`",
    "größe-日本",
    "-dash",
    "a\\b",
]


def written(root: Path, *, force: bool = False) -> Scaffolded:
    root.mkdir(exist_ok=True)
    return write_layout(TickSchedule(root=str(root), program="/opt/podium"), SAMPLES, force=force)


def scaffolded(program: Path) -> Path:
    """A program that says how it was called, one word to a line."""
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$0" "$@"\n')
    program.chmod(0o755)
    return program


def called(*argv: str | Path, path: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(item) for item in argv],
        env={"PATH": path or "/usr/bin:/bin", **environ},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_whole_layout_is_written_and_nothing_of_podiums_own_state(tmp_path: Path) -> None:
    done = written(tmp_path / "root")
    assert set(done.made) == LAYOUT
    assert (done.kept, done.replaced, done.refused) == ((), (), {})
    for path in LAYOUT:
        assert (tmp_path / "root" / path).exists(), path
    assert sorted(file.name for file in (tmp_path / "root").iterdir()) == [
        *("LaunchAgents", "bridge", "g", "logs", "state"),
    ]
    leftovers = [file for file in (tmp_path / "root").rglob("*") if file.name.startswith(".")]
    assert leftovers == []


def test_shims_can_be_executed_and_samples_can_be_read(tmp_path: Path) -> None:
    written(tmp_path)
    for shim in (SHIM, PARSER):
        assert stat.S_IMODE((tmp_path / shim).stat().st_mode) & 0o111
    session = yaml.safe_load((tmp_path / "state/clc_sessions/SESSION-DEMO-001.yaml").read_text())
    assert session["session_id"] == "SESSION-DEMO-001"
    assert (tmp_path / "g/tools/samples/gmx_plan_idle.json").read_text() == '{"items": []}\n'


def test_existing_files_stay_and_are_reported(tmp_path: Path) -> None:
    (tmp_path / "g/tools").mkdir(parents=True)
    (tmp_path / SHIM).write_text("mine")
    done = written(tmp_path)
    assert done.kept == (SHIM,)
    assert (tmp_path / SHIM).read_text() == "mine"
    again = written(tmp_path)
    assert again.made == ()
    assert set(again.kept) == LAYOUT


def test_force_replaces_shims_and_samples_alone_and_keeps_the_old_ones(tmp_path: Path) -> None:
    written(tmp_path)
    health = "g/telemetry/health_check_latest.json"
    for path in (SHIM, "g/tools/samples/gmx_plan_idle.json", health):
        (tmp_path / path).write_text("mine")
    done = written(tmp_path, force=True)
    assert done.replaced == (SHIM, "g/tools/samples/gmx_plan_idle.json")
    assert done.backups == (f"{SHIM}.bak", "g/tools/samples/gmx_plan_idle.json.bak")
    assert (tmp_path / f"{SHIM}.bak").read_text() == "mine"
    assert (tmp_path / SHIM).read_text().startswith("#!")
    assert stat.S_IMODE((tmp_path / SHIM).stat().st_mode) & 0o111
    assert (tmp_path / health).read_text() == "mine"


def test_force_never_replaces_a_backup(tmp_path: Path) -> None:
    for words in ("first", "second", "second"):
        written(tmp_path)
        (tmp_path / SHIM).write_text(words)
        written(tmp_path, force=True)
    assert (tmp_path / f"{SHIM}.bak").read_text() == "first"
    assert (tmp_path / f"{SHIM}.bak2").read_text() == "second"
    assert not (tmp_path / f"{SHIM}.bak3").exists()


def test_no_link_leads_out_of_the_root_and_the_rest_is_written(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root, outside):
        folder.mkdir()
    (root / "g").symlink_to(outside)
    (root / "logs").symlink_to("/nowhere")
    done = written(root)
    assert list(outside.iterdir()) == []
    assert {path.split("/")[0] for path in done.refused} == {"g", "logs"}
    assert "link" in done.refused[SHIM]
    assert "bridge/inbox/CLC/" in done.made
    assert (root / "state/clc_sessions/SESSION-DEMO-001.yaml").is_file()


def test_force_does_not_write_through_a_link_in_place_of_a_shim(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "mine.zsh"
    outside.write_text("mine")
    (root / "g/tools").mkdir(parents=True)
    (root / SHIM).symlink_to(outside)
    assert SHIM in written(root).kept
    assert SHIM in written(root, force=True).refused
    assert outside.read_text() == "mine"


def test_files_and_folders_in_place_of_one_another_are_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    (tmp_path / SHIM).mkdir(parents=True)
    done = written(tmp_path)
    assert set(done.refused) == {SHIM, "state/clc_sessions/SESSION-DEMO-001.yaml"}
    assert (tmp_path / "state").read_text() == "a file"
    assert "folder" in done.refused[SHIM]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "bridge").mkdir(mode=0o500)
    assert "bridge/inbox/CLC" in written(tmp_path).refused


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", ODD_NAMES)
def test_the_shim_ticks_its_own_root_under_every_shell(
    tmp_path: Path, shell: str, name: str
) -> None:
    root = (tmp_path / name).resolve()
    written(root)
    program = scaffolded(root / ".venv/bin/podium")
    done = called(shell, root / SHIM, "--mode", "dry run")
    expected = [program, "sense", "--once", "--root", root, "--mode", "dry run"]
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [str(item) for item in expected]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shim_finds_its_root_through_links(tmp_path: Path, shell: str) -> None:
    root = tmp_path.resolve() / "root"
    written(root)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/first").symlink_to("../bin/second")
    (tmp_path / "bin/second").symlink_to(root / SHIM)
    done = called(shell, tmp_path / "bin/first", PODIUM=str(scaffolded(tmp_path / "other")))
    assert done.stdout.splitlines()[1:] == ["sense", "--once", "--root", str(root)]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shim_prefers_the_named_podium_then_the_roots_then_that_on_the_path(
    tmp_path: Path, shell: str
) -> None:
    root = tmp_path.resolve() / "root"
    written(root)
    on_path = scaffolded(tmp_path.resolve() / "bin/podium")
    path = f"{on_path.parent}:/usr/bin:/bin"
    assert called(shell, root / SHIM, path=path).stdout.startswith(f"{on_path}\n")
    own = scaffolded(root / ".venv/bin/podium")
    assert called(shell, root / SHIM, path=path).stdout.startswith(f"{own}\n")
    named = scaffolded(tmp_path / "named podium")
    done = called(shell, root / SHIM, path=path, PODIUM=str(named))
    assert done.stdout.startswith(f"{named}\n")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shim_without_podium_says_what_to_do(tmp_path: Path, shell: str) -> None:
    written(tmp_path)
    for named in ("", "/nowhere/podium"):
        done = called(shell, tmp_path / SHIM, PODIUM=named)
        assert done.returncode == 127
        assert "install it" in done.stderr
        assert named in done.stderr


def test_the_parsers_shim_hands_its_arguments_to_podium(tmp_path: Path) -> None:
    written(tmp_path)
    done = called(
        *(sys.executable, tmp_path / PARSER, "--dry-run", "--input", "a plan.json"),
        PODIUM=str(scaffolded(tmp_path / "podium")),
    )
    assert done.stdout.splitlines()[1:] == ["plan", "parse", "--input", "a plan.json"]


def test_the_parsers_shim_runs_podium_in_its_own_python_where_it_is_installed(
    tmp_path: Path,
) -> None:
    written(tmp_path)
    sample = tmp_path / "g/tools/samples/gmx_plan_idle.json"
    done = called(sys.executable, tmp_path / PARSER, "--input", sample, HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "candidate_count: 0" in done.stdout.splitlines()


def test_the_parsers_shim_needs_no_podium_in_its_python(tmp_path: Path) -> None:
    written(tmp_path)
    bare = (sys.executable, "-I", "-S", tmp_path / PARSER, "--input", "plan.json")
    missing = called(*bare)
    assert (missing.returncode, missing.stdout) == (127, "")
    assert "podium not found" in missing.stderr
    own = scaffolded(tmp_path.resolve() / ".venv/bin/podium")
    assert called(*bare).stdout.splitlines() == [str(own), "plan", "parse", "--input", "plan.json"]


def test_a_file_is_placed_whole_and_only_where_nothing_is(tmp_path: Path) -> None:
    assert create_file(tmp_path, "a/b.txt", b"one")
    assert not create_file(tmp_path, "a/b.txt", b"two")
    assert read_installed(tmp_path, "a/b.txt") == b"one"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.txt"]
    assert not make_folder(tmp_path, "a")
    assert read_installed(tmp_path, "a/c.txt") is None
    assert read_installed(tmp_path, "x/y/z.txt") is None


def test_what_is_ours_is_replaced_without_a_backup(tmp_path: Path) -> None:
    create_file(tmp_path, "unit", b"ours: 1")
    ours = lambda content: content.startswith(b"ours")  # noqa: E731 - said where it is used
    assert install_file(tmp_path, "unit", b"ours: 2", is_ours=ours) == ""
    assert install_file(tmp_path, "unit", b"ours: 2") == ""
    assert install_file(tmp_path, "unit", b"ours: 3") == "unit.bak"
    assert read_installed(tmp_path, "unit.bak") == b"ours: 2"


def test_what_is_taken_away_may_be_gone_already(tmp_path: Path) -> None:
    create_file(tmp_path, "a/b", b"")
    remove_file(tmp_path, "a/b")
    remove_file(tmp_path, "a/b")
    remove_file(tmp_path, "never/there")
    assert list((tmp_path / "a").iterdir()) == []


def test_a_place_outside_the_base_is_refused(tmp_path: Path) -> None:
    for path in ("../x/y", "/etc/podium/x"):
        with pytest.raises(NotPossibleNow):
            create_file(tmp_path, path, b"")
