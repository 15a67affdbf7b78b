"""Sessions of browsers, attacked: forged forms, forged and ended cookies, sockets of other sites, guesses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from http.cookies import SimpleCookie
from pathlib import Path

import httpx
import pytest
from fastapi import WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from podium.core.events import NoteTaken
from podium.core.work import Run, RunStatus
from podium.testing import retry_until
from podium.web.access.guards import GONE
from podium.web.access.sessions import Sessions, SignedOutSessions
from podium.web.access.tokens import ConsoleRole, Person
from podium.web.app import build_app
from podium.web.server import served
from tests.integration.web.console_harness import Stage, console
from tests.integration.web.routes import every_socket

APPROVE = "/api/v1/approvals/abcd1234/approve"


@asynccontextmanager
async def browser(stage: Stage, token: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody who came in as browsers do."""
    async with stage.client("", origin=stage.url) as client:
        given = {"token": stage.token if token is None else token}
        answer = await client.post("/login", data=given)
        assert answer.status_code == 303
        yield client


def form_token(stage: Stage, client: httpx.AsyncClient) -> str:
    return stage.context.sessions.form_token(next(iter(client.cookies.values())))


async def test_a_form_without_the_session_s_own_word_does_nothing(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, browser(stage) as client, browser(stage) as other:
        path = APPROVE
        assert (await client.post(path)).status_code == 401
        foreign = {"x-podium-form": form_token(stage, other)}
        assert (await client.post(path, headers=foreign)).status_code == 401
        own = {"x-podium-form": form_token(stage, client)}
        assert (await client.post(path, headers=own, json={})).status_code == 404
        field = {"x_podium_form": form_token(stage, other)}
        assert (await client.post("/logout", data=field)).status_code == 401
        assert (await client.get("/api/v1/runs")).status_code == 200


async def test_session_without_an_origin_changes_nothing(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, browser(stage) as client:
        headers = {"x-podium-form": form_token(stage, client)}
        del client.headers["origin"]
        assert (await client.post("/logout", headers=headers)).status_code == 403
        by_referer = {**headers, "referer": f"{stage.url}/runs"}
        assert (await client.post("/logout", headers=by_referer)).status_code == 303


async def test_nobody_is_made_to_come_in_by_another_site(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client("") as client:
        for text in ("http://evil.example", "null", "http://localhost:1"):
            answer = await client.post(
                "/login", data={"token": stage.token}, headers={"origin": text}
            )
            assert answer.status_code == 403
            assert "set-cookie" not in answer.headers


async def test_coming_in_leads_nowhere_else(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client("", origin=stage.url) as client:
        for to in (
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/\t/evil.example",
            "",
        ):
            answer = await client.post("/login", data={"token": stage.token, "to": to})
            assert (to, answer.status_code, answer.headers.get("location")) == (to, 303, "/")


async def test_a_cookie_is_read_by_no_script_and_sent_by_no_other_site(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client("") as client:
        answer = await client.post("/login", data={"token": stage.token})
        (cookie,) = SimpleCookie(answer.headers["set-cookie"]).values()
        assert cookie["httponly"]
        assert cookie["samesite"].lower() == "strict"
        assert cookie["path"] == "/"
        assert not cookie["domain"]
        assert stage.token not in answer.headers["set-cookie"]


async def test_changed_and_borrowed_cookies_are_nobody_s(tmp_path: Path) -> None:
    async with console(tmp_path) as stage:
        left = SignedOutSessions(tmp_path / "left.json")
        other = Sessions(b"another console's key, as long as it", left)
        now = stage.podium.clock.now()
        person = Person(name="eve", roles=frozenset(ConsoleRole))
        good = stage.context.sessions.begin(person, now + timedelta(hours=1))
        body, _, signed = good.partition(".")
        forged = [
            body,
            f"{body}.",
            f"{body}x.{signed}",
            f".{signed}",
            f"{body}.{stage.context.sessions.form_token(body)}",
            other.begin(person, now + timedelta(hours=1)),
            stage.context.sessions.begin(person, now),
            "é.é",
            "." * 5000,
        ]
        name = f"podium_{stage.context.sessions.console_id}"
        async with stage.client("") as client:
            for cookie in forged:
                raw = {"cookie": f"{name}={cookie}".encode("latin-1")}
                answer = await client.get("/api/v1/runs", headers=raw)  # type: ignore[arg-type]  # bytes pass too
                assert answer.status_code == 401, cookie
            answer = await client.get("/api/v1/runs", headers={"cookie": f"{name}={good}"})
            assert answer.status_code == 200


async def test_a_session_ends_when_it_is_left_and_when_its_token_is_revoked(tmp_path: Path) -> None:
    async with console(tmp_path) as stage:
        async with browser(stage) as client:
            kept = {"cookie": "; ".join(f"{k}={v}" for k, v in client.cookies.items())}
            await client.post("/logout", headers={"x-podium-form": form_token(stage, client)})
        async with stage.client("") as thief:
            assert (await thief.get("/api/v1/runs", headers=kept)).status_code == 401
        token, kept_token = stage.context.tokens.make("ann", frozenset(), stage.podium.clock.now())
        async with browser(stage, token) as client:
            assert (await client.get("/api/v1/runs")).status_code == 200
            stage.context.tokens.revoke(kept_token.id)
            assert (await client.get("/api/v1/runs")).status_code == 401


async def test_an_open_stream_ends_with_its_token(tmp_path: Path) -> None:
    async with console(tmp_path) as stage:
        token, kept = stage.context.tokens.make("ann", frozenset(), stage.podium.clock.now())
        async with (
            stage.client(token) as client,
            client.stream("GET", "/api/v1/events/stream") as stream,
        ):
            assert stream.status_code == 200
            stage.context.tokens.revoke(kept.id)
            await something_happens(stage)
            async with asyncio.timeout(60):
                text = b"".join([part async for part in stream.aiter_bytes()])
            assert b"a secret plan" not in text


async def something_happens(stage: Stage) -> None:
    run = Run(
        id=stage.podium.ids.new("run"),
        flow="demo",
        status=RunStatus.RUNNING,
        created_at=stage.podium.clock.now(),
    )
    store = await stage.context.store()
    await store.write(lambda tx: tx.add_run(run))
    await store.write(lambda tx: tx.append(run.id, NoteTaken(text="a secret plan")))


async def test_websockets_want_a_token_and_their_own_page(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, browser(stage) as client:
        sockets = every_socket(stage.context)
        assert sockets
        cookie = "; ".join(f"{k}={v}" for k, v in client.cookies.items())
        for path in sockets:
            url = stage.url.replace("http", "ws", 1) + path
            assert await refusal(url) == 401
            assert await refusal(url, Cookie=cookie) == 403
            assert await refusal(url, Cookie=cookie, Origin="http://evil.example") == 403
            assert await refusal(url, Cookie=cookie, Origin="null") == 403
            assert await refusal(url, Authorization="Bearer pod_wrong") == 401
            assert await refusal(url, Authorization=f"Bearer {stage.token}", Host="evil:1") == 421
            bearer = f"Bearer {stage.token}"
            foreign = "http://evil.example"
            assert await refusal(url, Authorization=bearer, Origin=foreign) == 403


async def test_an_open_websocket_says_and_hears_nothing_once_its_token_is_over(
    tmp_path: Path,
) -> None:
    messages: list[str] = []

    async def echo(websocket: WebSocket) -> None:
        await websocket.accept()
        async for words in websocket.iter_text():
            messages.append(words)
            await websocket.send_text(words)

    async with console(tmp_path) as stage:
        app = build_app(stage.context)
        app.add_api_websocket_route("/echo", echo)
        token, kept = stage.context.tokens.make("ann", frozenset(), stage.podium.clock.now())
        async with served(app, stage.context.settings) as url:
            bearer = {"authorization": f"Bearer {token}"}
            async with connect(f"ws{url[4:]}/echo", additional_headers=bearer) as socket:
                await socket.send("one")
                assert await socket.recv() == "one"
                stage.context.tokens.revoke(kept.id)
                await socket.send("two")
                with pytest.raises(ConnectionClosed) as closed:
                    await socket.recv()
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == GONE
    assert messages == ["one"]


async def test_every_page_runs_the_console_s_own_scripts_alone_and_is_kept_nowhere(
    tmp_path: Path,
) -> None:
    async with console(tmp_path) as stage, browser(stage) as client:
        for path in ("/", "/runs", "/duet", "/nothing", "/api/v1/runs", "/healthz"):
            output = (await client.get(path)).headers
            policy = dict(
                part.strip().split(" ", 1) for part in output["content-security-policy"].split(";")
            )
            assert policy["default-src"] == "'none'"
            assert policy["script-src"] == "'self'"
            assert policy["frame-ancestors"] == "'none'"
            assert ("unsafe" in policy["style-src"]) == (path == "/duet")
            assert output["cache-control"] == "no-store"
            assert output["x-content-type-options"] == "nosniff"
            assert "server" not in output
        assert "no-store" not in (await client.get("/static/podium.css")).headers["cache-control"]


async def refusal(url: str, **headers: str) -> int:
    """The status by which a handshake is refused; 101 for one that is not."""
    given = {name: value for name, value in headers.items() if name not in ("Host", "Origin")}
    if "Host" in headers:
        return await _refusal_by_hand(url, headers)
    try:
        async with connect(url, additional_headers=given, origin=headers.get("Origin")) as socket:  # type: ignore[arg-type]  # a NewType of str
            with pytest.raises(ConnectionClosed):
                await socket.recv()
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


async def _refusal_by_hand(url: str, headers: dict[str, str]) -> int:
    shaking = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    async with httpx.AsyncClient() as client:
        answer = await client.get(url.replace("ws", "http", 1), headers={**shaking, **headers})
        return answer.status_code


async def test_guesses_are_slowed_down_and_whoever_has_a_token_is_not(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, browser(stage) as inside, stage.client("") as client:
        codes = [
            (await client.post("/login", data={"token": f"pod_{number}"})).status_code
            for number in range(12)
        ]
        assert codes[:10] == [401] * 10
        assert codes[10:] == [429] * 2
        guess = {"authorization": "Bearer pod_13"}
        answer = await client.get("/api/v1/runs", headers=guess)
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) >= 1
        # From the same address: on one machine, or behind one proxy, all share it.
        bearer = {"authorization": f"Bearer {stage.token}"}
        assert (await client.get("/api/v1/runs", headers=bearer)).status_code == 200
        assert (await inside.get("/api/v1/runs")).status_code == 200
        answer = await client.post("/login", data={"token": stage.token})
        assert answer.status_code == 303


async def test_a_token_is_found_nowhere_after_a_session(tmp_path: Path) -> None:
    async with console(tmp_path) as stage:
        async with browser(stage) as client:
            pages = [(await client.get(path)).text for path in ("/", "/runs", "/login", "/health")]
            await client.post("/api/v1/runs", json={"flow": stage.token})
            await client.get("/nothing", params={"token": stage.token})
        (wrong,) = [page for page in pages if stage.token in page] or [""]
        assert wrong == ""

        def files() -> list[Path]:
            return [path for path in tmp_path.rglob("*") if path.is_file()]

        await retry_until(lambda: bool(files()))
        secret = stage.token.rpartition("_")[2].encode()
        assert [path for path in files() if secret in path.read_bytes()] == []
        (book,) = (path for path in files() if path.name == "tokens.json")
        assert book.stat().st_mode & 0o777 == 0o600
        assert book.parent.stat().st_mode & 0o777 == 0o700
        assert stage.podium.folders.project not in book.parents
