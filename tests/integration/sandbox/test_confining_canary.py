"""The canary finds out what this machine can hold, and says why not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from podium.core.errors import NoSandbox, NotPossibleNow
from podium.core.processes import Confinement, ProcessExit, ProcessSpec
from podium.sandbox import ProcessLauncher
from podium.sandbox.confining import canary
from podium.sandbox.confining.canary import BUBBLEWRAP, LANDLOCK, Canary, Mechanism, try_out
from tests.integration.sandbox.confined import Place

ANY = Mechanism(name=BUBBLEWRAP, bubblewrap="/usr/bin/bwrap")


SURVEY = """
import asyncio
from podium.sandbox import ProcessLauncher
for trial in asyncio.run(ProcessLauncher().survey()):
    print(trial.mechanism.name, trial.works)
"""


class Runs:
    """Answers for a mechanism, and counts how often it was tried."""

    def __init__(self, launcher: ProcessLauncher | None = None, fails: str = "") -> None:
        self._launcher = launcher
        self._fails = fails
        self.tried: list[str] = []

    async def __call__(self, spawn: ProcessSpec, mechanism: Mechanism) -> ProcessExit:
        self.tried.append(mechanism.name)
        if self._fails:
            raise NotPossibleNow(self._fails)
        (Path(spawn.cwd) / "file").touch()
        (Path(spawn.cwd) / "lock").touch()
        return ProcessExit(exit_code=0, stdout=b"attempted\n", refused_execs=("true",))


@pytest.mark.sample(1)
async def test_a_mechanism_that_holds_everything_is_found(mechanism: Mechanism) -> None:
    trials = await ProcessLauncher().survey()
    verdicts = {trial.mechanism: trial for trial in trials}
    assert verdicts[mechanism].works, verdicts[mechanism].why


def test_where_namespaces_are_refused_landlock_is_found() -> None:
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        pytest.skip("no bubblewrap to refuse them with")
    refusing = [bwrap, "--unshare-user", "--disable-userns", "--bind", "/", "/"]
    walls = [*refusing, "--dev", "/dev", "--proc", "/proc", "--"]
    packages = os.pathsep.join(path for path in sys.path if path)
    ran = subprocess.run(
        [*walls, sys.executable, "-c", SURVEY],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    words = ["bubblewrap False", "bubblewrap False", "landlock True"]
    assert ran.stdout.splitlines() == words, ran.stderr


async def test_a_folder_for_temporary_files_may_have_a_path_too_long_for_sockets(
    mechanism: Mechanism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("long" * 20)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))  # where gettempdir() keeps TMPDIR
    verdicts = {trial.mechanism: trial for trial in await ProcessLauncher().survey()}
    assert verdicts[mechanism].works, verdicts[mechanism].why


async def test_what_confines_nothing_is_found_out() -> None:
    """The canary is live: started without any walls it does all that it must not do."""
    if os.geteuid() == 0:
        pytest.skip("as root it would do real harm; runs where the tests run as an ordinary user")
    launcher = ProcessLauncher()

    async def unconfined(spawn: ProcessSpec, mechanism: Mechanism) -> ProcessExit:
        return await launcher.run(spawn.model_copy(update={"confinement": Confinement()}))

    trial = await try_out(unconfined, ANY)
    assert not trial.works
    for deed in (
        "write to a file outside",
        "write by a hard link",
        "write by a symbolic link",
        "change the mode of a file outside",
        "connect to a socket file",
        "connect to an abstract socket",
        "signal a process outside",
        "read a file that is not mounted",
        "start a refused program",
    ):
        assert deed in trial.why


async def test_a_mechanism_that_lies_is_found_out_by_what_changed() -> None:
    async def lies(spawn: ProcessSpec, mechanism: Mechanism) -> ProcessExit:
        (Path(spawn.cwd) / "file").touch()
        (Path(spawn.cwd).parent / "outer" / "file").write_text("changed")
        return ProcessExit(exit_code=0, stdout=b"attempted\n", refused_execs=("true",))

    trial = await try_out(lies, ANY)
    assert trial.why == "a file outside the sandbox was changed"


@pytest.mark.parametrize(
    ("ended", "why"),
    [
        (
            ProcessExit(exit_code=1, stderr=b"bwrap: no permissions"),
            "did not run (bwrap: no permissions)",
        ),
        (ProcessExit(exit_code=0), "did not run"),
        (
            ProcessExit(exit_code=0, stdout=b"attempted\nremount\n"),
            "the test program could remount",
        ),
        (
            ProcessExit(exit_code=0, stdout=b"attempted\n"),
            "the start of a refused program was not reported",
        ),
    ],
)
async def test_a_canary_that_did_not_come_back_well_counts_as_lost(
    ended: ProcessExit, why: str
) -> None:
    async def gives(spawn: ProcessSpec, mechanism: Mechanism) -> ProcessExit:
        return ended

    trial = await try_out(gives, ANY)
    assert not trial.works
    assert why in trial.why


async def test_without_a_mechanism_every_reason_is_reported() -> None:
    canary = Canary(Runs(fails="namespaces are off"))
    with pytest.raises(NoSandbox, match="Landlock and seccomp guard: namespaces are off") as caught:
        await canary.mechanism()
    assert "`sandbox: none`" in str(caught.value)
    assert caught.value.exit_code == 4


async def test_the_verdict_is_kept_as_long_as_the_machine_stays_as_it_is(tmp_path: Path) -> None:
    memory, runs = tmp_path / "state" / "sandbox.json", Runs()
    found = await Canary(runs, memory).mechanism()
    assert await Canary(runs, memory).mechanism() == found
    assert len(runs.tried) == 1
    kept = json.loads(memory.read_text())
    kept["machine"]["boot"] = "another"
    memory.write_text(json.dumps(kept))
    await Canary(runs, memory).mechanism()
    assert len(runs.tried) == 2


async def test_one_verdict_is_enough_for_all_launchers_of_a_process(tmp_path: Path) -> None:
    runs, verdicts = Runs(), dict[str, Mechanism]()
    found = await Canary(runs, None, verdicts).mechanism()
    assert await Canary(runs, tmp_path / "sandbox.json", verdicts).mechanism() == found
    assert len(runs.tried) == 1


@pytest.mark.parametrize("text", ["", "[]", "{", '{"machine": {}, "mechanism": 1}', '"x"'])
async def test_a_spoiled_memory_is_no_memory(tmp_path: Path, text: str) -> None:
    memory, runs = tmp_path / "sandbox.json", Runs()
    memory.write_text(text)
    await Canary(runs, memory).mechanism()
    assert len(runs.tried) == 1
    assert json.loads(memory.read_text())["mechanism"]["name"] in (BUBBLEWRAP, LANDLOCK)


async def test_a_memory_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = await Canary(Runs(), tmp_path / "file" / "sandbox.json").mechanism()
    assert found.name in (BUBBLEWRAP, LANDLOCK)


async def test_nothing_is_started_when_nothing_can_be_confined(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canary, "candidates", list)  # as on a machine without any
    with pytest.raises(NoSandbox):
        await ProcessLauncher().run(place.sh("touch started"))
    assert not (place.given / "started").exists()
