"""The typed API itself: who may come in, and what is refused."""

from __future__ import annotations

import os
import socket as socket_module
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc import aio

from podium import rpc
from podium.core.errors import AgentLost, BadInput, LockHeld, NotPossibleNow, PodiumError
from podium.core.terminals import KeysPressed, Terminal
from podium.rpc import Certificates, Greeting, reach, reach_tls, serve, serve_tls
from podium.rpc.generated import podium_pb2 as pb
from podium.rpc.generated.podium_pb2_grpc import TerminalsServicer, TerminalsStub
from podium.rpc.messages import MAX_PICTURE_CHARACTERS
from podium.testing import MemoryTerminals
from tests.integration.rpc.certificates import authority, certificates

if TYPE_CHECKING:
    from podium.rpc.generated.podium_pb2_grpc import TerminalsAsyncStub

PLANNER = Terminal(side="PLANNER")


@pytest.fixture
def socket() -> Iterator[Path]:
    with TemporaryDirectory(prefix="p") as folder:
        yield Path(folder) / "api"


@pytest.fixture
async def stub(socket: Path) -> AsyncIterator[TerminalsAsyncStub]:
    """A client that can say what ours cannot."""
    local = grpc.local_channel_credentials(grpc.LocalConnectionType.UDS)
    async with (
        serve(MemoryTerminals(), socket),
        aio.secure_channel(f"unix:{socket}", local) as channel,
    ):
        yield TerminalsStub(channel)


def test_what_was_generated_is_of_todays_proto(tmp_path: Path) -> None:
    folder = Path(rpc.__file__).parent
    described = tmp_path / "described"

    subprocess.run(
        [
            *(sys.executable, "-m", "grpc_tools.protoc"),
            f"--proto_path=podium/rpc/generated={folder}",
            f"--descriptor_set_out={described}",
            "podium/rpc/generated/podium.proto",
        ],
        check=True,
    )

    (today,) = FileDescriptorSet.FromString(described.read_bytes()).file
    for message in today.message_type:
        for field in message.field:
            field.ClearField("json_name")
    assert FileDescriptorProto.FromString(pb.DESCRIPTOR.serialized_pb) == today, (
        "run scripts/protos"
    )
    methods = pb.DESCRIPTOR.services_by_name["Terminals"].methods_by_name
    assert all(hasattr(TerminalsServicer, name) for name in methods)


async def test_nobody_but_its_user_can_reach_the_socket(socket: Path) -> None:
    async with serve(MemoryTerminals(), socket):
        assert stat.S_IMODE(socket.stat().st_mode) == 0o600
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
        if os.geteuid() != 0:
            pytest.skip("only root can try as another user")
        os.seteuid(65534)
        try:
            with pytest.raises(PermissionError), unix_socket() as other:
                other.connect(str(socket))
        finally:
            os.seteuid(0)


async def test_words_too_long_for_an_answer_are_cut(socket: Path) -> None:
    behind = MemoryTerminals()
    behind.next_error = NotPossibleNow("漢\ud800" * 5000)

    async with serve(behind, socket), reach(socket) as terminals:
        with pytest.raises(NotPossibleNow, match=r"^(漢\?)+漢?$"):
            await terminals.start("main")


FORKING = """
import asyncio, os, subprocess, sys
from pathlib import Path
from podium.rpc import reach, serve
from podium.testing import MemoryTerminals

async def main(socket):
    async with serve(MemoryTerminals(), socket), reach(socket) as terminals:
        for _ in range(5):
            await terminals.start("main")
            # With a user Python forks by itself, which is what gRPC would speak of.
            subprocess.run(["true"], check=True, user=os.geteuid())

asyncio.run(main(Path(sys.argv[1])))
"""


def test_processes_start_beside_a_server_without_a_word_of_grpc(socket: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKING, str(socket)], capture_output=True, text=True, check=True
    )

    assert done.stderr == ""


def unix_socket() -> socket_module.socket:
    return socket_module.socket(socket_module.AF_UNIX)


async def test_a_folder_that_others_can_reach_into_is_refused(socket: Path) -> None:
    socket.parent.chmod(0o755)

    with pytest.raises(BadInput, match="accessible to other users; `chmod 700` it"):
        async with serve(MemoryTerminals(), socket):
            pass

    assert not socket.exists()


