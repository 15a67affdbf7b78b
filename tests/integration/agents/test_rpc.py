"""The JSON-RPC peer, against a real process at the other end."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podium.agents.json_rpc import LineClosed, Params, RpcError, RpcPeer, talking
from podium.core.errors import AgentLost
from podium.core.model import Json
from podium.core.processes import ProcessSpec
from podium.sandbox import ProcessLauncher

OTHER_SIDE = """
import json, sys, time

def say(**message):
    print(json.dumps(message), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "echo":
        say(id=number, result=message["params"])
    elif method == "envelope":
        say(id=number, result=message.get("jsonrpc"))
    elif method == "fail":
        say(id=number, error={"code": 7, "message": "no", "data": [1]})
    elif method == "fail oddly":
        say(id=number, error="odd")
    elif method == "noise":
        print("not json"); print("[1, 2]"); print("[" * 100000); sys.stdout.buffer.write(b"\\xff\\xfe\\n")
        say(id=99999, result="nobody asked")
        say(id=number, result="still here")
    elif method == "count":
        for n in range(message["params"]["to"]):
            say(method="counted", params={"n": n})
        say(id=number, result=None)
    elif method == "ask back":
        say(id="theirs", method="may I", params={"what": "this"})
        say(id=number, result=json.loads(sys.stdin.readline()))
    elif method == "ask often":
        for n in range(200):
            say(id=n, method="may I", params={})
        say(id=number, result=None)
    elif method == "ask and never read":
        for n in range(10_000):
            say(id=n, method="may I", params={})
        time.sleep(60)
    elif method == "leave":
        sys.exit(3)
"""


class Ours:
    """This side of the connection: the messages received, and the answers to them."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Params]] = []
        self.lines: list[tuple[str, str]] = []
        self.wait = asyncio.Event()
        self.wait.set()
        self.failure: Exception | None = None
        self.answer: Json = "yes"

    async def judge(self, method: str, params: Params) -> Json:
        await self.wait.wait()
        if self.failure is not None:
            raise self.failure
        return self.answer

    async def hear(self, method: str, params: Params) -> None:
        self.requests.append((method, params))
        if self.failure is not None:
            raise self.failure

    def keep(self, way: str, line: str) -> None:
        self.lines.append((way, line))


@asynccontextmanager
async def talk(tmp_path: Path, ours: Ours, **options: Any) -> AsyncIterator[RpcPeer]:
    spawn = ProcessSpec(
        argv=(sys.executable, "-c", OTHER_SIDE), cwd=str(tmp_path), interactive=True
    )
    process = await ProcessLauncher().start(spawn)
    try:
        async with talking(process, ours.judge, ours.hear, keep=ours.keep, **options) as peer:
            yield peer
    finally:
        await process.end(grace_seconds=0)


async def test_a_call_gets_its_own_answer(tmp_path: Path) -> None:
    async with talk(tmp_path, Ours()) as peer:
        answers = await asyncio.gather(*(peer.call("echo", {"n": n}) for n in range(20)))
    assert answers == [{"n": n} for n in range(20)]


async def test_the_version_field_is_there_unless_it_is_not_wanted(tmp_path: Path) -> None:
    async with talk(tmp_path, Ours()) as peer:
        assert await peer.call("envelope") == "2.0"
    async with talk(tmp_path, Ours(), version_field=False) as peer:
        assert await peer.call("envelope") is None


async def test_an_error_of_the_other_side_is_raised(tmp_path: Path) -> None:
    async with talk(tmp_path, Ours()) as peer:
        with pytest.raises(RpcError, match="no") as raised:
            await peer.call("fail")
        assert (raised.value.code, raised.value.data) == (7, [1])
        with pytest.raises(RpcError, match="odd"):
            await peer.call("fail oddly")


async def test_what_is_no_message_is_passed_over(tmp_path: Path) -> None:
    ours = Ours()
    async with talk(tmp_path, ours) as peer:
        assert await peer.call("noise") == "still here"
    assert ("received", "not json") in ours.lines


async def test_notices_come_in_order_and_before_the_answer_behind_them(tmp_path: Path) -> None:
    ours = Ours()
    async with talk(tmp_path, ours) as peer:
        await peer.call("count", {"to": 300})
        assert [params["n"] for _, params in ours.requests] == list(range(300))


async def test_a_call_of_the_other_side_is_answered(tmp_path: Path) -> None:
    async with talk(tmp_path, Ours(), version_field=False) as peer:
        assert await peer.call("ask back") == {"id": "theirs", "result": "yes"}


async def test_an_answer_that_fails_is_an_error_there_without_our_insides(tmp_path: Path) -> None:
    ours = Ours()
    ours.failure = RuntimeError("a secret")
    async with talk(tmp_path, ours) as peer:
        answer = await peer.call("ask back")
    assert isinstance(answer, dict)
    assert answer["error"] == {"code": -32603, "message": "'may I': RuntimeError"}


async def test_more_calls_than_can_be_answered_are_turned_down(tmp_path: Path) -> None:
    ours = Ours()
    ours.wait.clear()
    async with talk(tmp_path, ours) as peer:
        await peer.call("ask often")
        ours.wait.set()
        await peer.call("echo")
        sent = [json.loads(line) for way, line in ours.lines if way == "sent"]
        refused = [message for message in sent if "error" in message]
        assert len(refused) == 200 - 64


async def test_calls_fail_when_the_process_is_gone(tmp_path: Path) -> None:
    async with talk(tmp_path, Ours()) as peer:
        with pytest.raises(LineClosed):
            await peer.call("leave")
        await peer.over()
        with pytest.raises(LineClosed, match="'echo'"):
            await peer.call("echo")


async def test_what_a_listener_raises_reaches_whoever_waits(tmp_path: Path) -> None:
    ours = Ours()
    ours.failure = ValueError("enough")
    async with talk(tmp_path, ours) as peer:
        with pytest.raises(ValueError, match="enough"):
            await peer.call("count", {"to": 1})
        with pytest.raises(ValueError, match="enough"):
            await peer.over()


async def test_leaving_drops_what_is_still_being_answered(tmp_path: Path) -> None:
    ours = Ours()
    ours.wait.clear()
    async with talk(tmp_path, ours) as peer:
        await peer.call("ask often")
    assert not [line for way, line in ours.lines if way == "sent" and "result" in line]


async def test_who_asks_and_never_reads_is_not_asked_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium.agents.json_rpc.REFUSAL_SECONDS", 0.2)
    ours = Ours()
    ours.wait.clear()
    async with talk(tmp_path, ours) as peer:
        with pytest.raises(AgentLost, match="has not read an answer"):
            await peer.call("ask and never read")
        assert len([line for way, line in ours.lines if way == "sent"]) < 3_000
