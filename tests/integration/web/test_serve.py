"""`podium serve`, as people start it: a link once, a worker beside it, and an end at once."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
from starlette.datastructures import Headers

from podium.testing import retry_until
from podium.web.access.host_names import named
from podium.web.access.limits import apply_proxy_headers
from tests.integration.cli.command_runner import CommandRunner


class Served:
    """A `podium serve` in a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path, err: Path) -> None:
        self.process = process
        self._out = out
        self._err = err

    @property
    def output(self) -> str:
        return self._out.read_text()

    @property
    def beside(self) -> str:
        return self._err.read_text()

    async def record(self) -> dict[str, Any]:
        """Wait for its --json output and return it."""

        def log_text() -> str:
            assert self.process.poll() is None, self.beside
            return self.output if self.output.endswith("\n") else ""

        found = json.loads(await retry_until(log_text))
        assert isinstance(found, dict)
        return found

    def leave(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=60)


@asynccontextmanager
async def serve(cli: CommandRunner, *words: str) -> AsyncIterator[Served]:
    out, err = cli.project.with_name("out"), cli.project.with_name("err")
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            cli.command("serve", *words),
            cwd=cli.project,
            env=cli.environ,
            stdout=stdout,
            stderr=stderr,
        )
    try:
        yield Served(process, out, err)
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def cli(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandRunner:
    """The command line in this process, over the same project as `serve`."""
    made = CommandRunner(tmp_path, capsys)
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(made.project)
    return made


async def test_the_first_start_shows_a_link_once_and_ctrl_c_leaves_open_streams(
    cli: CommandRunner,
) -> None:
    async with serve(cli, "--port", "0", "--json") as first:
        log_text = await first.record()
        assert log_text["link"] == f"{log_text['url']}/login#token={log_text['token']}"
        bearer = {"authorization": f"Bearer {log_text['token']}"}
        async with httpx.AsyncClient(
            base_url=log_text["url"], headers=bearer, timeout=60
        ) as client:
            assert (await client.get("/api/v1/runs")).status_code == 200

            async def works() -> bool:
                return bool((await client.get("/api/v1/workers")).json()["workers"])

            assert await retry_until(works)
            async with client.stream("GET", "/api/v1/events/stream") as stream:
                assert stream.status_code == 200
                assert first.leave() == 130
                # Ended in words, and not cut off.
                assert "event: end" in "".join([part async for part in stream.aiter_text()])
        assert "Traceback" not in first.beside
    async with serve(cli, "--port", "0", "--json", "--no-worker") as second:
        log_text = await second.record()
        assert set(log_text) == {"url"}
        assert second.leave() == 130
        assert "Traceback" not in second.beside


def test_tokens_are_added_listed_and_revoked(cli: CommandRunner) -> None:
    assert cli.run("serve", "tokens", "--json").json == {"tokens": []}
    words = ("--role", "approver", "--role", "operator", "--expires", "30d", "--json")
    made = cli.run("serve", "tokens", "add", "ben", *words).json
    assert made["name"] == "ben"
    assert made["roles"] == ["approver", "operator"]
    assert made["expires_at"] > made["made_at"]
    listed = cli.run("serve", "tokens")
    assert made["id"] in listed.out
    assert made["token"] not in listed.out
    (one,) = cli.run("serve", "tokens", "--json").json["tokens"]
    assert "sha256" not in one
    assert cli.run("serve", "tokens", "revoke", made["id"]).code == 0
    again = cli.run("serve", "tokens", "revoke", made["id"])
    assert again.code == 2
    assert "podium serve tokens" in again.err
    for expires in ("soon", "0d", "-1d", "99999w"):
        refused = cli.run("serve", "tokens", "add", "ben", "--expires", expires)
        assert refused.code == 2
        assert "30d" in refused.err


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("--host", "0.0.0.0"), "--cert"),
        (("--host", "::"), "--behind-proxy"),
        (("--host", "192.0.2.1"), "in clear text"),
        (("--behind-proxy",), "--name"),
        (("--cert", "missing.pem"), "--key"),
        (("--cert", "missing.pem", "--key", "missing.key"), "No such file"),
        (("--port", "70000"), "--port"),
        (("--name", "podium.example.org:abc"), "podium.example.org:8443"),
        (("--name", "podium.example.org:99999"), "podium.example.org:8443"),
        (("--name", "podium.example.org:0"), "podium.example.org:8443"),
        (("--name", "podium.example.org:"), "podium.example.org:8443"),
        (("--name", "[::1"), "podium.example.org:8443"),
        (("--name", "[zz]"), "podium.example.org:8443"),
        (("--name", "https://podium.example.org"), "podium.example.org:8443"),
        (("--name", "podium.example.org/console"), "podium.example.org:8443"),
        (("--name", "ann@podium.example.org"), "podium.example.org:8443"),
        (("--name", "two names"), "podium.example.org:8443"),
        (("--name", ""), "podium.example.org:8443"),
    ],
)
def test_what_would_be_unsafe_or_cannot_work_is_refused_with_advice(
    cli: CommandRunner, words: tuple[str, ...], advice: str
) -> None:
    result = cli.run("serve", *words)
    assert result.code == 2
    assert advice in result.err
    assert result.out == ""


