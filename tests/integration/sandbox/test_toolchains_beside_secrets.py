"""Files that stay hidden although programs lie beside them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from podium.sandbox.confining.canary import candidates
from podium.sandbox.confining.layouts import PathSet
from tests.unit.sandbox.installations import made, places, program, written


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def shown(file: Path, found: tuple[str, ...]) -> bool:
    """Return whether a tree that is shown these paths can read the file."""
    real = file.resolve()
    return any(real.is_relative_to(Path(place).resolve()) for place in found)


@pytest.mark.parametrize("mark", [".git", ".GIT", ".env", ".env.local", ".podium", "podium.yaml"])
def test_of_a_folder_that_people_work_in_only_programs_are_shown(
    mark: str, home: Path, tmp_path: Path
) -> None:
    for other in (home / "other", tmp_path / "other"):
        tool = program(other / "bin/tool")
        made(other / "lib")
        written(other / mark)
        assert places("", home, tool.parent) in ((str(tool.parent),), (str(tool),))


SPELLINGS: list[Callable[[Path, Path], str]] = [
    lambda project, link: f"{project}/bin",
    lambda project, link: f"{project}/bin/",
    lambda project, link: f"{project}//bin",
    lambda project, link: f"{project}/lib/../bin",
    lambda project, link: f"{project}/bin/../bin/.",
    lambda project, link: f"{link}/bin",
    lambda project, link: f"{link}/lib/../../project/bin",
    lambda project, link: f"{project}",
    lambda project, link: f"{link}",
    lambda project, link: f"{project.parent}",
    lambda project, link: f"{project}/.podium/bin",
    lambda project, link: f"{project}/.Podium/bin",
    lambda project, link: f"{project}/.git/bin",
    lambda project, link: f"{project}/sub/bin",
    lambda project, link: f"{project}/node_modules/../bin",
]


@pytest.mark.parametrize("spelled", SPELLINGS)
@pytest.mark.parametrize("at_home", [True, False])
def test_no_spelling_of_the_search_path_shows_the_checkout(
    spelled: Callable[[Path, Path], str], at_home: bool, home: Path, tmp_path: Path
) -> None:
    project = (home if at_home else tmp_path / "srv") / "work/project"
    secrets = [
        written(project / name)
        for name in (".env", ".podium/s", ".Podium/s", ".git/config", "lib/key", "bin/.env")
    ]
    secrets += [written(project / name) for name in ("bin/key", ".podium/bin/key", "sub/lib/key")]
    made(project / "node_modules", project / ".git/bin", project / ".Podium/bin")
    tool = program(project / "bin/tool")
    program(project / "sub/bin/tool")
    link = tmp_path / "link"
    link.symlink_to(project)
    found = places("", home, Path("/usr/bin"), Path(spelled(project, link)), project=project)
    assert [file for file in secrets if shown(file, found)] == []
    assert all(Path(place).name == tool.name for place in found)


def test_a_checkout_without_any_mark_is_no_installation_either(home: Path, tmp_path: Path) -> None:
    tool = program(tmp_path / "plain/bin/tool")
    made(tmp_path / "plain/lib")
    search = tool.parent
    assert places("", home, search, project=tmp_path / "plain") == (str(tool),)


def test_a_virtual_environment_in_the_checkout_is_shown_and_the_checkout_is_not(
    home: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    made(project / ".git")
    python = program(project / ".venv/bin/python")
    made(project / ".venv/lib/python3.11/site-packages")
    config = written(project / ".venv/pyvenv.cfg")
    written(project / ".venv/pip.conf", "index-url = https://token@host")
    assert places("", home, python.parent, project=project) == (
        str(python.parent),
        str(project / ".venv/lib"),
        str(config),
    )


def test_a_checkout_that_is_a_virtual_environment_shows_no_more_than_its_python(
    home: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    written(project / ".env")
    written(project / "lib/key")
    python = program(project / "bin/python")
    config = written(project / "pyvenv.cfg")
    made(project / "lib/python3.11")
    assert places("", home, python.parent, project=project) == (
        str(python.parent),
        str(project / "lib/python3.11"),
        str(config),
    )


def test_what_lies_beside_the_parts_of_an_installation_stays_hidden(
    home: Path, tmp_path: Path
) -> None:
    node = program(home / ".nvm/versions/node/v20/bin/node")
    written(home / ".nvm/nvm.sh")
    prefix = node.parent.parent
    made(prefix / "lib/node_modules", prefix / "config")
    written(prefix / "etc/npmrc", "//registry/:_authToken=x")
    written(home / ".nvm/.git/config")
    assert places("", home, node.parent) == (
        str(home / ".nvm/nvm.sh"),
        str(node.parent),
        str(prefix / "lib"),
    )


def test_tokens_of_uv_stay_hidden_beside_its_tools(home: Path) -> None:
    local = program(home / ".local/bin/uv").parent
    uv = home / ".local/share/uv"
    tool = program(uv / "tools/black/bin/black")
    written(uv / "credentials/credentials.toml")
    written(uv / "tools/black/uv-receipt.toml")
    assert places("", home, local) == (str(local), str(tool.parent))


def test_settings_of_a_home_hold_no_installation(home: Path) -> None:
    tool = program(home / ".config/bin/tool")
    written(home / ".config/token")
    written(home / ".config/lib/token")
    deep = program(home / ".config/x/bin/tool")
    made(home / ".config/x/lib")
    assert places("", home, tool.parent, deep.parent) == (str(tool.parent), str(deep.parent))


@pytest.mark.parametrize("name", [".ssh", ".SSH", ".gnupg", ".aws"])
def test_programs_among_keys_are_none(name: str, home: Path) -> None:
    tool = program(home / name / "bin/tool")
    made(home / name / "lib")
    written(home / name / "pyvenv.cfg")
    assert places(tool, home, tool.parent) == ()


def test_a_part_that_is_a_link_out_of_the_installation_is_not_shown(
    home: Path, tmp_path: Path
) -> None:
    tool = program(tmp_path / "opt/x/bin/tool")
    key = written(home / "papers/key")
    made(tmp_path / "opt/x/lib")
    (tmp_path / "opt/x/share").symlink_to(key.parent)
    (tmp_path / "opt/x/lib64").symlink_to("lib")
    found = places("", home, tool.parent)
    assert not shown(key, found)
    assert {Path(place).name for place in found} == {"bin", "lib", "lib64"}


def test_a_link_in_a_checkout_chooses_nothing(home: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    made(project / ".git")
    secret = written(tmp_path / "papers/bin/key")
    (project / "bin").symlink_to(secret.parent)
    assert places("", home, project / "bin", project=project) == ()


def test_a_part_that_holds_a_checkout_is_not_shown(home: Path, tmp_path: Path) -> None:
    tool = program(tmp_path / "code/bin/tool")
    made(tmp_path / "code/lib/shop/.git", tmp_path / "code/share")
    written(tmp_path / "code/libexec/.git/config")
    assert places("", home, tool.parent) == (str(tool.parent), str(tmp_path / "code/share"))


def test_an_argument_that_is_a_folder_is_no_program(home: Path, tmp_path: Path) -> None:
    made(tmp_path / "srv/data")
    assert places(tmp_path / "srv/data", home) == ()


def test_a_place_is_known_by_what_it_is_and_not_by_its_name_alone(tmp_path: Path) -> None:
    """Mount the folder twice, to stand for a folder with many names on a case-insensitive file system."""
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None or not any(candidate.name == "bubblewrap" for candidate in candidates()):
        pytest.skip("needs bubblewrap")
    one, other = tmp_path / "one", tmp_path / "other"
    made(one / "in", other)
    code = (
        "import sys; from pathlib import Path;"
        "from podium.sandbox.confining.layouts import PathSet;"
        "places = PathSet(sys.argv[1:2]); other = Path(sys.argv[2]);"
        "print(places.are_at(other), places.hold(other / 'in'), places.lie_in(other))"
    )
    mounts = ["--dev-bind", "/", "/", "--bind", str(one), str(other)]
    words = [bubblewrap, *mounts, sys.executable, "-c", code, str(one), str(other)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"bubblewrap does not work here: {done.stderr}")
    assert done.stdout.split() == ["True", "True", "True"]
    assert not PathSet([one]).hold(other / "in")
