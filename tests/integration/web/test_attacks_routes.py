"""Every route of the console, asked by those who may not."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import httpx

from podium.web.access.tokens import ConsoleRole, Person
from tests.integration.web.console_harness import Stage, console
from tests.integration.web.routes import Way, every_way

FEWEST_WAYS = 40
OF_EVERYBODY = frozenset({"/logout"})
"""What changes something and needs no role."""


async def asked(
    client: httpx.AsyncClient, way: Way, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    """The answer's status and headers; a stream that was let begin is left again."""
    content = b"{}" if way.changes else b""
    kind = {"content-type": "application/json"} if way.changes else {}
    request = client.build_request(
        way.method, way.path, content=content, headers={**kind, **(headers or {})}
    )
    answer = await client.send(request, stream=True)
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        await answer.aread()
    await answer.aclose()
    return answer


def is_refused(way: Way, answer: httpx.Response) -> bool:
    """Return whether it was refused: opening a page redirects to sign-in, everything else is answered with 401."""
    led = answer.status_code == 303 and answer.headers["location"].startswith("/login?")
    return answer.status_code == 401 or (led and not way.changes)


async def position(stage: Stage) -> int:
    store = await stage.context.store()
    return await store.read(lambda view: view.last_position())


def closed_ways(stage: Stage) -> list[Way]:
    ways = [way for way in every_way(stage.context) if not way.is_open]
    assert len(ways) >= FEWEST_WAYS
    return ways


async def test_no_route_answers_without_a_token_that_holds(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client("") as client:
        # Guesses are slowed down as well, which another test looks at.
        stage.context.attempts.failed = lambda address: None  # type: ignore[method-assign]
        before = await position(stage)
        for who in ("nobody", "a guess", "revoked", "expired", "another scheme"):
            headers = _headers(stage, who)
            answers = {way: await asked(client, way, headers) for way in closed_ways(stage)}
            answered = {way for way, answer in answers.items() if not is_refused(way, answer)}
            assert (who, answered) == (who, set())
        assert await position(stage) == before


def _headers(stage: Stage, who: str) -> dict[str, str]:
    now = stage.podium.clock.now()
    if who == "nobody":
        return {}
    if who == "a guess":
        return {"authorization": f"Bearer {stage.token[:-1]}"}
    if who == "another scheme":
        return {"authorization": f"Basic {stage.token}"}
    over = now - timedelta(seconds=1) if who == "expired" else None
    token, kept = stage.context.tokens.make("ann", frozenset(ConsoleRole), now, over)
    if who == "revoked":
        stage.context.tokens.revoke(kept.id)
    return {"authorization": f"Bearer {token}"}


async def test_a_viewer_changes_nothing_by_any_route(tmp_path: Path) -> None:
    async with console(tmp_path) as stage:
        before = await position(stage)
        ways = [way for way in closed_ways(stage) if way.changes and way.path not in OF_EVERYBODY]
        async with stage.client(stage.new_token("vic", ConsoleRole.VIEWER)) as client:
            answers = {way: (await asked(client, way)).status_code for way in ways}
        # Some routes are there to say that they take no such method.
        assert {way: code for way, code in answers.items() if code not in (403, 405)} == {}
        assert await position(stage) == before


async def test_an_operator_approves_nothing_and_an_approver_starts_nothing(tmp_path: Path) -> None:
    async with console(tmp_path) as stage:
        operator = stage.new_token("olga", ConsoleRole.OPERATOR)
        approver = stage.new_token("abe", ConsoleRole.APPROVER)
        approving = Way("POST", "/api/v1/approvals/abcd1234/approve")
        starting = Way("POST", "/api/v1/runs")
        async with stage.client(operator) as client:
            assert (await asked(client, approving)).status_code == 403
        async with stage.client(approver) as client:
            assert (await asked(client, starting)).status_code == 403


FOREIGN = (
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:1"},
    {"origin": "https://127.0.0.1"},
    {"referer": "http://evil.example/page"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
    {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
)


async def test_nothing_changes_by_a_page_of_another_site(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client() as client:
        before = await position(stage)
        ways = [way for way in every_way(stage.context) if way.changes]
        for foreign in FOREIGN:
            answers = {way: (await asked(client, way, foreign)).status_code for way in ways}
            let_in = {way: code for way, code in answers.items() if code != 403}
            assert (foreign, let_in) == (foreign, {})
        assert await position(stage) == before


HOSTS = ("evil.example", "127.0.0.1.evil.example", "127.0.0.1:1", "localhost", "", "a b", "[::1")


async def test_no_route_answers_by_a_name_that_is_not_its_own(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client() as client:
        ways = [*every_way(stage.context), Way("GET", "/static/podium.css")]
        for host in HOSTS:
            codes = {(await asked(client, way, {"host": host})).status_code for way in ways}
            assert (host, codes) == (host, {421})


async def test_a_link_s_session_sees_and_decides_its_own_card_alone(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client("") as client:
        now = stage.podium.clock.now()
        visitor = Person(name="sam", roles=frozenset(ConsoleRole), card="abcd1234")
        cookie = stage.context.sessions.begin(visitor, now + timedelta(minutes=15))
        headers = {
            "cookie": f"podium_{stage.context.sessions.console_id}={cookie}",
            "origin": stage.url,
            "x-podium-form": stage.context.sessions.form_token(cookie),
        }
        for path in ("/cards/other123", "/cards/abcd1234%2f..%2f..%2fruns"):
            assert (await asked(client, Way("GET", path), headers)).status_code in (403, 404)
        # Leaving comes last: it ends the session.
        ways = sorted(closed_ways(stage), key=lambda way: way.path == "/logout")
        codes = {way: (await asked(client, way, headers)).status_code for way in ways}
        let_in = {way for way, code in codes.items() if code != 403}
        assert let_in == {
            *(Way("GET", f"/cards/abcd1234{part}") for part in ("", "/part", "/live")),
            *(Way("POST", f"/cards/abcd1234/{act}") for act in ("approve", "reject")),
            Way("GET", "/api/v1/approvals/abcd1234"),
            *(Way("POST", f"/api/v1/approvals/abcd1234/{act}") for act in ("approve", "reject")),
            Way("POST", "/logout"),
        }


async def test_a_head_is_an_answer_without_its_body_and_other_methods_are_refused(
    tmp_path: Path,
) -> None:
    async with console(tmp_path) as stage, stage.client() as client:
        for path in ("/login", "/api/v1/runs", "/static/podium.css", "/api/v1/events/stream"):
            answer = await client.head(path)
            assert answer.status_code == 200
            assert answer.content == b""
        for method in ("TRACE", "CONNECT", "PROPFIND", "OPTIONS"):
            answer = await client.request(method, "/api/v1/runs")
            assert answer.status_code == 405
            assert "GET" in answer.headers["allow"]


async def test_unknown_paths_reveal_nothing_to_a_stranger(tmp_path: Path) -> None:
    async with console(tmp_path) as stage:
        async with stage.client("") as stranger:
            assert (await stranger.get("/api/v1/nothing")).status_code == 401
            assert (await stranger.get("/nothing")).status_code == 303
            assert stage.podium.folders.project.name not in (await stranger.get("/login")).text
        async with stage.client() as known:
            assert (await known.get("/api/v1/nothing")).status_code == 404
            assert (await known.get("/nothing")).status_code == 404
