"""Folders of programs that a confined tree is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.sandbox.installations import places, program


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


def test_a_program_of_the_system_needs_nothing_more(home: Path) -> None:
    assert places("/usr/bin/env", home, Path("/usr/bin")) == ()


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
        str(tmp_path / "node-20/bin"),
        str(tmp_path / "node-20/lib"),
        str(home / "clis/node_modules"),
    )


def test_a_virtual_environment_is_shown_with_the_python_it_was_made_of(
    home: Path, tmp_path: Path
) -> None:
    base = program(tmp_path / "python/bin/python3").parent
    (tmp_path / "python/lib").mkdir()
    venv = tmp_path / "project/.venv"
    python = program(venv / "bin/pytest")
    (venv / "pyvenv.cfg").write_text(f"home = {base}\nversion = 3.11\n")
    assert places(python, home) == (
        *(str(venv / "bin"), str(venv / "pyvenv.cfg")),
        *(str(base), str(tmp_path / "python/lib")),
    )


def test_of_a_persons_home_only_the_program_itself_is_shown(home: Path) -> None:
    (home / ".ssh").mkdir()
    (home / "lib").mkdir()
    tool = program(home / "bin/tool")
    assert places(tool, home) == (str(home / "bin"),)
    assert places(program(home / "tool"), home) == (str(home / "tool"),)


def test_a_registry_token_beside_a_toolchain_stays_hidden(home: Path) -> None:
    cargo = program(home / ".cargo/bin/cargo")
    (home / ".cargo/credentials.toml").write_text("token")
    rustc = program(home / ".rustup/toolchains/stable/bin/rustc")
    assert places("", home, cargo.parent) == (str(cargo.parent), str(rustc.parent))


def test_search_path_folders_are_shown_as_far_as_their_shape_reveals(
    home: Path, tmp_path: Path
) -> None:
    installed = program(tmp_path / "opt/go/bin/go").parent
    (tmp_path / "opt/go/lib").mkdir()
    loose = program(tmp_path / "scripts/deploy").parent
    shims = program(home / ".pyenv/shims/python").parent
    local = program(home / ".local/bin/uv").parent
    (home / ".local/share/keyrings").mkdir(parents=True)
    search = (Path("/usr/bin"), Path("relative"), installed, loose, shims, local, tmp_path / "none")
    assert set(places("", home, *search)) == {
        str(tmp_path / "opt/go/bin"),
        str(tmp_path / "opt/go/lib"),
        str(loose),
        str(shims),
        str(local),
    }


def test_links_in_a_circle_come_to_an_end(home: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "x/one", tmp_path / "x/other"
    one.parent.mkdir()
    one.symlink_to(other)
    other.symlink_to(one)
    assert places(one, home) == (str(tmp_path / "x"),)


def test_scripts_that_name_one_another_come_to_an_end(home: Path, tmp_path: Path) -> None:
    one = program(tmp_path / "x/one", f"#!{tmp_path}/x/other\n")
    program(tmp_path / "x/other", f"#!{tmp_path}/x/one\n")
    assert places(one, home) == (str(tmp_path / "x"),)


@pytest.mark.parametrize(
    "spelled",
    ["{home}", "{home}/../home", "/{home}", "{home}/.local/..", "{link}", "/", "{parent}"],
)
def test_no_spelling_of_the_search_path_shows_the_home(
    spelled: str, home: Path, tmp_path: Path
) -> None:
    (home / ".local").mkdir()
    link = tmp_path / "link"
    link.symlink_to(home)
    entry = spelled.format(home=home, link=link, parent=tmp_path)
    assert places("", home, Path(entry)) == ()


def test_a_home_that_looks_like_an_installation_is_none(home: Path, tmp_path: Path) -> None:
    (home / "lib").mkdir()
    (home / "pyvenv.cfg").write_text(f"home = {home}/.ssh\n")
    link = tmp_path / "link"
    link.symlink_to(home)
    tool = program(home / "bin/tool")
    config = str(home / "pyvenv.cfg")
    assert places("", home, tool.parent) == (str(tool.parent), config)
    assert places("", home, link / "bin") == (str(link / "bin"), str(link / "pyvenv.cfg"))


def test_keys_on_the_search_path_are_no_programs(home: Path) -> None:
    (home / ".ssh").mkdir()
    assert places("", home, home / ".ssh") == ()


def test_nothing_that_the_tree_can_write_is_gone_by(home: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (home / ".ssh").mkdir()
    script = program(work / "start", f"#!{work}/env {home}/.ssh\n")
    program(work / "env", f"#!{home}/.ssh/x\n")
    link = work / "link"
    link.symlink_to(home / ".ssh")
    venv = program(work / ".venv/bin/python")
    (work / ".venv/pyvenv.cfg").write_text(f"home = {home}/.ssh\n")
    for path in (script, link, venv):
        assert places(path, home, venv.parent, untrusted=work) == ()


def test_a_virtual_environment_names_no_folder_but_one_of_an_interpreter(
    home: Path, tmp_path: Path
) -> None:
    (home / ".ssh").mkdir()
    python = program(tmp_path / "v/bin/python")
    (tmp_path / "v/pyvenv.cfg").write_text(f"home = {home}/.ssh\n")
    assert places(python, home) == (str(python.parent), str(tmp_path / "v/pyvenv.cfg"))


def test_what_is_closed_is_shown_by_no_way(home: Path, tmp_path: Path) -> None:
    state = tmp_path / "tools/bin/state"
    state.mkdir(parents=True)
    program(tmp_path / "tools/bin/run")
    assert places(state / "key", home, state.parent, closed=state) == ()
