"""A virtual environment in the checkout: found without being activated, read-only, and never one of the repository's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from podium.app.app import Podium
from podium.core.processes import ProcessSpec
from tests.integration.wiring.test_podium import configured


def make_venv(folder: Path, **modules: str) -> Path:
    """A real one without pip, which holds these modules. Gives the folder of its packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    for name, text in modules.items():
        (packages / f"{name}.py").write_text(text)
    return packages


@pytest.fixture
def podium(tmp_path: Path) -> Podium:
    podium = configured(tmp_path)
    project = podium.folders.project
    (project / ".gitignore").write_text(".venv/\n")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    return podium


async def output(podium: Podium, script: str, folder: Path) -> str:
    """Return the output of a command run in this folder as an agent's or a check's is."""
    folder.mkdir(exist_ok=True)
    fence = await podium.confinement_provider.confinement(str(folder))
    spawn = ProcessSpec(
        argv=("sh", "-c", f"exec 2>&1; {script}"), cwd=str(folder), confinement=fence
    )
    return (await podium.launcher.run(spawn)).stdout.decode()


async def test_it_is_used_unactivated_and_nothing_confined_can_change_it(
    podium: Podium, tmp_path: Path
) -> None:
    packages = make_venv(podium.folders.project / ".venv", runner="print('ran')\n")
    script = f"python -m runner; touch {packages}/x {podium.folders.project}/y; ls {packages}/.."
    text = await output(podium, script, tmp_path / "work")
    assert text.startswith("ran\n"), text
    assert not (packages / "x").exists()
    assert not (podium.folders.project / "y").exists()


async def test_an_editable_install_of_the_checkout_fails_instead_of_testing_the_checkout(
    podium: Podium, tmp_path: Path
) -> None:
    project, work = podium.folders.project, tmp_path / "work"
    for top in (project, work):
        (top / "src").mkdir(parents=True)
        (top / "src/shop.py").write_text(f"print({top.name!r})\n")
    (make_venv(project / ".venv") / "shop.pth").write_text(f"{project}/src\n")
    assert "No module named 'shop'" in await output(podium, "python -c 'import shop'", work)
    assert await output(podium, "PYTHONPATH=src python -c 'import shop'", work) == "work\n"


async def test_one_that_the_repository_brings_or_an_agent_can_write_is_not_used(
    podium: Podium, tmp_path: Path
) -> None:
    project = podium.folders.project
    make_venv(project / ".venv")
    assert ".venv" not in await output(podium, "command -v python3", project)
    subprocess.run(["git", "add", "-f", ".venv/pyvenv.cfg"], cwd=project, check=True)
    other = Podium(podium.configuration, podium.environ)
    assert ".venv" not in await output(other, "command -v python3", tmp_path / "work")


async def test_an_activated_one_wins(podium: Podium, tmp_path: Path) -> None:
    make_venv(podium.folders.project / ".venv")
    active = Podium(podium.configuration, {**podium.environ, "VIRTUAL_ENV": str(tmp_path)})
    assert ".venv" not in await output(active, "command -v python3", tmp_path / "work")
