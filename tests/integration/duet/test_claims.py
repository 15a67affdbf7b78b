"""A tmux server is one project's, with the programs it was brought up with, and a project's files choose none of it."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from podium.app.app import Podium
from podium.config.configuration import load_configuration
from podium.core.errors import BadInput, ConfigInvalid, NotPossibleNow
from podium.jobs.duet.claims import as_claimed, claim, let_go
from podium.jobs.duet.models import Pair, PairSide
from podium.jobs.duet.pairs import all_pairs, duet_options, save_pair, saved_pair, socket_path


@pytest.fixture
def root() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(
        prefix="pd", dir="/tmp"
    ) as name:  # a socket's path must be short
        yield Path(name)


def podium(root: Path, project: str = "a", yaml: str = "") -> Podium:
    folder = root / project
    folder.mkdir(exist_ok=True)
    (folder / "podium.yaml").write_text(yaml)
    environ = {"PODIUM_HOME": str(root / "home"), "TMUX_TMPDIR": str(root), "HOME": str(root)}
    return Podium(load_configuration(environ, project=folder), environ)


def pair(root: Path, agent: str = "claude", project: str = "a") -> Pair:
    seat = PairSide(agent=agent, cwd=str(root / project))
    return Pair(planner=seat, executer=seat)


@pytest.fixture
def listening(root: Path) -> Iterator[None]:
    """Somebody has a socket where the server's would be."""
    place = socket_path("poli", {"TMUX_TMPDIR": str(root)})
    place.parent.mkdir(mode=0o700)
    with closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind(str(place))
        yield


@pytest.mark.usefixtures("listening")
def test_another_project_is_refused_while_the_server_is_there(root: Path) -> None:
    claim(podium(root), pair(root))
    claim(podium(root), pair(root))
    with pytest.raises(NotPossibleNow, match="is in use by project"):
        claim(podium(root, "b"), pair(root, project="b"))
    with pytest.raises(NotPossibleNow, match="is in use by project"):
        as_claimed(podium(root, "b"), pair(root, project="b"))


@pytest.mark.usefixtures("listening")
def test_other_programs_are_refused_while_the_server_is_there(root: Path) -> None:
    claim(podium(root), pair(root))
    with pytest.raises(NotPossibleNow, match="up with other programs or folders"):
        claim(podium(root), pair(root, "codex"))
    assert as_claimed(podium(root), pair(root, "codex")) == pair(root)
    let_go(podium(root), pair(root))
    claim(podium(root), pair(root, "codex"))


def test_a_claim_without_its_server_holds_nobody_up(root: Path) -> None:
    claim(podium(root), pair(root))
    claim(podium(root, "b"), pair(root, project="b"))
    assert as_claimed(podium(root, "b"), pair(root, project="b")) == pair(root, project="b")


def test_what_was_brought_up_is_not_kept_in_the_project(root: Path) -> None:
    save_pair(podium(root), pair(root))
    assert saved_pair(podium(root), "main") == pair(root)
    planted = root / "b" / ".podium" / "duet"
    planted.mkdir(parents=True)
    (planted / "main.json").write_text(pair(root).model_dump_json())
    assert saved_pair(podium(root, "b"), "main") is None


def test_two_pairs_on_one_server_are_refused(root: Path) -> None:
    one = podium(root, yaml="flows: {duet: {pairs: {second: {socket: poli}}}}")
    with pytest.raises(BadInput, match="use the same tmux server"):
        all_pairs(one, {})


def test_a_project_names_no_file_as_its_server(root: Path) -> None:
    one = podium(root, yaml="flows: {duet: {pairs: {second: {socket: /etc/passwd}}}}")
    with pytest.raises(ConfigInvalid, match="socket"):
        duet_options(one)
    for name in (".", "..", "a b", "-x"):
        with pytest.raises(BadInput, match="cannot be the name of a tmux server"):
            socket_path(name, {})
