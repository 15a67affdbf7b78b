"""The proxy and the forwarded ports of a confined tree, on sockets of this process's own."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from podium.core.processes import Confinement
from podium.sandbox.confining.preparation import PROXY_PORTS, ports_inside, proxy_port
from podium.sandbox.confining.proxy import TreeNetwork
from podium.sandbox.confining.upstream import (
    Destination,
    UpstreamProxy,
    is_listed,
    may_be_dialled,
    read_destination,
)


def listener() -> socket.socket:
    opened = socket.socket()
    opened.bind(("127.0.0.1", 0))
    opened.listen(16)
    return opened


@asynccontextmanager
async def tree_network(
    *hosts: str, upstream: UpstreamProxy | None = None
) -> AsyncIterator[tuple[TreeNetwork, int]]:
    network, inside = TreeNetwork(hosts, upstream), listener()
    network.serve_proxy(inside)
    try:
        yield network, inside.getsockname()[1]
    finally:
        await network.closed()


@asynccontextmanager
async def server(answer: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A host that answers whatever it hears once, and keeps what it heard."""
    messages: list[bytes] = []

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        messages.append(await reader.read(65536))
        writer.write(answer)
        writer.close()

    serving = await asyncio.start_server(met, "127.0.0.1", 0)
    async with serving:
        yield serving.sockets[0].getsockname()[1], messages


async def ask(port: int, request: bytes) -> bytes:
    async with asyncio.timeout(120):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        return answer


@pytest.mark.parametrize(
    ("wanted", "listed", "may"),
    [
        ("pypi.org:443", "pypi.org", True),
        ("PyPI.org.:443", "pypi.org", True),
        ("pypi.org:80", "pypi.org", True),
        ("pypi.org:22", "pypi.org", False),
        ("pypi.org:8443", "pypi.org:8443", True),
        ("pypi.org:443", "pypi.org:8443", False),
        ("files.pypi.org:443", "pypi.org", False),
        ("files.pypi.org:443", "*.pypi.org", True),
        ("pypi.org:443", "*.pypi.org", False),
        ("evilpypi.org:443", "*.pypi.org", False),
        ("pypi.org.evil.example:443", "pypi.org", False),
        ("[::1]:443", "[::1]", True),
        ("[::1]:9000", "[::1]:9000", True),
        ("x.example:443", "", False),
        ("x.example:443", "*", False),
    ],
)
def test_a_host_is_reached_only_as_it_is_listed(wanted: str, listed: str, may: bool) -> None:
    destination = read_destination(wanted)
    assert destination is not None
    assert is_listed(destination, [listed]) is may


@pytest.mark.parametrize(
    "text",
    ["", "host", "host:", ":443", "host:0", "host:65536", "host:٣", "ho st:1", "hö:1", "h\n:1"],
)
def test_what_is_no_host_and_port_is_no_destination(text: str) -> None:
    assert read_destination(text) is None


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "169.254.169.254",
        "::ffff:127.0.0.1",
        "0.0.0.0",
        "fe80::1%eth0",
        "224.0.0.1",
        "fd00:ec2::254",
        "100.100.100.200",
        "::ffff:100.100.100.200",
        "64:ff9b::7f00:1",
        "64:ff9b::169.254.169.254",
        "::127.0.0.1",
        "::ffff:0:127.0.0.1",
        "2002:7f00:1::1",
        "2002:a9fe:a9fe::1",
        "2001:0:808:808::80ff:fffe",
        "2001:0:7f00:1::f7f7:f7f7",
    ],
)
def test_a_listed_name_never_leads_to_this_machine(address: str) -> None:
    assert not may_be_dialled(address, Destination("innocent.example", 443))


def test_an_address_that_is_listed_itself_may_be_dialled() -> None:
    assert may_be_dialled("127.0.0.1", Destination("127.0.0.1", 443))
    assert may_be_dialled("fd00:ec2::254", Destination("fd00:ec2::254", 80))