async def test_a_socket_has_one_server_and_leaves_none_behind(socket: Path) -> None:
    async with serve(MemoryTerminals(), socket):
        with pytest.raises(LockHeld, match="another Podium is listening"):
            async with serve(MemoryTerminals(), socket):
                pass
        async with reach(socket) as terminals:
            assert len(await terminals.start("main")) == 2

    assert not socket.exists()
    with pytest.raises(AgentLost, match="no Podium is listening on"):
        async with reach(socket):
            pass


async def test_what_a_killed_server_left_is_no_hindrance(socket: Path) -> None:
    socket.touch()

    async with serve(MemoryTerminals(), socket), reach(socket) as terminals:
        assert len(await terminals.start("main")) == 2


async def test_server_that_is_gone_is_reported_in_words(socket: Path) -> None:
    async with serve(MemoryTerminals(), socket):
        async with reach(socket) as terminals:
            await terminals.start("main")
            socket.rename(socket.with_name("elsewhere"))
        socket.with_name("elsewhere").rename(socket)
    socket.touch()

    async with reach(socket) as terminals:
        with pytest.raises(AgentLost, match="did not answer"):
            await terminals.start("main")


async def test_who_answers_says_so_before_anything_is_asked(socket: Path) -> None:
    greeting = Greeting(version="9.9", settings="of its own")
    async with serve(MemoryTerminals(), socket, greeting), reach(socket) as terminals:
        assert await terminals.hello() == greeting


async def test_a_server_that_knows_no_greeting_is_of_another_version(socket: Path) -> None:
    server = aio.server()
    socket.parent.chmod(0o700)
    server.add_secure_port(
        f"unix:{socket}", grpc.local_server_credentials(grpc.LocalConnectionType.UDS)
    )
    await server.start()
    try:
        async with reach(socket) as terminals:
            with pytest.raises(NotPossibleNow, match="runs a version that does not support this"):
                await terminals.hello()
    finally:
        await server.stop(None)


async def test_oversized_content_for_a_message_is_reported_with_what_to_do(socket: Path) -> None:
    keys = ("漢" * 10_000,) * 200
    pressed = KeysPressed.model_construct(terminal=PLANNER, keys=keys, who="")
    async with serve(MemoryTerminals(), socket), reach(socket) as terminals:
        with pytest.raises(NotPossibleNow, match=r"is overloaded: .* send smaller requests"):
            await terminals.send_keys(pressed)
        assert len(await terminals.start("main")) == 2, "it went away"


async def test_a_path_too_long_for_a_socket_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="choose a shorter folder"):
        async with serve(MemoryTerminals(), tmp_path / ("x" * 100)):
            pass


