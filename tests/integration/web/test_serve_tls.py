"""The console by TLS, and behind a proxy: for real certificates, names and cookies."""

from __future__ import annotations

import ssl
from http.cookies import SimpleCookie
from pathlib import Path

import httpx
import pytest

from podium.core.errors import BadInput
from podium.web.app import build_app
from podium.web.server import served
from podium.web.settings import ConsoleSettings
from tests.integration.rpc.certificates import authority, certificates
from tests.integration.web.console_harness import console

NAME = "podium.example.org"


async def test_by_tls_the_cookie_is_bound_to_its_host_and_the_name_to_tls(tmp_path: Path) -> None:
    ca = authority(tmp_path / "papers")
    launch_spec = certificates(ca, "console")
    settings = ConsoleSettings(
        port=0, certificate=launch_spec.certificate, key=launch_spec.key, names=(NAME,)
    )
    async with console(tmp_path, settings=settings) as stage:
        assert stage.url.startswith("https://127.0.0.1:")
        trusting = ssl.create_default_context(cafile=str(ca))
        async with httpx.AsyncClient(verify=trusting, base_url=stage.url, timeout=60) as client:
            answer = await client.post("/login", data={"token": stage.token})
            (cookie,) = SimpleCookie(answer.headers["set-cookie"]).values()
            assert cookie.key.startswith("__Host-")
            assert cookie["secure"]
            # A name that means every machine itself is not pinned: other servers answer by it, too.
            assert "strict-transport-security" not in answer.headers
            assert (await client.get("/api/v1/runs")).status_code == 200
            named = await client.get("/login", headers={"host": NAME})
            assert "max-age" in named.headers["strict-transport-security"]
            plain = await client.post("/login", headers={"origin": stage.url.replace("s:", ":", 1)})
            assert plain.status_code == 403
        async with httpx.AsyncClient(timeout=60) as untrusting:
            with pytest.raises(httpx.RemoteProtocolError):
                await untrusting.get(stage.url.replace("https", "http"))
            with pytest.raises(httpx.ConnectError):
                await untrusting.get(stage.url)


async def test_unusable_certificate_is_reported_before_anything_listens(tmp_path: Path) -> None:
    launch_spec = certificates(authority(tmp_path / "papers"), "console")
    other = certificates(authority(tmp_path / "others"), "console")
    wrong = ConsoleSettings(port=0, certificate=launch_spec.certificate, key=other.key)
    async with console(tmp_path) as stage:
        with pytest.raises(BadInput, match="cannot load the TLS certificate"):
            async with served(build_app(stage.context), wrong):
                pass


async def test_behind_a_proxy_pages_of_its_name_are_ours_and_limits_count_its_visitors(
    tmp_path: Path,
) -> None:
    settings = ConsoleSettings(port=0, behind_proxy=True, names=(NAME,), requests_per_minute=5)
    async with console(tmp_path, settings=settings) as stage:
        proxied = {"x-forwarded-proto": "https", "x-forwarded-for": "198.51.100.7"}
        async with stage.client("", **proxied, host=NAME) as client:
            given = {"token": stage.token}
            foreign = {"origin": "https://evil.example"}
            assert (await client.post("/login", data=given, headers=foreign)).status_code == 403
            plain = {"origin": f"http://{NAME}"}
            assert (await client.post("/login", data=given, headers=plain)).status_code == 403
            own = {"origin": f"https://{NAME}"}
            answer = await client.post("/login", data=given, headers=own)
            assert answer.status_code == 303
            assert answer.headers["set-cookie"].startswith("__Host-")
            assert "max-age" in answer.headers["strict-transport-security"]
            codes = [(await client.get("/login")).status_code for _ in range(30)]
            assert 429 in codes
        # Another visitor of the same proxy; and one that lies about where it comes from changes nothing.
        other = {"x-forwarded-for": "198.51.100.7, 198.51.100.8"}
        async with stage.client("", **{**proxied, **other}, host=NAME) as client:
            assert (await client.get("/login")).status_code == 200