@pytest.mark.parametrize("address", ["10.1.2.3", "fd00::7", "64:ff9b::808:808", "2002:808:808::1"])
def test_a_listed_name_may_lead_anywhere_else(address: str) -> None:
    assert may_be_dialled(address, Destination("index.intern.example", 443))


def test_the_proxy_has_a_port_however_many_are_forwarded() -> None:
    confinement = Confinement(network="listed", forwarded_ports=(*PROXY_PORTS, 1_024))
    assert proxy_port(confinement) == 1_025
    assert len(set(ports_inside(confinement))) == 6


async def test_a_listed_host_is_connected_to() -> None:
    async with server(b"pong") as (port, requests), tree_network(f"127.0.0.1:{port}") as (_, proxy):
        answer = await ask(proxy, f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nping".encode())
    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\npong"
    assert requests == [b"ping"]


async def test_a_host_that_is_not_listed_is_refused_with_words_and_remembered() -> None:
    async with server(b"pong") as (port, requests), tree_network("pypi.org") as (network, proxy):
        answer = await ask(proxy, f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nping".encode())
    assert answer.startswith(b"HTTP/1.1 403 Forbidden")
    assert b"Permission Denied: 127.0.0.1" in answer
    assert b"pypi.org" in answer
    assert network.refused_hosts == (f"127.0.0.1:{port}",)
    assert requests == []


async def test_a_plain_request_goes_to_the_host_it_names_whatever_its_headers_say() -> None:
    async with (
        server(b"HTTP/1.1 204 No Content\r\n\r\n") as (port, requests),
        tree_network(f"127.0.0.1:{port}") as (_, proxy),
    ):
        request = (
            f"GET http://user@127.0.0.1:{port}/a?b=c HTTP/1.1\r\nHost: other.example\r\n"
            "Proxy-Authorization: Basic eA==\r\nConnection: keep-alive\r\nAccept: */*\r\n\r\n"
        )
        answer = await ask(proxy, request.encode())
    assert answer == b"HTTP/1.1 204 No Content\r\n\r\n"
    head = requests[0].decode().split("\r\n")
    assert head[0] == "GET /a?b=c HTTP/1.1"
    assert f"Host: 127.0.0.1:{port}" in head
    assert "Connection: close" in head
    assert not any("other.example" in line or "Proxy" in line for line in head)


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET ftp://h/ HTTP/1.1\r\n\r\n",
        b"CONNECT h HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\n\r\n",
        b"GET http://h/ HTTP/1.1\r\nA: b\nHost: evil\r\n\r\n",
        b"GET http://h/ HTTP/1.1\r\nA: b\rProxy-Authorization: x\r\n\r\n",
        b"GET http://h/ HTTP/1.1\r\nA: b\r\n Host: evil\r\n\r\n",
        b"GET http://h/ HTTP/1.1\r\nHost : evil\r\n\r\n",
        b"GET http://h/ HTTP/1.1\r\nno header\r\n\r\n",
        b"GET http://h/\nHost:evil HTTP/1.1\r\n\r\n",
        b"POST http://h/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST http://h/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST http://h/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"POST http://h/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
    ],
)
async def test_what_no_proxy_understands_is_answered_and_goes_nowhere(request_: bytes) -> None:
    async with tree_network("h") as (network, proxy):
        answer = await ask(proxy, request_)
    assert answer.startswith(b"HTTP/1.1 400 Bad Request")
    assert network.refused_hosts == ()


@pytest.mark.parametrize(
    ("declared", "sent", "passed_on"),
    [
        (b"Accept: */*", b"", b""),
        (b"Content-Length: 4", b"body", b"body"),
        (
            b"Transfer-Encoding: chunked",
            b"2;x=y\r\nbo\r\n2\r\ndy\r\n0\r\nHost: evil\r\n\r\n",
            b"2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n",
        ),
    ],
)
async def test_nothing_behind_the_declared_body_goes_out(
    declared: bytes, sent: bytes, passed_on: bytes
) -> None:
    output = bytearray()

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        output.extend(await reader.read(-1))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(met, "127.0.0.1", 0) as serving, asyncio.timeout(120):
        port = serving.sockets[0].getsockname()[1]
        async with tree_network(f"127.0.0.1:{port}") as (_, proxy):
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy)
            head = b"POST http://127.0.0.1:%d/ HTTP/1.1\r\n%s\r\n\r\n" % (port, declared)
            writer.write(head + sent + b"GET / HTTP/1.1\r\nHost: evil\r\n\r\n")
            writer.write_eof()
            assert (await reader.read()).startswith(b"HTTP/1.1 204")
            writer.close()
    assert output.endswith(b"Connection: close\r\n\r\n" + passed_on)
    assert b"evil" not in output


