"""Files and hosts besides its workspace that an agent's program may reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.agents.program import Needs, with_needs
from podium.core.errors import BadInput
from podium.core.processes import Confinement, Mount

FENCE = Confinement(
    kind="kernel",
    mounts=(Mount(source="/w", target="/w", writable=True),),
    network="model-only",
    hosts=("index.example",),
)


def test_an_unfenced_agent_stays_unfenced() -> None:
    needs = Needs(writable=(Path("/home/x"),), hosts=("api.example",))
    assert with_needs(Confinement(), needs) == Confinement()


def test_the_home_is_writable_and_what_is_only_read_is_not() -> None:
    found = with_needs(FENCE, Needs(writable=(Path("/h"),), readable=(Path("/r"),)))
    assert [(mount.target, mount.writable) for mount in found.mounts] == [
        ("/w", True),
        ("/r", False),
        ("/h", True),
    ]


def test_with_model_only_the_model_is_all_that_is_reached() -> None:
    found = with_needs(FENCE, Needs(hosts=("api.example",)))
    assert (found.hosts, found.forwarded_ports) == (("api.example",), ())


def test_with_listed_hosts_the_model_is_reached_too() -> None:
    listed = FENCE.model_copy(update={"network": "listed"})
    assert with_needs(listed, Needs(hosts=("api.example",))).hosts == (
        "index.example",
        "api.example",
    )


@pytest.mark.parametrize(
    ("address", "hosts", "ports"),
    [
        ("https://models.example/v1", ("models.example:443",), ()),
        ("http://models.example:8080", ("models.example:8080",), ()),
        ("http://127.0.0.1:4000/v1", (), (4000,)),
        ("http://localhost:4000", (), (4000,)),
        ("http://[::1]:4000", (), (4000,)),
        ("https://[2001:db8::1]", ("[2001:db8::1]:443",), ()),
    ],
)
def test_an_address_that_is_set_is_what_is_reached(
    address: str, hosts: tuple[str, ...], ports: tuple[int, ...]
) -> None:
    found = with_needs(FENCE, Needs(hosts=("api.example",), base_url=address))
    assert (found.hosts, found.forwarded_ports) == (hosts, ports)


@pytest.mark.parametrize(
    "address", ["models.example", "http://", "http://h:x", "ftp://h", "http://[x"]
)
def test_address_without_a_host_is_reported_as_such(address: str) -> None:
    with pytest.raises(BadInput, match="has no host"):
        with_needs(FENCE, Needs(base_url=address))


def test_no_network_at_all_is_no_place_for_an_agent() -> None:
    with pytest.raises(BadInput, match="model-only"):
        with_needs(FENCE.model_copy(update={"network": "none"}), Needs(hosts=("api.example",)))
