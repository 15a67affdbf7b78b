"""Commands and repositories: sources that have to ask to know whether anything changed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from podium.core.errors import CallRefused
from podium.core.processes import Confinement, Mount, ProcessExit, ProcessSpec
from podium.jobs.sense.io import CommandSource, FiguresSource, GitSource
from podium.jobs.sense.ports import StateSource
from podium.ports import Launcher
from podium.sandbox import ProcessLauncher
from podium.testing import FakeLauncher
from tests.integration.workspaces.rig import needs_bwrap
from tests.unit.bridge.sources_rig import SECRET, Rig, only


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def command(
    rig: Rig, *words: str, launcher: Launcher | None = None, seconds: float = 30.0
) -> CommandSource:
    return CommandSource(
        rig.kit,
        "queue",
        words,
        launcher=launcher or ProcessLauncher(),
        confine=Confinement,
        timeout_seconds=seconds,
    )


def python(rig: Rig, program: str, seconds: float = 30.0) -> CommandSource:
    return command(rig, sys.executable, "-c", program, seconds=seconds)


# --- commands ----------------------------------------------------------------------------------


async def test_a_command_tells_its_exit_code_and_what_it_says(rig: Rig) -> None:
    sensed = await only(python(rig, "print('{\"waiting\": 3}')"))
    assert sensed.content == {"exit_code": 0, "output": {"waiting": 3}}
    assert sensed.place.endswith("""-c 'print('"'"'{"waiting": 3}'"'"')'""")
    failed = await only(python(rig, "import sys; print('half'); sys.exit('no queue')"))
    assert failed.condition == "ok"
    assert failed.content == {"exit_code": 1, "errors": "no queue", "output": "half\n"}


async def test_a_command_that_cannot_be_asked_says_why(rig: Rig) -> None:
    missing = await only(command(rig, "no-such-program"))
    assert (missing.condition, "no-such-program" in missing.why) == ("missing", True)
    slow = await only(python(rig, "import time; time.sleep(60)", seconds=0.3))
    assert (slow.condition, slow.why) == ("unreadable", "timed out after 0.3 seconds")
    binary = await only(python(rig, r"import os; os.write(1, b'\0\1')"))
    assert (binary.condition, binary.content) == ("binary", None)
    killed = await only(python(rig, "import os; os.kill(os.getpid(), 9)"))
    assert killed.content == {"exit_code": None, "signal": 9, "errors": "", "output": ""}


async def test_a_command_that_is_refused_is_unreadable(rig: Rig) -> None:
    def refused(spawn: ProcessSpec) -> ProcessExit:
        raise CallRefused("the rules do not let it start")

    sensed = await only(command(rig, "ps", launcher=FakeLauncher({("ps",): refused})))
    assert (sensed.condition, "do not let it start" in sensed.why) == ("unreadable", True)


async def test_too_much_output_is_cut_between_two_words_and_shows_no_half_secret(rig: Rig) -> None:
    rig.file_bytes = 100
    sensed = await only(python(rig, f"print('ä ' * 30 + '{SECRET}' * 9)"))
    assert sensed.condition == "cut"
    assert sensed.content == {"exit_code": 0, "output": "ä " * 30}
    unbroken = await only(python(rig, "print('x' * 1000)"))
    assert unbroken.content["output"] == ""
    rig.file_bytes = 10_000
    failed = await only(python(rig, f"import sys; sys.exit('{SECRET}\\n' + 'x ' * 995)"))
    assert set(failed.content["errors"]) == {"x", " "}


async def test_secrets_are_taken_out_of_output_and_command(rig: Rig) -> None:
    sensed = await only(python(rig, f"print('{SECRET}')"))
    assert SECRET not in sensed.model_dump_json()
    assert sensed.content["output"] == "[redacted]\n"


async def test_a_mark_and_the_look_after_it_ask_once(rig: Rig) -> None:
    launcher = FakeLauncher({("ps",): ProcessExit(exit_code=0, stdout=b"1")})
    source = command(rig, "ps", launcher=launcher)
    mark = await source.etag()
    look = await source.look()
    assert (look.mark, len(launcher.spawns)) == (mark, 1)
    assert (await source.look()).mark == mark
    assert len(launcher.spawns) == 2
    await source.etag()
    rig.clock.advance(11)
    await source.look()
    assert len(launcher.spawns) == 4


async def test_the_mark_changes_with_the_answer_alone(rig: Rig) -> None:
    answers = [b"1", b"1", b"2"]
    launcher = FakeLauncher({("ps",): lambda _: ProcessExit(exit_code=0, stdout=answers.pop(0), seconds=len(answers))})  # fmt: skip
    source = command(rig, "ps", launcher=launcher)
    marks = [await source.etag() for _ in range(3)]
    assert marks[0] == marks[1] != marks[2]


@needs_bwrap()
async def test_a_confined_command_sees_the_root_and_cannot_write(rig: Rig) -> None:
    rig.write("state.txt", "well")
    fence = Confinement(
        kind="kernel",
        network="none",
        mounts=(Mount(source=str(rig.root), target=str(rig.root)),),
    )
    source = CommandSource(
        rig.kit,
        "state",
        ("sh", "-c", "cat state.txt; touch mine && echo wrote"),
        launcher=ProcessLauncher(),
        confine=lambda: fence,
        timeout_seconds=60,
    )
    sensed = await only(source)
    assert sensed.content["output"] == "well"
    assert not (rig.root / "mine").exists()


# --- git ---------------------------------------------------------------------------------------


def git(folder: Path, *words: str) -> str:
    me = ("-c", "user.name=Uma", "-c", "user.email=uma@example.org")
    done = subprocess.run(("git", *me, *words), cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().strip()


@pytest.fixture
def repository(rig: Rig) -> Path:
    folder = rig.root / "code"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "kept.txt").write_text("kept\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", f"first: {SECRET}")
    return folder


def repository_source(rig: Rig, path: str = "code") -> GitSource:
    return GitSource(rig.kit, "code", path, launcher=ProcessLauncher(), timeout_seconds=60)


async def test_a_repository_tells_branch_head_changes_and_commits(
    rig: Rig, repository: Path
) -> None:
    (repository / "kept.txt").write_text("changed\n")
    (repository / "new\nfile.txt").write_text("")
    sensed = await only(repository_source(rig))
    content = sensed.content
    assert (sensed.condition, content["branch"]) == ("ok", "main")
    assert content["head"] == git(repository, "rev-parse", "HEAD")
    assert content["changed"] == [".M kept.txt", "?? new\nfile.txt"]
    [commit] = content["commits"]
    assert (commit["author"], commit["subject"]) == ("Uma", "first: [redacted]")


async def test_a_repository_may_be_empty_detached_or_none(rig: Rig, repository: Path) -> None:
    git(repository, "switch", "-q", "-c", "topic/ä")
    assert (await only(repository_source(rig))).content["branch"] == "topic/ä"
    git(repository, "branch", "-q", "--set-upstream-to=main")
    assert (await only(repository_source(rig))).content["ahead_behind"] == "+0 -0"
    git(repository, "switch", "-q", "--detach")
    detached = (await only(repository_source(rig))).content
    assert (detached["branch"], len(detached["commits"])) == (None, 1)
    (rig.root / "bare").mkdir()
    assert (await only(repository_source(rig, "bare"))).condition == "missing"
    git(rig.root / "bare", "init", "-q", "-b", "main")
    empty = (await only(repository_source(rig, "bare"))).content
    assert (empty["branch"], empty["head"], empty["commits"]) == ("main", None, [])
    assert (await only(repository_source(rig, "nowhere"))).condition == "missing"
    (rig.root / "bare/.git/HEAD").write_text("nonsense")
    broken = await only(repository_source(rig, "bare"))
    assert (broken.condition, "git" in broken.why) == ("unreadable", True)


async def test_looking_at_a_repository_starts_none_of_its_programs_and_writes_nothing(
    rig: Rig, repository: Path
) -> None:
    trap = rig.root / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {rig.root}/sprung\ncat\n")
    trap.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "filter.odd.name.clean", "filter.odd.name.process"):  # fmt: skip
        git(repository, "config", key, str(trap))
    git(repository, "config", "filter.odd.name.required", "true")
    (repository / ".gitattributes").write_text("* filter=odd.name\n")
    hook = repository / ".git/hooks/post-index-change"
    hook.write_bytes(trap.read_bytes())
    hook.chmod(0o755)
    (repository / "kept.txt").write_text("keep\n")  # as long as before: git has to read it
    before = _snapshot(repository)
    sensed = await only(repository_source(rig))
    assert sensed.content["changed"] == [".M kept.txt", "?? .gitattributes"]
    assert not (rig.root / "sprung").exists()
    assert _snapshot(repository) == before


async def test_what_the_loop_writes_is_no_change_of_a_repository(
    rig: Rig, repository: Path
) -> None:
    source = repository_source(rig)
    before = await source.etag()
    rig.own.add("code/logs/loop.log")
    rig.write("code/logs/loop.log", "a line")
    assert await source.etag() == before
    rig.write("code/logs/other.log", "a line")
    assert await source.etag() != before


async def test_a_repository_that_is_the_root_itself_is_looked_at(rig: Rig) -> None:
    git(rig.root, "init", "-q", "-b", "main")
    rig.own.add("own.log")
    rig.write("own.log", "")
    rig.write("a.txt", "")
    (rig.root / "code").mkdir()
    (rig.root / "here").symlink_to(".")
    for path in ("", "code/..", "here"):
        changed = (await only(repository_source(rig, path))).content["changed"]
        assert changed == ["?? a.txt", "?? here"]


def _snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


async def test_sources_may_be_looked_at_all_at_once(rig: Rig, repository: Path) -> None:
    sources: list[StateSource] = [
        repository_source(rig),
        FiguresSource(rig.kit, "machine"),
        python(rig, "print(1)"),
    ]
    looks = await asyncio.gather(*(each.look() for each in sources))
    assert [look.source for look in looks] == ["code", "machine", "queue"]
    assert all(look.found[0].condition == "ok" for look in looks)