async def test_a_body_in_broken_chunks_ends_the_connection() -> None:
    async with server(b"pong") as (port, _), tree_network(f"127.0.0.1:{port}") as (_, proxy):
        head = f"POST http://127.0.0.1:{port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = await ask(proxy, head.encode() + b"-1\r\n" + b"x" * 10)
    assert answer in (b"", b"pong")


async def test_a_head_without_end_is_not_read_for_ever() -> None:
    async with tree_network("h") as (_, proxy):
        answer = await ask(proxy, b"GET http://h/ HTTP/1.1\r\n" + b"x: y\r\n" * 20_000)
    assert not answer or answer.startswith(b"HTTP/1.1 400")


async def test_a_listed_host_that_is_not_there_is_a_bad_gateway() -> None:
    free = listener()
    port = free.getsockname()[1]
    free.close()
    async with tree_network(f"127.0.0.1:{port}") as (_, proxy):
        answer = await ask(proxy, f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 502 Bad Gateway")


async def test_a_forwarded_port_leads_to_the_same_port_outside() -> None:
    async with server(b"model") as (port, requests):
        network, inside = TreeNetwork(()), listener()
        network.forward({port: inside})
        answer = await ask(inside.getsockname()[1], b"hello")
        await network.closed()
    assert (answer, requests) == (b"model", [b"hello"])


async def test_closing_ends_connections_that_are_open() -> None:
    output, ended = asyncio.Event(), asyncio.Event()

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        output.set()
        await reader.read()
        ended.set()
        writer.close()

    serving = await asyncio.start_server(met, "127.0.0.1", 0)
    port = serving.sockets[0].getsockname()[1]
    network, inside = TreeNetwork(()), listener()
    network.forward({port: inside})
    reader, writer = await asyncio.open_connection("127.0.0.1", inside.getsockname()[1])
    writer.write(b"x")
    async with asyncio.timeout(120):
        await output.wait()
        await network.closed()
        assert await reader.read() == b""
        await ended.wait()
    writer.close()
    serving.close()


async def test_this_machines_own_proxy_is_gone_through_where_there_is_one() -> None:
    async with server(b"HTTP/1.1 200 fine\r\n\r\nmodel") as (own, requests):
        upstream = UpstreamProxy.of({"HTTPS_PROXY": f"http://me:p%40ss@127.0.0.1:{own}"})
        async with tree_network("model.example", upstream=upstream) as (_, proxy):
            answer = await ask(proxy, b"CONNECT model.example:443 HTTP/1.1\r\n\r\n")
    assert answer.endswith(b"model")
    assert requests[0].startswith(b"CONNECT model.example:443 HTTP/1.1\r\n")
    assert base64.b64encode(b"me:p@ss") in requests[0]


async def test_this_machines_own_proxy_may_say_no() -> None:
    async with server(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n") as (own, _):
        upstream = UpstreamProxy.of({"https_proxy": f"127.0.0.1:{own}"})
        async with tree_network("model.example", upstream=upstream) as (_, proxy):
            answer = await ask(proxy, b"CONNECT model.example:443 HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 502")
    assert b"407" in answer


async def test_hosts_that_go_without_the_machines_proxy_are_dialled_straight() -> None:
    upstream = UpstreamProxy.of(
        {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "intern.example, 127.0.0.1"}
    )
    async with (
        server(b"straight") as (port, _),
        tree_network(f"127.0.0.1:{port}", upstream=upstream) as (_, proxy),
    ):
        answer = await ask(proxy, f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nx".encode())
    assert answer.endswith(b"straight")
