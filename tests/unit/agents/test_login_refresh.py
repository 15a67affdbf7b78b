"""Copying back a refreshed login, and rejection of what an agent might put in its place."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest

from podium.agents.headless.home import refreshed
from podium.core.model import Json

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
SECONDS = int(NOW.timestamp())
FIELDS = ("tokens.access_token", "tokens.refresh_token", "last_refresh")
OPAQUE = ("oauth.accessToken", "oauth.refreshToken", "oauth.expiresAt")
ACCOUNT: dict[str, Json] = {
    "iss": "https://issuer.example",
    "sub": "user-1",
    "aud": ["api"],
    "client_id": "cli",
    "https://api.openai.com/auth": {"chatgpt_account_id": "a-1", "plan": "pro"},
}


def jwt(**claims: Json) -> str:
    parts = [{"alg": "RS256"}, {**ACCOUNT, **claims}]
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts]
    return ".".join([*(part.rstrip("=") for part in coded), "c2lnbmF0dXJl"])


OLD = jwt(exp=SECONDS - 60, iat=SECONDS - 3600)
SEED: dict[str, Json] = {
    "mode": "chatgpt",
    "tokens": {"access_token": OLD, "refresh_token": "rt_1111111111111111", "account": "a-1"},
    "last_refresh": "2026-04-20T10:00:00Z",
}


def after(
    access: Json, refresh: Json = "rt_1122222222222222", when: Json = "2026-05-01T11:59:00Z"
) -> Json:
    tokens = {"access_token": access, "refresh_token": refresh, "account": "a-1"}
    return {**SEED, "tokens": tokens, "last_refresh": when}


def come_back(found: Json) -> bool:
    newer = refreshed(json.dumps(SEED).encode(), json.dumps(found).encode(), FIELDS, NOW)
    assert newer is None or json.loads(newer) == found
    return newer is not None


def test_newer_tokens_of_the_same_account_come_back() -> None:
    assert come_back(after(jwt(exp=SECONDS + 3600, iat=SECONDS)))


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "mallory"},
        {"iss": "https://evil.example"},
        {"aud": ["other"]},
        {"client_id": "another"},
        {"https://api.openai.com/auth": {"chatgpt_account_id": "a-2", "plan": "pro"}},
        {"https://api.openai.com/auth": None},
        {"exp": SECONDS - 1},
        {"exp": "soon"},
        {"exp": None},
        {"iat": SECONDS + 3600},
        {"iat": SECONDS - 7200},
    ],
)
def test_a_token_of_another_account_or_of_an_odd_time_does_not(claims: dict[str, Json]) -> None:
    assert not come_back(after(jwt(**{"exp": SECONDS + 3600, "iat": SECONDS, **claims})))


@pytest.mark.parametrize(
    "found",
    [
        after("opaque-token-instead"),
        after("a.b.c"),
        after(OLD),
        after(None),
        after(jwt(exp=SECONDS + 3600, iat=SECONDS), refresh="rt_11 with blanks in it"),
        after(jwt(exp=SECONDS + 3600, iat=SECONDS), refresh="xx_2222222222222222"),
        after(jwt(exp=SECONDS + 3600, iat=SECONDS), when="2026-04-01T10:00:00Z"),
        after(jwt(exp=SECONDS + 3600, iat=SECONDS), when="2027-04-01T10:00:00Z"),
        after(jwt(exp=SECONDS + 3600, iat=SECONDS), when="now"),
        {**SEED, "last_refresh": "2026-05-01T11:59:00Z"},
    ],
)
def test_what_no_refresh_makes_does_not(found: Json) -> None:
    assert not come_back(found)


@pytest.mark.parametrize(
    ("found", "back"),
    [
        ({"accessToken": "sk-oat-2222222222", "expiresAt": (SECONDS + 60) * 1000}, True),
        ({"accessToken": "sk-oat-2222222222"}, False),
        ({"accessToken": "sk-oat-2222222222", "expiresAt": (SECONDS - 1) * 1000}, False),
        ({"refreshToken": "sk-ort-2222222222", "expiresAt": (SECONDS + 60) * 1000}, False),
        ({"accessToken": jwt(exp=SECONDS + 60), "expiresAt": (SECONDS + 60) * 1000}, False),
        ({"accessToken": "sk-oat-2222222222", "expiresAt": float("inf")}, False),
    ],
)
def test_tokens_that_say_nothing_need_a_later_end(found: dict[str, Json], back: bool) -> None:
    oauth = {
        "accessToken": "sk-oat-1111111111",
        "refreshToken": "sk-ort-1111111111",
        "expiresAt": (SECONDS - 60) * 1000,
    }
    seed, newer = ({"oauth": item} for item in (oauth, {**oauth, **found}))
    given = refreshed(json.dumps(seed).encode(), json.dumps(newer).encode(), OPAQUE, NOW)
    assert (given is not None) is back