async def test_socket_of_somebody_else_is_not_sent_any_keys(socket: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    socket.touch()
    os.chown(socket, 65534, 65534)

    with pytest.raises(BadInput, match="belongs to another user"):
        async with reach(socket):
            pass


@pytest.mark.parametrize(
    "request_",
    [
        pb.SendKeysRequest(keys=["x"]),
        pb.SendKeysRequest(terminal=pb.Terminal(side=pb.SIDE_PLANNER)),
        pb.SendKeysRequest(terminal=pb.Terminal(side=pb.SIDE_PLANNER), keys=[""]),
        pb.SendKeysRequest(terminal=pb.Terminal(side=pb.SIDE_PLANNER), keys=["x"] * 1001),
        pb.SendKeysRequest(terminal=pb.Terminal(side=pb.SIDE_PLANNER), keys=["x" * 10_001]),
        pb.SendKeysRequest(terminal=pb.Terminal(side=pb.SIDE_PLANNER), keys=["x" * 10_000] * 51),
        pb.SendKeysRequest(terminal=pb.Terminal(side=pb.SIDE_PLANNER, pair="../x"), keys=["x"]),
        pb.SendKeysRequest(terminal=pb.Terminal.FromString(b"\x10\x07"), keys=["x"]),
    ],
)
async def test_keys_that_cannot_be_meant_are_refused(
    stub: TerminalsAsyncStub, request_: pb.SendKeysRequest
) -> None:
    with pytest.raises(aio.AioRpcError) as raised:
        await stub.SendKeys(request_)

    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(("columns", "rows"), [(0, 0), (-1, 50), (100_000, 50), (80, 1)])
async def test_a_size_that_no_terminal_has_is_refused(
    stub: TerminalsAsyncStub, columns: int, rows: int
) -> None:
    with pytest.raises(aio.AioRpcError) as raised:
        await stub.Resize(pb.ResizeRequest(columns=columns, rows=rows))

    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "correct the request" in (raised.value.details() or "")


async def test_an_empty_name_means_the_first_pair(stub: TerminalsAsyncStub) -> None:
    output = await stub.StartTui(pb.StartTuiRequest())

    assert [state.terminal.pair for state in output.states] == ["main", "main"]


async def test_of_a_picture_too_large_to_be_sent_the_end_is(socket: Path) -> None:
    behind = MemoryTerminals()
    await behind.start("main")
    behind.lines["PLANNER"] = ["漢" * 999, "half \ud800"] * 2000

    async with serve(behind, socket), reach(socket) as terminals:
        picture = await terminals.capture(PLANNER, whole=True)

    assert picture.lines[-1] == "half ?"
    assert picture.left_out + len(picture.lines) == 4000
    assert sum(map(len, picture.lines)) <= MAX_PICTURE_CHARACTERS


async def test_between_machines_both_ends_must_show_certificates(tmp_path: Path) -> None:
    ours, theirs = authority(tmp_path / "ours"), authority(tmp_path / "theirs")
    server = certificates(ours, "server")
    stranger = certificates(theirs, "stranger", trusted=ours)

    async with serve_tls(MemoryTerminals(), "127.0.0.1", 0, server) as port:
        async with reach_tls("127.0.0.1", port, stranger) as terminals:
            with pytest.raises(AgentLost):
                await terminals.start("main")
        for credentials in (None, grpc.ssl_channel_credentials(ours.read_bytes())):
            assert await _code_without_certificate(port, credentials) is _UNAVAILABLE
        mistrusting = certificates(ours, "client", trusted=theirs)
        async with reach_tls("127.0.0.1", port, mistrusting) as terminals:
            with pytest.raises(AgentLost):
                await terminals.start("main")
        with pytest.raises(NotPossibleNow, match="is already in use"):
            async with serve_tls(MemoryTerminals(), "127.0.0.1", port, server):
                pass


_UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


async def _code_without_certificate(
    port: int, credentials: grpc.ChannelCredentials | None
) -> grpc.StatusCode | None:
    where = f"127.0.0.1:{port}"
    opened = aio.secure_channel(where, credentials) if credentials else aio.insecure_channel(where)
    async with opened as channel:
        try:
            await TerminalsStub(channel).StartTui(pb.StartTuiRequest())
        except aio.AioRpcError as error:
            return error.code()
    return None


async def test_certificates_that_will_not_do_are_refused_before_anything_listens(
    tmp_path: Path,
) -> None:
    good = certificates(authority(tmp_path / "ca"), "server")
    readable = good.key.with_name("readable.key")
    readable.write_bytes(good.key.read_bytes())
    readable.chmod(0o644)
    empty = tmp_path / "empty"
    empty.touch()

    for change, why in (
        ({"key": readable}, "chmod 600"),
        ({"key": tmp_path / "none"}, "cannot be read"),
        ({"authority": empty}, "not a PEM file"),
        ({"certificate": tmp_path}, "cannot be read"),
    ):
        launch_spec = Certificates.model_validate({**good.model_dump(), **change})
        with pytest.raises(BadInput, match=why):
            async with serve_tls(MemoryTerminals(), "127.0.0.1", 0, launch_spec):
                pass


async def test_unforeseen_error_is_reported_and_the_server_continues(socket: Path) -> None:
    behind = MemoryTerminals()
    behind.lines = {"PLANNER": None}  # type: ignore[dict-item]

    async with serve(behind, socket), reach(socket) as terminals:
        with pytest.raises(PodiumError, match="error in the Podium"):
            await terminals.capture(PLANNER, whole=True)