def test_port_in_use_is_reported(cli: CommandRunner) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = cli.run("serve", "--port", str(taken.getsockname()[1]), "--no-worker")
    assert result.code == 1
    assert "--port" in result.err
    # Nobody was given a token that leads nowhere.
    assert cli.run("serve", "tokens", "--json").json == {"tokens": []}


@pytest.fixture
def short_folder() -> Iterator[Path]:
    # The kernel takes no long path for a socket.
    with TemporaryDirectory(prefix="podium-") as folder:
        yield Path(folder)


@pytest.mark.soak
async def test_a_socket_is_its_owner_s_alone_and_a_living_one_is_not_replaced(
    cli: CommandRunner, short_folder: Path
) -> None:
    place = short_folder / "c" / "podium.sock"
    words = ("--socket", str(place), "--no-worker", "--json")
    async with serve(cli, *words) as served:
        log_text = await served.record()
        assert place.stat().st_mode & 0o777 == 0o600
        assert place.parent.stat().st_mode & 0o777 == 0o700
        transport = httpx.AsyncHTTPTransport(uds=str(place))
        bearer = {"authorization": f"Bearer {log_text['token']}"}
        async with httpx.AsyncClient(transport=transport, headers=bearer, timeout=60) as client:
            assert (await client.get("http://localhost/api/v1/runs")).status_code == 200
            assert (await client.get("http://evil.example/api/v1/runs")).status_code == 421
            second = await asyncio.to_thread(cli.spawn, "serve", *words)
            assert second.code == 7
            assert "another Podium" in second.err
            assert (await client.get("http://localhost/api/v1/runs")).status_code == 200
        served.process.kill()
        served.process.wait()
    # What a killed one left behind is in nobody's way.
    async with serve(cli, *words) as after:
        assert await after.record() == {"url": str(place)}
    open_to_all = short_folder / "open"
    open_to_all.mkdir(mode=0o755)
    elsewhere = str(open_to_all / "podium.sock")
    refused = await asyncio.to_thread(cli.spawn, "serve", "--socket", elsewhere)
    assert refused.code == 2
    assert "chmod 700" in refused.err


def test_a_name_is_for_every_port_unless_it_has_one() -> None:
    assert named("Podium.example.org") == ("podium.example.org", None)
    assert named("podium:8443") == ("podium", 8443)
    assert named("192.0.2.7:80") == ("192.0.2.7", 80)
    assert named("[2001:DB8::1]:8443") == ("2001:db8::1", 8443)


@pytest.mark.parametrize("peer", [("127.0.0.1", 1), ("::1", 1), None])
def test_local_proxy_names_whom_it_asks_for(peer: tuple[str, int] | None) -> None:
    scope = {"type": "http", "client": peer, "scheme": "http"}
    log_text = {"x-forwarded-for": "6.6.6.6, 198.51.100.7", "x-forwarded-proto": "https"}
    apply_proxy_headers(scope, Headers(log_text))
    assert scope["client"] == ("198.51.100.7", 0)
    assert scope["scheme"] == "https"


def test_nobody_else_is_believed() -> None:
    scope = {"type": "http", "client": ("198.51.100.9", 1), "scheme": "http"}
    apply_proxy_headers(
        scope, Headers({"x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "https"})
    )
    assert scope == {"type": "http", "client": ("198.51.100.9", 1), "scheme": "http"}
