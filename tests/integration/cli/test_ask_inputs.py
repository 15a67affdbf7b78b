"""Unreadable input of `podium ask`: five blocks that say what to do, and no trace left."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration.cli.asking import NEW_LEAD, ROOT, five_blocks, nothing_was_made, object_of
from tests.integration.cli.desk import Desk, Said

pytestmark = pytest.mark.usefixtures("roofing")

DO = ("-M", "execute")


def with_stdin(desk: Desk, given: bytes, *arguments: str) -> Said:
    done = subprocess.run(
        desk.command(*arguments),
        cwd=desk.project,
        env=desk.environ,
        input=given,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


def refused(desk: Desk, said: Said, code: int, words: str) -> None:
    blocks = five_blocks(said)
    assert said.code == code, said.out
    assert words in blocks["INTENT"]
    assert "nothing was done" in blocks["TOOL IMPACT"]
    assert len(said.out) < 5_000
    assert nothing_was_made(desk)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 3, "the message is empty"),
        (("",), 3, "the message is empty"),
        ((" \t\n ",), 3, "the message is empty"),
        (("add\x1b[31m red",), 4, "control character"),
        (("list \udcff",), 4, "control character"),
        (("x" * 100_000,), 4, "100000 characters"),
        ((NEW_LEAD, "-m", NEW_LEAD), 4, "the message is given twice"),
        ((NEW_LEAD, "-M", "destroy"), 4, "unknown mode 'destroy'"),
        ((NEW_LEAD, "-M", ""), 4, "unknown mode ''"),
        ((NEW_LEAD, "--context", "lead_id"), 4, "is not NAME=VALUE"),
        ((NEW_LEAD, "--context", "=x"), 4, "is not NAME=VALUE"),
        ((NEW_LEAD, "--context", "packet={not json"), 4, "is not JSON"),
        ((NEW_LEAD, "--context-file", "nowhere.json"), 4, "cannot read the context file"),
        ((NEW_LEAD, "--context-file", "."), 4, "cannot read the context file"),
        ((NEW_LEAD, "--pack", "plumbing"), 4, "plumbing"),
        ((NEW_LEAD, "--pack", "../../etc"), 4, "etc"),
        ((NEW_LEAD, "--classifier", "nobody"), 4, "nobody"),
        (("APPROVE: apr_0123456789abcdef0123456789abcdef",), 4, "no approval"),
    ],
)
def test_what_cannot_be_read_is_said_and_nothing_is_written(
    desk: Desk, arguments: tuple[str, ...], code: int, words: str
) -> None:
    mode = () if "-M" in arguments else DO
    refused(desk, desk.run("ask", *arguments, *mode), code, words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not JSON"),
        (b"{'a': 1}", "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[1, 2]", "must contain a JSON object, not a list"),
        (b'"text"', "must contain a JSON object, not a single value"),
        (b'{"a": NaN}', "not plain JSON"),
        (b'{"a": "' + b"y" * 3_000_001 + b'"}', "the limit is 3000000"),
        (b" " * 4_000_001, "larger than 4000000 bytes"),
    ],
)
def test_a_context_file_must_hold_an_object_of_a_bearable_size(
    desk: Desk, content: bytes, words: str
) -> None:
    (desk.project / "known.json").write_bytes(content)
    refused(desk, desk.run("ask", NEW_LEAD, *DO, "--context-file", "known.json"), 4, words)


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        (b"x" * 1_000_000, 4, "1000000 characters, the limit is 20000"),
        (b"x" * 4_100_000, 4, "4000000 characters"),
        (b"", 3, "the message is empty"),
        (b"void \x00 invoices", 4, "control character"),
        (b"void \xff invoices", 4, "control character"),
    ],
)
def test_a_message_on_stdin_is_read_like_any_other(
    desk: Desk, given: bytes, code: int, words: str
) -> None:
    refused(desk, desk.run("ask", "-", *DO, stdin=given), code, words)


def test_a_message_may_come_on_stdin(desk: Desk) -> None:
    for mark in ("", "\ufeff"):
        said = desk.run("ask", "-M", "plan", "-", stdin=f"{mark}{NEW_LEAD}\r\n".encode())
        assert said.code == 0
        assert "leads.create (T1) name=Sarah" in five_blocks(said)["PLAN"]


def test_faults_are_an_object_when_that_is_asked_for(desk: Desk) -> None:
    for arguments, code in (((), 3), ((NEW_LEAD, "--pack", "plumbing"), 4)):
        answer = object_of(desk.run("ask", *arguments, "--json"))
        assert answer["exit_code"] == code
        assert answer["next_actions"]
    assert nothing_was_made(desk)


def a_pack(desk: Desk) -> Path:
    folder = desk.project / "packs" / "own"
    shutil.copytree(
        ROOT / "packs" / "roofing", folder, ignore=shutil.ignore_patterns("__pycache__")
    )
    return folder / "tools.registry.json"


def test_a_broken_pack_is_refused_whole_with_its_faults(desk: Desk) -> None:
    registry = a_pack(desk)
    for broken in ("{", "[]", json.dumps({"pack": "own"})):
        registry.write_text(broken)
        refused(desk, desk.run("ask", "system status", *DO, "--pack", "packs/own"), 4, "")


def test_a_pack_of_the_project_is_not_loaded_before_somebody_trusts_it(desk: Desk) -> None:
    registry = a_pack(desk)
    registry.write_text(registry.read_text().replace('"pack": "roofing"', '"pack": "own"', 1))
    said = desk.run("ask", "system status", *DO, "--pack", "own")
    refused(desk, said, 4, "has code that is not trusted")
    assert "podium pack trust" in five_blocks(said)["NEXT ACTIONS"]


def test_settings_that_cannot_be_used_are_told_in_five_blocks(desk: Desk) -> None:
    desk.says("flows: {operator: {pakc: roofing}}\n")
    said = desk.run("ask", "system status", *DO)
    refused(desk, said, 4, "pakc")
    desk.says("queues: {nightly: {}}\n")
    said = desk.run("ask", NEW_LEAD, "-M", "enqueue")
    refused(desk, said, 4, "no queue 'default'")


def test_half_a_character_in_the_context_is_refused(desk: Desk) -> None:
    (desk.project / "known.json").write_text(r'{"name": "Sa\ud800rah"}')
    said = desk.run("ask", NEW_LEAD, *DO, "--context-file", "known.json")
    refused(desk, said, 4, "the context is not plain JSON")


def test_what_cannot_be_seen_in_the_context_does_not_reach_a_terminal(desk: Desk) -> None:
    (desk.project / "known.json").write_text(r'{"name": "Sa\u202e\u001b[31mrah"}')
    said = desk.run("ask", NEW_LEAD, "-M", "plan", "--context-file", "known.json")
    five_blocks(said)
    assert not {"\u202e", "\x1b"} & set(said.out)
