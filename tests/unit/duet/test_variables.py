"""Files of variables and the pairs that come of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podium.app.app import Podium
from podium.config.configuration import load_configuration
from podium.core.errors import BadInput, ConfigInvalid
from podium.jobs.duet.commands.pair_options import MAX_BYTES, read_env_file
from podium.jobs.duet.pairs import PairRequest, all_pairs, duet_limits, pair_named, socket_path

KNOWN = {"HOME": "/home/ann", "X": "x"}


def read(tmp_path: Path, text: str) -> dict[str, str]:
    file = tmp_path / "poli.env"
    file.write_text(text)
    return read_env_file(file, KNOWN)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('export A="$HOME/proj"', "/home/ann/proj"),
        ("A=${HOME}/proj", "/home/ann/proj"),
        ("A='$HOME/proj'", "$HOME/proj"),
        ("A=plain # a remark", "plain"),
        ('A="two words" # a remark', "two words"),
        ('A="a \\"quoted\\" \\$HOME"', 'a "quoted" $HOME'),
        ("A=", ""),
        ('A=""', ""),
        ("  export   A=1", "1"),
        ("A=$UNKNOWN/x", "/x"),
        ("A=claude\\ code", "claude code"),
    ],
)
def test_a_line_is_read_as_a_shell_would(tmp_path: Path, line: str, value: str) -> None:
    assert read(tmp_path, line) == {"A": value}


def test_later_lines_see_earlier_ones(tmp_path: Path) -> None:
    text = '# who\nexport ROOT="$HOME/w"\n\nexport PLANNER_CWD="$ROOT/a"\n'
    assert read(tmp_path, text) == {"ROOT": "/home/ann/w", "PLANNER_CWD": "/home/ann/w/a"}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("A=$(rm -rf x)", "would run a command"),
        ("A=`id`", "would run a command"),
        ('A="`id`"', "would run a command"),
        ("rm -rf x", "is not a setting"),
        ('A="open', "does not end"),
        ("A='open", "does not end"),
        ("A=one two", "several words"),
        ("1A=x", "is not a setting"),
    ],
)
def test_invalid_setting_is_reported_with_its_line(tmp_path: Path, line: str, problem: str) -> None:
    with pytest.raises(ConfigInvalid, match=problem) as error:
        read(tmp_path, f"OK=1\n{line}\n")
    assert "poli.env:2:" in str(error.value)


def test_unreadable_or_too_large_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        read_env_file(tmp_path / "missing", KNOWN)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="does not exist"):
        read_env_file(tmp_path / "pipe", KNOWN)
    large = tmp_path / "large"
    large.write_text("#" * (MAX_BYTES + 1))
    with pytest.raises(BadInput, match="is larger than"):
        read_env_file(large, KNOWN)


def podium(tmp_path: Path, yaml: str = "") -> Podium:
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    (project / "podium.yaml").write_text(yaml)
    environ = {"PODIUM_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PATH": "/usr/bin"}
    return Podium(load_configuration(environ, project=project), environ)


def test_without_a_word_claude_plans_and_codex_executes_in_the_project(tmp_path: Path) -> None:
    found = pair_named(podium(tmp_path), "main", PairRequest(), {})
    assert (found.planner.agent, found.executer.agent) == ("claude", "codex")
    assert found.planner.cwd == found.executer.cwd == str((tmp_path / "project").resolve())
    assert (found.socket, found.session, found.transport) == ("poli", "main", "tui")


def test_options_go_before_variables_and_those_before_the_file(tmp_path: Path) -> None:
    one = podium(tmp_path, "flows: {duet: {planner: gemini, executer: gemini}}")
    assert pair_named(one, "main", PairRequest(), {}).planner.agent == "gemini"
    variables = {"PLANNER_CMD": "codex", "POLI_TMUX_SOCKET": "mine", "POLI_TMUX_SESSION": "s"}
    output = pair_named(one, "main", PairRequest(), variables)
    assert (output.planner.agent, output.socket, output.session) == ("codex", "mine", "s")
    wished = pair_named(one, "main", PairRequest(planner="claude", socket="x"), variables)
    assert (wished.planner.agent, wished.socket) == ("claude", "x")


def test_a_command_is_known_by_its_program(tmp_path: Path) -> None:
    variables = {"PLANNER_CMD": "/opt/bin/claude --model opus", "EXECUTER_CMD": "my-tui 'a b'"}
    found = pair_named(podium(tmp_path), "main", PairRequest(), variables)
    assert (found.planner.agent, found.planner.command) == (
        "claude",
        ("/opt/bin/claude", "--model", "opus"),
    )
    assert (found.executer.agent, found.executer.command) == ("generic", ("my-tui", "a b"))


def test_every_side_may_have_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    variables = {"PLANNER_CWD": str(tmp_path / "a"), "EXECUTER_CWD": str(tmp_path / "b")}
    found = pair_named(podium(tmp_path), "main", PairRequest(), variables)
    assert (found.planner.cwd, found.executer.cwd) == (str(tmp_path / "a"), str(tmp_path / "b"))
    with pytest.raises(BadInput, match="the folder of EXECUTER"):
        pair_named(
            podium(tmp_path), "main", PairRequest(executer_cwd=str(tmp_path / "c")), variables
        )


def test_times_come_from_variables_and_nonsense_is_reported(tmp_path: Path) -> None:
    one = podium(tmp_path)
    limits = duet_limits(one, {"POLI_PLAN_TIMEOUT": "12", "POLI_EXEC_TIMEOUT": "34.5"})
    assert (limits.plan_seconds, limits.result_seconds) == (12, 34.5)
    for bad in ("soon", "0", "-1", "inf", "nan"):
        with pytest.raises(BadInput, match="POLI_PLAN_TIMEOUT"):
            duet_limits(one, {"POLI_PLAN_TIMEOUT": bad})


def test_further_pairs_have_sockets_of_their_own(tmp_path: Path) -> None:
    one = podium(tmp_path, "flows: {duet: {pairs: {second: {planner: gemini}}}}")
    main, second = all_pairs(one, {"PLANNER_CMD": "codex"})
    assert (main.planner.agent, main.socket) == ("codex", "poli")
    assert (second.planner.agent, second.executer.agent, second.socket) == (
        "gemini",
        "codex",
        "poli-second",
    )


def test_a_socket_lies_where_tmux_itself_looks_for_its_name() -> None:
    found = socket_path("poli", {"TMUX_TMPDIR": "/run/me"})
    assert found.parent.parent == Path("/run/me")
    assert found.name == "poli"
    assert socket_path("/x/y", {}) == Path("/x/y")
