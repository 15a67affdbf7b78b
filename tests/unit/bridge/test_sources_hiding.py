"""Secrets that only the word before them gives away do not leave a source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from podium.jobs.sense.io.content import hiding
from podium.jobs.sense.io.sources import FileSource, LogSource, UntrustedSource
from podium.store import Redactor
from tests.unit.bridge.sources_rig import Rig, only

hide = hiding(Redactor({}).text)


@pytest.mark.parametrize(
    ("said", "shown"),
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
def test_what_stands_behind_a_telling_name_is_hidden(said: str, shown: str) -> None:
    assert hide(said) == shown


@pytest.mark.parametrize(
    "said",
    [
        "tokens: 812, secretary: bob",
        "the password is wrong",
        "password=",
        "token: null",
        "token: [redacted:github]",
    ],
)
def test_what_is_no_secret_stays(said: str) -> None:
    assert hide(said) == said


async def test_logs_and_reports_are_shown_without_them(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    kit = replace(rig.kit, redact=hide)
    rig.write("app.log", "start\nconnect password=hunter2secret\n")
    rig.write("health.json", '{"db": [{"password": "two words", "token": "none", "tokens": 3}]}')
    assert (await only(LogSource(kit, "log", "app.log"))).content == [
        "start",
        "connect password=[hidden]",
    ]
    found = await only(FileSource(kit, "health", "health.json"))
    assert found.content == {"db": [{"password": "[hidden]", "token": "none", "tokens": 3}]}


async def test_a_source_that_nobody_trusted_says_what_to_do_and_shows_no_login(
    tmp_path: Path,
) -> None:
    kit = replace(Rig(tmp_path).kit, redact=hide)
    found = await only(UntrustedSource(kit, "api", "http://me:pw@127.0.0.1/health?token=abc"))
    assert (found.condition, found.place) == (
        "unreadable",
        "http://…@127.0.0.1/health?token=[hidden]",
    )
    assert (
        found.why
        == "podium.yaml is not trusted in its current form; read it, then run `podium trust`"
    )
