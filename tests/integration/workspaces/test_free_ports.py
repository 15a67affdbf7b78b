"""Ports of workspaces: free, and each somebody's own."""

from __future__ import annotations

import socket

import pytest

from podium.core.errors import BadInput, NotPossibleNow
from podium.git import set_up
from podium.git.set_up import PORTS, check_names, held_ports


def test_every_name_gets_a_port_that_a_server_can_take() -> None:
    with held_ports(("WEB_PORT", "DB_PORT"), taken=()) as found:
        pass
    assert set(found) == {"WEB_PORT", "DB_PORT"}
    assert len(set(found.values())) == 2
    for port in found.values():
        with socket.create_server(("127.0.0.1", port)):
            assert port in PORTS


def test_who_looks_at_the_same_time_gets_others(monkeypatch: pytest.MonkeyPatch) -> None:
    with held_ports(("A",), taken=()) as first:
        only = range(first["A"], first["A"] + 1)
        # So narrow a range shows that a held port is not given a second time.
        monkeypatch.setattr(set_up, "PORTS", only)
        with pytest.raises(NotPossibleNow, match="no free port"), held_ports(("B",), taken=()):
            pass
    with held_ports(("B",), taken=()) as second:
        assert second["B"] == first["A"]


def test_the_port_of_another_workspace_is_not_given_although_nobody_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with held_ports(("A",), taken=()) as first:
        port = first["A"]
    monkeypatch.setattr(set_up, "PORTS", range(port, port + 1))
    with pytest.raises(NotPossibleNow), held_ports(("B",), taken={port}):
        pass


def test_a_port_with_a_server_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with held_ports(("A",), taken=()) as first:
        port = first["A"]
    monkeypatch.setattr(set_up, "PORTS", range(port, port + 1))
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(NotPossibleNow),
        held_ports(("B",), taken=()),
    ):
        pass


@pytest.mark.parametrize(
    "name", ["", "web", "1A", "A-B", "PATH", "LD_PRELOAD", "GIT_DIR", "HOME", "A\n"]
)
def test_a_name_that_is_no_variable_for_a_port_is_refused(name: str) -> None:
    with pytest.raises(BadInput):
        check_names((name,))


def test_a_name_that_comes_twice_is_refused() -> None:
    with pytest.raises(BadInput, match="its own variable"):
        check_names(("A", "A"))
