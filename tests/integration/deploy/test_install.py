"""Podium on a bare machine, installed by a user without rights in each of the documented ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium import __version__
from tests.integration.deploy.bare_machine import (
    HOME,
    ROOT,
    BareMachine,
    Packages,
    find_python,
)

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return Packages(tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="module")
def wheel(packages: Packages) -> Path:
    return packages.build(ROOT)


@pytest.mark.parametrize(
    ("installer", "python", "lacks"),
    [
        ("pip", "system", ("bwrap", "tmux")),
        ("pipx", "system", ()),
        ("uv", "system", ()),
        ("uv", "3.12", ()),
        ("uv", "3.13", ("bwrap",)),
    ],
)
def test_everything_advertised_works_after_installing(
    tmp_path: Path,
    packages: Packages,
    wheel: Path,
    installer: str,
    python: str,
    lacks: tuple[str, ...],
) -> None:
    interpreter = find_python(python)
    packages.download(interpreter, str(wheel), "pipx", "uv", "pip")
    machine = BareMachine(tmp_path / "machine", packages, lacks, interpreter)
    if installer != "pip":
        machine.add_tools()
    machine.install(wheel, installer)
    machine.run("mkdir", "work")
    out = machine.run("python3", "/smoke.py", "podium", __version__, cwd=f"{HOME}/work")
    print(out)
    assert out.count(": ok\n") == 7


def test_missing_git_home_or_folder_is_reported_with_what_to_do(
    tmp_path: Path, packages: Packages, wheel: Path
) -> None:
    packages.download(find_python("system"), str(wheel), "pipx", "uv")
    machine = BareMachine(tmp_path / "machine", packages, ("git", "bwrap", "tmux"))
    machine.add_tools()
    machine.install(wheel, "uv")
    assert "the demo needs git; install it" in machine.podium("demo", codes=[1])
    report = machine.podium("doctor", codes=[1])
    assert "fail  git" in report
    assert "apt-get install git" in report
    machine.podium("ask", "what is waiting for me")
    assert "(cd, or --project DIR)" in machine.podium(
        "ask", "what is waiting for me", cwd="/", codes=[1]
    )
    machine.variables = {"HOME": "/nonexistent"}
    assert "set PODIUM_HOME" in machine.podium("ask", "what is waiting for me", codes=[1])
    assert "set HOME or PODIUM_HOME" in machine.podium("serve", "--port", "0", codes=[1])
    # In a folder of its own: receipts of the first project are sealed with a key in the old home.
    machine.run("mkdir", f"{HOME}/other")
    machine.variables = {"HOME": "/nonexistent", "PODIUM_HOME": f"{HOME}/own"}
    machine.podium("ask", "what is waiting for me", cwd=f"{HOME}/other")
