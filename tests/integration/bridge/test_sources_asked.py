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
from tests.integration.workspaces.workspace_harness import needs_bwrap
from tests.unit.bridge.sources_harness import SECRET, Harness, only


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


def command(
    harness: Harness, *words: str, launcher: Launcher | None = None, seconds: float = 30.0
) -> CommandSource:
    return CommandSource(
        harness.deps,
        "queue",
        words,
        launcher=launcher or ProcessLauncher(),
        confine=Confinement,
        timeout_seconds=seconds,
    )


def python(harness: Harness, program: str, seconds: float = 30.0) -> CommandSource:
    return command(harness, sys.executable, "-c", program, seconds=seconds)


# --- commands ----------------------------------------------------------------------------------


async def test_command_reports_its_exit_code_and_output(harness: Harness) -> None:
    sensed = await only(python(harness, "print('{\"waiting\": 3}')"))
    assert sensed.content == {"exit_code": 0, "output": {"waiting": 3}}
    assert sensed.place.endswith("""-c 'print('"'"'{"waiting": 3}'"'"')'""")
    failed = await only(python(harness, "import sys; print('half'); sys.exit('no queue')"))
    assert failed.condition == "ok"
    assert failed.content == {"exit_code": 1, "errors": "no queue", "output": "half\n"}


async def test_a_command_that_cannot_be_asked_says_why(harness: Harness) -> None:
    missing = await only(command(harness, "no-such-program"))
    assert (missing.condition, "no-such-program" in missing.why) == ("missing", True)
    slow = await only(python(harness, "import time; time.sleep(60)", seconds=0.3))
    assert (slow.condition, slow.why) == ("unreadable", "timed out after 0.3 seconds")
    binary = await only(python(harness, r"import os; os.write(1, b'\0\1')"))
    assert (binary.condition, binary.content) == ("binary", None)
    killed = await only(python(harness, "import os; os.kill(os.getpid(), 9)"))
    assert killed.content == {"exit_code": None, "signal": 9, "errors": "", "output": ""}


async def test_a_command_that_is_refused_is_unreadable(harness: Harness) -> None:
    def refused(spawn: ProcessSpec) -> ProcessExit:
        raise CallRefused("the rules do not let it start")

    sensed = await only(command(harness, "ps", launcher=FakeLauncher({("ps",): refused})))
    assert (sensed.condition, "do not let it start" in sensed.why) == ("unreadable", True)


async def test_too_much_output_is_cut_between_two_words_and_shows_no_half_secret(
    harness: Harness,
) -> None:
    harness.file_bytes = 100
    sensed = await only(python(harness, f"print('ä ' * 30 + '{SECRET}' * 9)"))
    assert sensed.condition == "cut"
    assert sensed.content == {"exit_code": 0, "output": "ä " * 30}
    unbroken = await only(python(harness, "print('x' * 1000)"))
    assert unbroken.content["output"] == ""
    harness.file_bytes = 10_000
    failed = await only(python(harness, f"import sys; sys.exit('{SECRET}\\n' + 'x ' * 995)"))
    assert set(failed.content["errors"]) == {"x", " "}


async def test_secrets_are_taken_out_of_output_and_command(harness: Harness) -> None:
    sensed = await only(python(harness, f"print('{SECRET}')"))
    assert SECRET not in sensed.model_dump_json()
    assert sensed.content["output"] == "[redacted]\n"


async def test_a_mark_and_the_look_after_it_ask_once(harness: Harness) -> None:
    launcher = FakeLauncher({("ps",): ProcessExit(exit_code=0, stdout=b"1")})
    source = command(harness, "ps", launcher=launcher)
    mark = await source.etag()
    look = await source.look()
    assert (look.mark, len(launcher.spawns)) == (mark, 1)
    assert (await source.look()).mark == mark
    assert len(launcher.spawns) == 2
    await source.etag()
    harness.clock.advance(11)
    await source.look()
    assert len(launcher.spawns) == 4


async def test_the_mark_changes_with_the_answer_alone(harness: Harness) -> None:
    answers = [b"1", b"1", b"2"]
    launcher = FakeLauncher({("ps",): lambda _: ProcessExit(exit_code=0, stdout=answers.pop(0), seconds=len(answers))})  # fmt: skip
    source = command(harness, "ps", launcher=launcher)
    marks = [await source.etag() for _ in range(3)]
    assert marks[0] == marks[1] != marks[2]


