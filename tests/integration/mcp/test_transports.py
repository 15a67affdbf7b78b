"""The door on pipes and over HTTP: what clients need to come in, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from podium.testing import retry_until
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.mcp.clients import TOKEN, Caller, knowing, over_http, over_stdio
from tests.integration.playbook.playbook_harness import Stage

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPTED = {"Accept": "application/json, text/event-stream"}


async def test_a_client_on_pipes_hands_work_to_a_worker_that_is_started_for_it(
    cli: CommandRunner,
) -> None:
    Stage(cli)
    options = {"inputs": {"version": "2.0"}}
    async with over_stdio(cli) as caller:
        handed = await caller.call("submit", flow="playbook", text="bump.md", options=options)
        run_id = handed["run"]["run_id"]

        async def ended() -> bool:
            (line,) = (await caller.call("status", run_id=run_id))["runs"]
            return bool(line["ended"])

        await retry_until(ended)
        result = await caller.call("result", run_id=run_id)
        first = await caller.call("logs", run_id=run_id, limit=5)
        rest = await caller.call(
            "logs", run_id=run_id, after_seq=first["next_after_seq"], limit=500
        )
    assert (len(first["lines"]), first["ended"], rest["ended"]) == (5, False, True)
    assert "run_succeeded" in rest["lines"][-1]
    assert result["run"]["status"] == "succeeded"
    assert result["receipts"] > 0
    assert (cli.project / "version.txt").read_text() == "2.0\n"


def test_without_a_client_it_ends_at_once(cli: CommandRunner) -> None:
    done = subprocess.run(
        cli.command("mcp"),
        cwd=cli.project,
        env=cli.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@contextmanager
def a_server(cli: CommandRunner, *options: str) -> Iterator[subprocess.Popen[str]]:
    server = subprocess.Popen(
        cli.command("mcp", *options),
        cwd=cli.project,
        env=cli.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield server
    finally:
        server.kill()
        server.wait(timeout=120)
        for stream in (server.stdin, server.stdout, server.stderr):
            assert stream is not None
            stream.close()


def exchange(server: subprocess.Popen[str], line: str) -> dict[str, object]:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(f"{line}\n")
    server.stdin.flush()
    answer: dict[str, object] = json.loads(server.stdout.readline())
    return answer


@pytest.mark.soak
def test_nonsense_on_the_line_is_survived_and_a_client_that_goes_away_ends_the_server_cleanly(
    cli: CommandRunner,
) -> None:
    with a_server(cli) as server:
        assert server.stdin is not None
        server.stdin.write("this is no JSON\n" + "x" * 5_000_000 + "\n")
        server.stdin.flush()
        while (answer := exchange(server, json.dumps(INITIALIZE))).get("id") != 1:
            continue
        assert "result" in answer
        server.stdin.close()
        assert server.wait(timeout=120) == 0
        assert server.stdout is not None
        assert server.stdout.read() == ""


@pytest.mark.soak
def test_ending_on_request_does_not_wait_for_the_client(cli: CommandRunner) -> None:
    with a_server(cli) as server:
        exchange(server, json.dumps(INITIALIZE))
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=120) == 130


async def test_clients_over_http_that_know_the_token_come_in(cli: CommandRunner) -> None:
    (cli.project / "notes.txt").write_text("hello\n")
    async with over_http(cli) as (url, podium), knowing(url, TOKEN) as client:
        caller = Caller(client, podium)
        exchange = await caller.call("read_file", path="notes.txt")
        assert exchange["status"] == "done"
        waiting = await caller.call("write_file", path="a.txt", content="x")
        assert waiting["status"] == "waiting"


async def test_stranger_without_the_token_learns_nothing(cli: CommandRunner) -> None:
    wrong = [{"Authorization": f"Bearer {token}"} for token in ("wrong", f"{TOKEN}x", TOKEN[:-1])]
    async with over_http(cli) as (url, _), httpx.AsyncClient() as http:
        for headers in ({}, {"Authorization": TOKEN}, *wrong):
            answer = await http.post(url, json=INITIALIZE, headers={**ACCEPTED, **headers})
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert "podium" not in answer.text.lower()


async def test_pages_of_others_cannot_use_it_although_they_had_the_token(
    cli: CommandRunner,
) -> None:
    async with over_http(cli) as (url, _), httpx.AsyncClient() as http:
        known = {**ACCEPTED, "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        body = json.dumps(INITIALIZE)
        assert (await http.post(url, content=body, headers=known)).status_code == 200
        for headers, status in (
            ({"Host": "evil.example"}, 421),
            ({"Origin": "http://evil.example"}, 403),
            ({"Content-Type": "text/plain"}, 400),
        ):
            refused = await http.post(url, content=body, headers={**known, **headers})
            assert refused.status_code == status
        too_large = await http.post(url, content=b"x" * 3_000_000, headers=known)
        assert too_large.status_code == 413


async def test_the_token_that_is_made_is_shown_once_on_stderr_and_lets_in(
    cli: CommandRunner,
) -> None:
    with a_server(cli, "--http", "127.0.0.1:0") as server:
        assert server.stderr is not None
        first, second = server.stderr.readline(), server.stderr.readline()
        token = re.search(r"shown only once\): (\S+)", first)
        url = re.search(r"MCP server at (\S+);", second)
        assert token
        assert url
        refused = httpx.post(url[1], json=INITIALIZE, headers={"Authorization": "Bearer guessed"})
        assert refused.status_code == 401
        async with knowing(url[1], token[1]) as client:
            assert (await client.list_tools()).tools
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=120) == 130


@pytest.mark.parametrize("address", ["0.0.0.0:8765", "192.0.2.1:8765", "example.org:1"])
def test_other_machines_are_not_let_in(cli: CommandRunner, address: str) -> None:
    result = cli.run("mcp", "--http", address)
    assert result.code == 2
    assert "is not a loopback address" in result.err


def test_a_token_that_could_be_guessed_is_refused(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODIUM_MCP_TOKEN", "short")
    result = cli.run("mcp", "--http", "127.0.0.1:0")
    assert result.code == 2
    assert "PODIUM_MCP_TOKEN must have at least 16 characters, not 5" in result.err
