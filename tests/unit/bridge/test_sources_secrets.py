"""Secrets that only the word before them gives away do not leave a source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from podium.jobs.sense.io.content import hiding
from podium.jobs.sense.io.sources import FileSource, LogSource, UntrustedSource
from podium.store import Redactor
from tests.unit.bridge.sources_harness import Harness, only

hide = hiding(Redactor({}).text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("login password=hunter2secret failed", "login password=[hidden] failed"),
        ("PGPASSWORD='a b c' psql", "PGPASSWORD=[hidden] psql"),
        ('{"passwd":"hun\\"ter2","n":1}', '{"passwd":[hidden],"n":1}'),
        ('"{\\"token\\": \\"abc\\", \\"n\\": 1}"', '"{\\"token\\": [hidden], \\"n\\": 1}"'),
        ("Authorization: Basic YWJjOmRlZg==", "Authorization: [hidden]"),
        ("http://h/x?api_key=xyz&page=2", "http://h/x?api_key=[hidden]&page=2"),
        ('secret: "half of it', "secret: [hidden] of it"),
    ],
)
def test_value_behind_a_revealing_name_is_hidden(text: str, shown: str) -> None:
    assert hide(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "tokens: 812, secretary: bob",
        "the password is wrong",
        "password=",
        "token: null",
        "token: [redacted:github]",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert hide(text) == text


async def test_logs_and_reports_are_shown_without_them(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    deps = replace(harness.deps, redact=hide)
    harness.write("app.log", "start\nconnect password=hunter2secret\n")
    harness.write(
        "health.json", '{"db": [{"password": "two words", "token": "none", "tokens": 3}]}'
    )
    assert (await only(LogSource(deps, "log", "app.log"))).content == [
        "start",
        "connect password=[hidden]",
    ]
    found = await only(FileSource(deps, "health", "health.json"))
    assert found.content == {"db": [{"password": "[hidden]", "token": "none", "tokens": 3}]}


async def test_a_source_that_nobody_trusted_says_what_to_do_and_shows_no_login(
    tmp_path: Path,
) -> None:
    deps = replace(Harness(tmp_path).deps, redact=hide)
    found = await only(UntrustedSource(deps, "api", "http://me:pw@127.0.0.1/health?token=abc"))
    assert (found.condition, found.place) == (
        "unreadable",
        "http://…@127.0.0.1/health?token=[hidden]",
    )
    assert (
        found.why
        == "podium.yaml is not trusted in its current form; read it, then run `podium trust`"
    )