@needs_bwrap()
async def test_a_confined_command_sees_the_root_and_cannot_write(harness: Harness) -> None:
    harness.write("state.txt", "well")
    fence = Confinement(
        kind="kernel",
        network="none",
        mounts=(Mount(source=str(harness.root), target=str(harness.root)),),
    )
    source = CommandSource(
        harness.deps,
        "state",
        ("sh", "-c", "cat state.txt; touch mine && echo wrote"),
        launcher=ProcessLauncher(),
        confine=lambda: fence,
        timeout_seconds=60,
    )
    sensed = await only(source)
    assert sensed.content["output"] == "well"
    assert not (harness.root / "mine").exists()


# --- git ---------------------------------------------------------------------------------------


def git(folder: Path, *words: str) -> str:
    me = ("-c", "user.name=Uma", "-c", "user.email=uma@example.org")
    done = subprocess.run(("git", *me, *words), cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().strip()


@pytest.fixture
def repository(harness: Harness) -> Path:
    folder = harness.root / "code"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "kept.txt").write_text("kept\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", f"first: {SECRET}")
    return folder


def repository_source(harness: Harness, path: str = "code") -> GitSource:
    return GitSource(harness.deps, "code", path, launcher=ProcessLauncher(), timeout_seconds=60)


async def test_repository_reports_branch_head_changes_and_commits(
    harness: Harness, repository: Path
) -> None:
    (repository / "kept.txt").write_text("changed\n")
    (repository / "new\nfile.txt").write_text("")
    sensed = await only(repository_source(harness))
    content = sensed.content
    assert (sensed.condition, content["branch"]) == ("ok", "main")
    assert content["head"] == git(repository, "rev-parse", "HEAD")
    assert content["changed"] == [".M kept.txt", "?? new\nfile.txt"]
    [commit] = content["commits"]
    assert (commit["author"], commit["subject"]) == ("Uma", "first: [redacted]")


async def test_a_repository_may_be_empty_detached_or_none(
    harness: Harness, repository: Path
) -> None:
    git(repository, "switch", "-q", "-c", "topic/ä")
    assert (await only(repository_source(harness))).content["branch"] == "topic/ä"
    git(repository, "branch", "-q", "--set-upstream-to=main")
    assert (await only(repository_source(harness))).content["ahead_behind"] == "+0 -0"
    git(repository, "switch", "-q", "--detach")
    detached = (await only(repository_source(harness))).content
    assert (detached["branch"], len(detached["commits"])) == (None, 1)
    (harness.root / "bare").mkdir()
    assert (await only(repository_source(harness, "bare"))).condition == "missing"
    git(harness.root / "bare", "init", "-q", "-b", "main")
    empty = (await only(repository_source(harness, "bare"))).content
    assert (empty["branch"], empty["head"], empty["commits"]) == ("main", None, [])
    assert (await only(repository_source(harness, "nowhere"))).condition == "missing"
    (harness.root / "bare/.git/HEAD").write_text("nonsense")
    broken = await only(repository_source(harness, "bare"))
    assert (broken.condition, "git" in broken.why) == ("unreadable", True)


async def test_looking_at_a_repository_starts_none_of_its_programs_and_writes_nothing(
    harness: Harness, repository: Path
) -> None:
    trap = harness.root / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {harness.root}/sprung\ncat\n")
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
    sensed = await only(repository_source(harness))
    assert sensed.content["changed"] == [".M kept.txt", "?? .gitattributes"]
    assert not (harness.root / "sprung").exists()
    assert _snapshot(repository) == before


async def test_what_the_loop_writes_is_no_change_of_a_repository(
    harness: Harness, repository: Path
) -> None:
    source = repository_source(harness)
    before = await source.etag()
    harness.own.add("code/logs/loop.log")
    harness.write("code/logs/loop.log", "a line")
    assert await source.etag() == before
    harness.write("code/logs/other.log", "a line")
    assert await source.etag() != before


async def test_a_repository_that_is_the_root_itself_is_looked_at(harness: Harness) -> None:
    git(harness.root, "init", "-q", "-b", "main")
    harness.own.add("own.log")
    harness.write("own.log", "")
    harness.write("a.txt", "")
    (harness.root / "code").mkdir()
    (harness.root / "here").symlink_to(".")
    for path in ("", "code/..", "here"):
        changed = (await only(repository_source(harness, path))).content["changed"]
        assert changed == ["?? a.txt", "?? here"]


def _snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


async def test_sources_may_be_looked_at_all_at_once(harness: Harness, repository: Path) -> None:
    sources: list[StateSource] = [
        repository_source(harness),
        FiguresSource(harness.deps, "machine"),
        python(harness, "print(1)"),
    ]
    looks = await asyncio.gather(*(source.look() for source in sources))
    assert [look.source for look in looks] == ["code", "machine", "queue"]
    assert all(look.found[0].condition == "ok" for look in looks)
