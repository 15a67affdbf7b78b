"""Which folders of programs a confined tree is shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podium.sandbox.confining.toolchains import program_places, search_path_places


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


def places(path: Path, home: Path, *search: Path) -> tuple[str, ...]:
    return program_places(str(path), os.pathsep.join(map(str, search)), str(home))


def test_a_program_of_the_system_needs_nothing_more(home: Path) -> None:
    assert program_places("/usr/bin/env", "/usr/bin", str(home)) == ()


def test_a_linked_program_of_npm_is_shown_with_all_packages_beside_it(home: Path) -> None:
    script = program(home / "clis/node_modules/@x/cli/main.js")
    link = home / "clis/node_modules/.bin/cli"
    link.parent.mkdir()
    link.symlink_to("../@x/cli/main.js")
    assert script.exists()
    assert places(link, home) == (str(home / "clis/node_modules"),)


def test_the_interpreter_of_a_script_is_shown_too(home: Path, tmp_path: Path) -> None:
    node = program(tmp_path / "node-20/bin/node")
    (tmp_path / "node-20/lib").mkdir()
    script = program(home / "clis/node_modules/cli.js", "#!/usr/bin/env -S node --no-warnings\n")
    assert places(script, home, node.parent) == (
        str(home / "clis/node_modules"),
        str(tmp_path / "node-20"),
    )


def test_a_virtual_environment_is_shown_with_the_python_it_was_made_of(
    home: Path, tmp_path: Path
) -> None:
    base = program(tmp_path / "python/bin/python3").parent
    (tmp_path / "python/lib").mkdir()
    python = program(tmp_path / "project/.venv/bin/pytest")
    (tmp_path / "project/.venv/pyvenv.cfg").write_text(f"home = {base}\nversion = 3.11\n")
    assert places(python, home) == (str(tmp_path / "project/.venv"), str(tmp_path / "python"))


def test_of_a_persons_home_only_the_program_itself_is_shown(home: Path) -> None:
    (home / ".ssh").mkdir()
    (home / "lib").mkdir()
    tool = program(home / "bin/tool")
    assert places(tool, home) == (str(home / "bin"),)
    assert places(program(home / "tool"), home) == (str(home / "tool"),)


def test_a_registry_token_beside_a_toolchain_stays_hidden(home: Path) -> None:
    cargo = program(home / ".cargo/bin/cargo")
    (home / ".cargo/credentials.toml").write_text("token")
    (home / ".rustup").mkdir()
    shown = search_path_places(str(cargo.parent), str(home))
    assert shown == (str(cargo.parent), str(home / ".rustup"))


def test_folders_of_the_search_path_are_shown_as_far_as_their_shape_tells(
    home: Path, tmp_path: Path
) -> None:
    installed = program(tmp_path / "opt/go/bin/go").parent
    (tmp_path / "opt/go/lib").mkdir()
    loose = program(tmp_path / "scripts/deploy").parent
    shims = program(home / ".pyenv/shims/python").parent
    local = program(home / ".local/bin/uv").parent
    (home / ".local/share/keyrings").mkdir(parents=True)
    search = os.pathsep.join(
        map(str, ("/usr/bin", "", "relative", installed, loose, shims, local, tmp_path / "none"))
    )
    assert set(search_path_places(search, str(home))) == {
        str(tmp_path / "opt/go"),
        str(loose),
        str(home / ".pyenv"),
        str(local),
    }


def test_links_in_a_circle_come_to_an_end(home: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "x/one", tmp_path / "x/other"
    one.parent.mkdir()
    one.symlink_to(other)
    other.symlink_to(one)
    assert places(one, home) == (str(tmp_path / "x"),)


def test_scripts_that_name_each_other_come_to_an_end(home: Path, tmp_path: Path) -> None:
    one = program(tmp_path / "x/one", f"#!{tmp_path}/x/other\n")
    program(tmp_path / "x/other", f"#!{tmp_path}/x/one\n")
    assert places(one, home) == (str(tmp_path / "x"),)
