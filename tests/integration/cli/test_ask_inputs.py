"""Unreadable input of `podium ask`: five blocks that say what to do, and no trace left."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration.cli.ask_harness import (
    NEW_LEAD,
    ROOT,
    five_blocks,
    nothing_was_made,
    object_of,
)
from tests.integration.cli.command_runner import CommandResult, CommandRunner

pytestmark = pytest.mark.usefixtures("roofing")

DO = ("-M", "execute")


def with_stdin(cli: CommandRunner, given: bytes, *arguments: str) -> CommandResult:
    done = subprocess.run(
        cli.command(*arguments),
        cwd=cli.project,
        env=cli.environ,
        input=given,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return CommandResult(done.returncode, done.stdout.decode(), done.stderr.decode())


def refused(cli: CommandRunner, result: CommandResult, code: int, words: str) -> None:
    blocks = five_blocks(result)
    assert result.code == code, result.out
    assert words in blocks["INTENT"]
    assert "nothing was done" in blocks["TOOL IMPACT"]
    assert len(result.out) < 5_000
    assert nothing_was_made(cli)


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
def test_unreadable_input_is_reported_and_nothing_is_written(
    cli: CommandRunner, arguments: tuple[str, ...], code: int, words: str
) -> None:
    mode = () if "-M" in arguments else DO
    refused(cli, cli.run("ask", *arguments, *mode), code, words)


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
    cli: CommandRunner, content: bytes, words: str
) -> None:
    (cli.project / "known.json").write_bytes(content)
    refused(cli, cli.run("ask", NEW_LEAD, *DO, "--context-file", "known.json"), 4, words)


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
    cli: CommandRunner, given: bytes, code: int, words: str
) -> None:
    refused(cli, cli.run("ask", "-", *DO, stdin=given), code, words)


def test_a_message_may_come_on_stdin(cli: CommandRunner) -> None:
    for mark in ("", "\ufeff"):
        result = cli.run("ask", "-M", "plan", "-", stdin=f"{mark}{NEW_LEAD}\r\n".encode())
        assert result.code == 0
        assert "leads.create (T1) name=Sarah" in five_blocks(result)["PLAN"]


def test_faults_are_an_object_when_that_is_asked_for(cli: CommandRunner) -> None:
    for arguments, code in (((), 3), ((NEW_LEAD, "--pack", "plumbing"), 4)):
        answer = object_of(cli.run("ask", *arguments, "--json"))
        assert answer["exit_code"] == code
        assert answer["next_actions"]
    assert nothing_was_made(cli)


def a_pack(cli: CommandRunner) -> Path:
    folder = cli.project / "packs" / "own"
    shutil.copytree(
        ROOT / "packs" / "roofing", folder, ignore=shutil.ignore_patterns("__pycache__")
    )
    return folder / "tools.registry.json"


def test_a_broken_pack_is_refused_whole_with_its_faults(cli: CommandRunner) -> None:
    registry = a_pack(cli)
    for broken in ("{", "[]", json.dumps({"pack": "own"})):
        registry.write_text(broken)
        refused(cli, cli.run("ask", "system status", *DO, "--pack", "packs/own"), 4, "")


def test_a_pack_of_the_project_is_not_loaded_before_somebody_trusts_it(cli: CommandRunner) -> None:
    registry = a_pack(cli)
    registry.write_text(registry.read_text().replace('"pack": "roofing"', '"pack": "own"', 1))
    result = cli.run("ask", "system status", *DO, "--pack", "own")
    refused(cli, result, 4, "has code that is not trusted")
    assert "podium pack trust" in five_blocks(result)["NEXT ACTIONS"]


def test_unusable_settings_are_reported_in_five_blocks(cli: CommandRunner) -> None:
    cli.says("flows: {operator: {pakc: roofing}}\n")
    result = cli.run("ask", "system status", *DO)
    refused(cli, result, 4, "pakc")
    cli.says("queues: {nightly: {}}\n")
    result = cli.run("ask", NEW_LEAD, "-M", "enqueue")
    refused(cli, result, 4, "no queue 'default'")


def test_half_a_character_in_the_context_is_refused(cli: CommandRunner) -> None:
    (cli.project / "known.json").write_text(r'{"name": "Sa\ud800rah"}')
    result = cli.run("ask", NEW_LEAD, *DO, "--context-file", "known.json")
    refused(cli, result, 4, "the context is not plain JSON")


def test_what_cannot_be_seen_in_the_context_does_not_reach_a_terminal(cli: CommandRunner) -> None:
    (cli.project / "known.json").write_text(r'{"name": "Sa\u202e\u001b[31mrah"}')
    result = cli.run("ask", NEW_LEAD, "-M", "plan", "--context-file", "known.json")
    five_blocks(result)
    assert not {"\u202e", "\x1b"} & set(result.out)
