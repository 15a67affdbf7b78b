"""`podium playbook`: what people and programs read of it."""

from __future__ import annotations

import json

import pytest

from podium.jobs.playbook import playbook_schema, profile_schema
from tests.integration.cli.command_runner import CommandRunner
from tests.unit.playbook.files import PLAYBOOK, PROFILE, write


@pytest.fixture(autouse=True)
def _files(cli: CommandRunner) -> None:
    write(cli.project)


def test_a_sound_playbook_is_shown_as_the_prompt_with_sections_and_estimate(
    cli: CommandRunner,
) -> None:
    result = cli.run("playbook", "check", "bump.md", "--input", "version=6.6")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "bump.md: sound, with plugin-profile.yaml"
    assert lines[1].split() == ["SECTION", "CHARACTERS", "TOKENS", "(ESTIMATE)"]
    assert "# Playbook: Bump to `6.6`" in lines
    assert sorted(path.name for path in cli.project.iterdir()) == [
        "bump.md",
        "plugin-profile.yaml",
    ]
    assert not cli.home.exists()


def test_the_json_holds_the_same(cli: CommandRunner) -> None:
    result = cli.run(
        "playbook",
        "check",
        "bump.md",
        "--profile",
        "plugin-profile.yaml",
        "--input",
        "version=6.6",
        "--json",
    )
    record = result.json
    assert (result.code, record["sound"], record["faults"]) == (0, True, [])
    assert record["missing_inputs"] == []
    assert (
        sum(section["estimated_tokens"] for section in record["sections"])
        == record["estimated_tokens"]
    )
    assert record["prompt"].startswith("# Your task")
    assert record["characters"] == len(record["prompt"])


def test_an_input_that_is_not_given_yet_is_a_note(cli: CommandRunner) -> None:
    result = cli.run("playbook", "check", "bump.md")
    assert result.code == 0
    assert "note: input 'version' is required to run the playbook" in result.out


def test_faults_of_both_files_and_of_the_inputs_come_at_once(cli: CommandRunner) -> None:
    write(
        cli.project,
        PROFILE.replace("kind: wordpress\n", "") + "colour: red\n",
        PLAYBOOK + "{{ nope }}\n",
    )
    result = cli.run("playbook", "check", "bump.md", "--input", "x")
    assert result.code == 2
    places = [line.partition(": ")[0] for line in result.out.splitlines()]
    assert places == [
        "plugin-profile.yaml:2:1",
        "plugin-profile.yaml:21:1",
        "bump.md:33:1",
        "--input",
    ]
    assert "4 problems" in result.err
    record = cli.run("playbook", "check", "bump.md", "--json").json
    assert [fault["field"] for fault in record["faults"]] == ["kind", "colour", ""]
    assert (record["sound"], record["prompt"]) == (False, None)


def test_what_the_profile_does_not_give_is_a_fault_of_the_playbook(cli: CommandRunner) -> None:
    write(cli.project, PROFILE.replace(", edit_file", "").replace("  test: composer test\n", ""))
    result = cli.run("playbook", "check", "bump.md")
    assert result.code == 2
    places = [line.partition(": the")[0] for line in result.out.splitlines()]
    assert places == ["bump.md:8:28: allowed_tools[1]", "bump.md:10:11: success[0]"]


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (["version=a\nb"], "one line"),
        (["version=1", "version=2"], "twice"),
        (["version=1", "colour=red"], "no input 'colour'"),
        (["=1"], "NAME=VALUE"),
        (["version=ghp_" + "a1B2" * 9], "looks like a secret"),
        (["version=x`y"], "backtick"),
    ],
)
def test_unusable_inputs_are_refused(cli: CommandRunner, given: list[str], word: str) -> None:
    options = [part for item in given for part in ("--input", item)]
    result = cli.run("playbook", "check", "bump.md", *options)
    assert result.code == 2
    assert word in result.out
    assert "ghp_" not in result.out + result.err


def test_an_input_whose_variable_the_user_calls_no_secret_is_sound(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_PASSWORD", "open-demo-77")
    given = ("playbook", "check", "bump.md", "--input", "version=open-demo-77")
    refused = cli.run(*given)
    assert (refused.code, "open-demo-77" in refused.out) == (2, False)
    assert "looks like a secret" in refused.out
    cli.home.mkdir(exist_ok=True)
    (cli.home / "config.yaml").write_text("not_secret: [DEMO_PASSWORD]\n")
    result = cli.run(*given)
    assert (result.code, "open-demo-77" in result.out) == (0, True), result.out


def test_missing_profile_or_playbook_is_reported(cli: CommandRunner) -> None:
    (cli.project / "plugin-profile.yaml").unlink()
    result = cli.run("playbook", "check", "none.md")
    assert result.code == 2
    assert "--profile FILE" in result.out
    assert "none.md: no such file" in result.out


def test_pages_anywhere_below_the_project_may_be_included(cli: CommandRunner) -> None:
    (cli.project / "books").mkdir()
    (cli.project / "shared.md").write_text("## Shared\n")
    body = "# T\n```include\n../shared.md\n```\n"
    (cli.project / "books" / "main.md").write_text("---\nname: x\n---\n" + body)
    result = cli.run("playbook", "check", "books/main.md")
    assert (result.code, "## 1. Shared" in result.out) == (0, True)


def test_escapes_in_the_files_never_reach_the_terminal(cli: CommandRunner) -> None:
    write(cli.project, PROFILE.replace("Shows pictures.", '"\\e[2J\\u202e"'))
    result = cli.run("playbook", "check", "bump.md", "--input", "version=\x1b]0;x\x07")
    assert result.code == 0
    assert not {"\x1b", "\x07", "\u202e"} & set(result.out)
    write(cli.project, PROFILE + '"\\e[2J": x\n')
    assert "\x1b" not in cli.run("playbook", "check", "bump.md").out


def test_the_schemas_are_printed(cli: CommandRunner) -> None:
    assert json.loads(cli.run("playbook", "schema").out) == profile_schema()
    assert cli.run("playbook", "schema", "--playbook", "--json").json == playbook_schema()
