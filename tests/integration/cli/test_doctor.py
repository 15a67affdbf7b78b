"""`podium doctor`: what is said of a healthy and of a sick machine."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from podium.app.app import Podium
from podium.app.checkup.check import CheckFinding
from podium.app.checkup.machine import (
    Ways,
    check_any,
    check_approvers,
    check_kinds,
    check_limits,
    check_sandbox,
    confining_ways,
)
from podium.app.checkup.record import check_heads, check_receipt_key, check_traces
from podium.config.configuration import load_configuration
from podium.core.events import NoteTaken
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.cli.test_receipts import RUN, perform
from tests.integration.cli.test_workspaces import git


def checks(cli: CommandRunner, code: int) -> dict[str, Any]:
    result = cli.run("doctor", "--json")
    assert result.code == code, result.out
    assert result.json["healthy"] is (code == 0)
    return {check["name"]: check for check in result.json["checks"]}


def check_with_ways(
    check: Callable[[Podium, Awaitable[Ways]], Awaitable[CheckFinding]],
) -> Callable[[Podium], Awaitable[CheckFinding]]:
    """A check of what the kernel can confine, for `Desk.within`."""
    return lambda podium: check(podium, confining_ways(podium))


async def agents_output(podium: Podium) -> CheckFinding:
    return check_any(podium, [])


@pytest.fixture(autouse=True)
def an_agent(cli: CommandRunner) -> None:
    """In the user's own file, so that the project stays as it is."""
    cli.home.mkdir(exist_ok=True)
    script = cli.home / "script.yaml"
    script.write_text("turns: [{role: any, acts: [{say: Hello.}]}]\n")
    text = f"agents: {{player: {{kind: scripted, script: {script}}}}}\n"
    (cli.home / "config.yaml").write_text(text)


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_a_healthy_machine_is_found_usable_by_trying_it(cli: CommandRunner) -> None:
    cli.add_run()
    found = checks(cli, 0)
    for name in ("settings", "variables", "python", "git", "database", "space", "receipts"):
        assert found[name]["state"] == "ok", found[name]
    assert found["hooks"]["says"] == "a hook reaches Podium, and its denial is returned"
    assert "is intact" in found["database"]["says"]
    for check in found.values():
        assert bool(check["mend"]) is (check["state"] != "ok")


def test_looking_at_an_empty_folder_makes_nothing_there(cli: CommandRunner) -> None:
    assert checks(cli, 0)["database"]["says"].startswith("none yet")
    assert list(cli.project.iterdir()) == []


def test_what_is_missing_or_lies_about_its_health_is_found(
    cli: CommandRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    program(tools, "git", 'test "$1" = --version && echo git version 9.9 || exit 3')
    program(tools, "tmux", "echo tmux 2.9a")
    program(tools, "bwrap", 'while test "$1" != --; do shift; done; shift; exec "$@"')
    program(tools, "gemini", "echo 1.2.3")
    program(tools, "codex", "echo broken >&2; exit 1")
    (tools / "sh").symlink_to(str(shutil.which("sh")))
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("PODIUM_MOED", "sensing")
    found = checks(cli, 1)
    assert found["git"]["state"] == "fail"
    assert "9.9, but: exit code 3" in found["git"]["says"]
    assert (found["tmux"]["state"], found["tmux"]["says"]) == ("warn", "tmux 2.9a is too old")
    assert found["sandbox"]["state"] == "warn"
    assert found["sandbox"]["says"].startswith("Landlock and seccomp guard; network model-only")
    assert "used as a fallback (bubblewrap and exec guard: " in found["sandbox"]["says"]
    assert found["sandbox"]["mend"].startswith("bubblewrap is installed but lacks permissions")
    assert (found["gemini"]["state"], found["gemini"]["says"]) == ("ok", "1.2.3")
    assert (found["codex"]["state"], found["codex"]["says"]) == ("warn", "broken")
    (cli.home / "config.yaml").unlink()
    without_agents = checks(cli, 1)
    assert "npm install" in without_agents["opencode"]["mend"]
    assert without_agents["opencode"]["says"] == "program 'opencode' not found on PATH"
    assert "PODIUM_MOED" in found["variables"]["says"]


def test_broken_settings_and_a_broken_database_do_not_stop_the_doctor(cli: CommandRunner) -> None:
    cli.add_run()
    database = cli.project / ".podium" / "podium.db"
    database.write_bytes(b"garbage" * 1000)
    cli.says("mode: reckless\n")
    found = checks(cli, 1)
    assert found["settings"]["state"] == "fail"
    assert "podium.yaml:1:1: mode" in found["settings"]["says"]
    assert "1024 processes" in found["limits"]["says"]
    assert "disabled" not in found["limits"]["says"], "the defaults apply"
    assert "network None" not in found["sandbox"]["says"]
    assert found["database"]["state"] == "fail"
    assert str(database) in found["database"]["says"]


def test_state_that_cannot_be_made_is_named_with_another_way(
    cli: CommandRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write everywhere, so that the answer of the system is pretended.
    monkeypatch.setattr("os.access", lambda *_: False)
    found = cli.within(check_receipt_key)
    assert (found.state, "cannot be created: " in found.says) == ("fail", True)
    assert "set PODIUM_HOME" in found.mend


def test_a_damaged_receipt_key_is_found(cli: CommandRunner) -> None:
    configuration = load_configuration(cli.environ, project=cli.project)
    configuration.folders.make_state()
    key = Podium(configuration, cli.environ).key_dir / "receipt.key"
    key.parent.mkdir(parents=True)
    key.write_bytes(b"short")
    assert cli.within(check_receipt_key).state == "fail"


def test_a_lost_receipt_key_is_a_failure_and_an_unsound_chain_a_warning(cli: CommandRunner) -> None:
    perform(cli, "a", "b")
    assert checks(cli, 0)["chains"]["says"] == "2 receipts verified"
    with sqlite3.connect(cli.project / ".podium" / "podium.db") as database:
        database.execute("DELETE FROM receipts WHERE number = 1")
    database.close()
    assert checks(cli, 0)["chains"]["state"] == "warn"
    next(cli.home.rglob("receipt.key")).unlink()
    found = checks(cli, 1)["receipts"]
    assert found["state"] == "fail"
    assert "is missing" in found["says"]
    assert not list(cli.home.rglob("receipt.key"))


def test_a_folder_that_may_not_be_written_is_a_failure(cli: CommandRunner) -> None:
    # Nobody may make a file there, not even who may do everything else.
    result = cli.run("doctor", "--json", "--project", "/proc")
    found = {check["name"]: check for check in result.json["checks"]}["folder"]
    assert (result.code, found["state"]) == (1, "fail")
    assert found["says"].startswith("/proc is not writable")


def test_groups_without_members_and_kinds_that_are_not_there_are_warnings(
    cli: CommandRunner,
) -> None:
    cli.says(
        "agents: {dev: {kind: telepathy}}\n"
        "approvers: {owner: [ann]}\n"
        "policy:\n"
        "  rules:\n"
        "    - {name: ship, tool: git_commit, decision: ask, approvals: [owner, legal]}\n"
    )
    podium = Podium(load_configuration(cli.environ, project=cli.project), cli.environ)
    approvers, kinds = check_approvers(podium), check_kinds(podium)
    assert approvers.state == "warn"
    assert approvers.says == "no members: 'legal' (rule 'ship')"
    assert kinds.state == "warn"
    assert "dev ('telepathy')" in kinds.says


@pytest.mark.soak
def test_an_untrusted_command_is_not_even_tried(cli: CommandRunner) -> None:
    program(cli.project, "tool", f"touch {cli.project}/ran; echo 1.0")
    command = str(cli.project / "tool")
    cli.says(f"agents: {{dev: {{kind: gemini, command: [{command}]}}}}\n")
    assert "podium trust" in checks(cli, 0)["agent dev"]["says"]
    assert not (cli.project / "ran").exists()
    cli.run("trust", "--yes")
    found = checks(cli, 0)
    assert (cli.project / "ran").exists()
    assert "no key and no login" in found["agent dev"]["says"]
    assert "gemini" not in found


def test_every_agent_of_podium_yaml_is_looked_at_as_it_would_be_asked(
    cli: CommandRunner, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    program(tools, "mine", "exit 1")
    program(tools, "oc", "echo 1.18.0")
    (cli.home / "config.yaml").write_text(
        "agents:\n"
        f"  own: {{kind: command, command: [{tools / 'mine'}]}}\n"
        "  gone: {kind: command, command: [no-such-program]}\n"
        f"  coder: {{kind: opencode, command: [{tools / 'oc'}], env: {{OPENAI_API_KEY: k}}}}\n"
    )
    found = checks(cli, 0)
    assert (found["agent own"]["state"], found["agent gone"]["state"]) == ("ok", "warn")
    assert "'no-such-program' not found on PATH" in found["agent gone"]["says"]
    assert (
        found["agent coder"]["says"]
        == "opencode 1.18.0, logged in with OPENAI_API_KEY in the settings"
    )


def note(cli: CommandRunner, run_id: str) -> None:
    async def work(podium: Podium) -> None:
        store = await podium.store()
        await store.write(lambda tx: tx.append(run_id, NoteTaken(text="hello")))

    cli.within(work)


def test_a_trace_that_was_left_behind_is_brought_up_to_date(cli: CommandRunner) -> None:
    run = cli.add_run()
    note(cli, run.id)
    trace = cli.project / ".podium" / "runs" / run.id / "execution_trace.jsonl"
    whole = trace.read_bytes()
    trace.unlink()
    assert cli.within(check_traces).says == "added the missing events to 1 trace"
    assert trace.read_bytes() == whole
    assert cli.within(check_traces).says == "complete"


def test_traces_that_cannot_be_written_are_a_warning(cli: CommandRunner) -> None:
    run = cli.add_run()
    note(cli, run.id)
    folder = cli.project / ".podium" / "runs"
    shutil.rmtree(folder)
    folder.write_text("a file where the folder should be")
    found = cli.within(check_traces)
    assert found.state == "warn"
    assert f"trace of run {run.id} not written" in found.says
    assert str(folder) in found.mend


def test_a_chain_whose_head_is_not_anchored_is_a_warning(cli: CommandRunner) -> None:
    perform(cli, "a")
    cli.add_run(run_id=RUN)
    assert cli.within(check_heads).says == "every chain is anchored to its end"
    heads = Podium(load_configuration(cli.environ, project=cli.project), cli.environ).key_dir
    (heads / "heads" / RUN).unlink()
    found = cli.within(check_heads)
    assert (found.state, found.says) == ("warn", f"not anchored to the end: {RUN}")
    assert str(heads) in found.mend


@pytest.mark.soak
def test_heads_of_runs_that_other_hosts_worked_on_are_no_warning(
    cli: CommandRunner, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform(cli, "a")
    perform(cli, "b")
    cli.add_run(run_id=RUN)
    assert cli.run("db", "copy", "--to", postgres_url).code == 0
    monkeypatch.setenv("PODIUM_DATABASE_URL", postgres_url)
    says = "every chain that was sealed on this host is anchored to its end"
    heads = next(cli.home.rglob("heads")) / RUN
    whole = heads.read_text()
    heads.unlink()
    assert checks(cli, 0)["heads"]["says"] == says
    heads.write_text(whole.splitlines(keepends=True)[0])
    found = checks(cli, 0)["heads"]
    assert (found["state"], found["says"]) == ("warn", f"not anchored to the end: {RUN}")
    assert "another host has continued" in found["mend"]


@pytest.mark.soak
def test_sandbox_settings_a_project_is_denied_are_reported_until_it_is_trusted(
    cli: CommandRunner,
) -> None:
    for intent, message in (
        ("none", "ignored in podium.yaml: `none`, allowed only in your own file"),
        ("{network: open}", "`network: open`, allowed only in your own file"),
        (
            "{network: listed, hosts: [a.org]}",
            "`hosts: a.org`, allowed only after `podium trust`",
        ),
    ):
        cli.says(f"sandbox: {intent}\n")
        found = cli.within(check_with_ways(check_sandbox))
        assert found.state == "warn"
        assert message in found.says
    cli.run("trust", "--yes")
    assert "ignored" not in cli.within(check_with_ways(check_sandbox)).says


def test_without_any_agent_it_fails_and_says_what_to_do(
    cli: CommandRunner,
) -> None:
    (cli.home / "config.yaml").unlink()
    found = checks(cli, 1)["agents"]
    assert (found["state"], "none configured" in found["says"]) == ("fail", True)
    assert found["mend"].startswith("`podium init`, then add `agents: {")
    assert cli.run("init", "--example").code == 0
    assert checks(cli, 0)["agents"]["state"] == "ok"


@pytest.mark.parametrize(
    ("flows", "state"),
    [
        ("operator: {classifier: embedded}", "warn"),
        ("sense: {planner: rules}", "warn"),
        ("sense: {planner: gemini}", "fail"),
        ("operator: {pack: roofing}, pipeline: {}", "fail"),
    ],
)
def test_what_is_set_up_without_a_model_needs_no_agent(
    cli: CommandRunner, flows: str, state: str
) -> None:
    (cli.home / "config.yaml").unlink()
    cli.says(f"flows: {{{flows}}}\n")
    found = cli.within(agents_output)
    assert found.state == state
    assert "to podium.yaml" in found.mend


def clis(tmp_path: Path, **scripts: str) -> dict[str, str]:
    """An environment in which only these agent CLIs are installed, and nobody is logged in."""
    for name, script in scripts.items():
        program(tmp_path / "bin", name, script)
    someone = tmp_path / "someone"
    someone.mkdir()
    return {"HOME": str(someone), "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}


def findings(cli: CommandRunner, env: dict[str, str]) -> dict[str, Any]:
    response = cli.run("doctor", "--json", env=env)
    return {check["name"]: check for check in response.json["checks"]}


def test_a_cli_without_a_login_is_a_warning_that_says_how_to_log_in(
    cli: CommandRunner, tmp_path: Path
) -> None:
    (cli.home / "config.yaml").unlink()
    env = clis(tmp_path, claude="echo '2.1.0 (Claude Code)'")
    claude = findings(cli, env)["claude"]
    assert (claude["state"], claude["says"]) == ("warn", "2.1.0 (Claude Code), not logged in")
    assert claude["mend"] == "start `claude` and log in"
    with_key = findings(cli, {**env, "ANTHROPIC_API_KEY": "k-8Tz5"})["claude"]["mend"]
    assert with_key.startswith("to use ANTHROPIC_API_KEY, add secrets: [ANTHROPIC_API_KEY] and ")
    assert with_key.endswith("; or start `claude` and log in")
    assert str(cli.home / "config.yaml") in with_key
    assert "k-8Tz5" not in with_key


def test_agents_of_which_none_can_be_used_are_a_failure(cli: CommandRunner, tmp_path: Path) -> None:
    env = clis(tmp_path, claude="echo 2.1.0")
    (cli.home / "config.yaml").write_text("agents: {brain: {kind: claude}}\n")
    found = findings(cli, env)
    assert (found["agent brain"]["state"], found["agents"]["state"]) == ("warn", "fail")
    assert found["agents"]["says"].startswith("none of them can be used: brain; ")
    (cli.home / "config.yaml").write_text(
        f"agents: {{brain: {{kind: claude}}, player: {{kind: scripted, script: {cli.home}/script.yaml}}}}\n"
    )
    found = findings(cli, env)
    assert (found["agent brain"]["state"], found["agents"]["state"]) == ("warn", "ok")


def test_clis_that_no_agent_needs_are_no_warning(cli: CommandRunner, tmp_path: Path) -> None:
    env = clis(tmp_path, claude="echo 2.1.0", codex="echo broken >&2; exit 1")
    found = findings(cli, env)
    assert (found["claude"]["state"], found["claude"]["says"]) == ("ok", "2.1.0")
    assert (found["gemini"]["state"], found["gemini"]["mend"]) == ("ok", "")
    assert found["gemini"]["says"] == "not installed; none of your agents needs it"
    assert (found["codex"]["state"], found["codex"]["says"]) == ("warn", "broken")


def test_a_folder_where_no_task_can_run_is_a_warning(cli: CommandRunner) -> None:
    found = checks(cli, 0)
    assert found["repository"]["state"] == "warn"
    assert "is not in a git repository" in found["repository"]["says"]
    assert "git init" in found["repository"]["mend"]
    git(cli, "init", "-q", "-b", "main")
    assert "has no commit yet" in checks(cli, 0)["repository"]["says"]
    git(cli, "commit", "-q", "--allow-empty", "-m", "first")
    found = checks(cli, 0)
    assert (found["repository"]["state"], found["repository"]["says"]) == ("ok", "on branch main")
    assert (found["checks"]["state"], "nothing is tested" in found["checks"]["says"]) == (
        "warn",
        True,
    )
    assert "podium help add-a-check" in found["checks"]["mend"]
    cli.says("checks: []\n")
    assert checks(cli, 0)["checks"]["state"] == "ok"


def test_the_last_line_sums_up_and_says_what_fix_did(cli: CommandRunner) -> None:
    git(cli, "init", "-q", "-b", "main")
    git(cli, "commit", "-q", "--allow-empty", "-m", "first")
    warnings = sum(check["state"] == "warn" for check in checks(cli, 0).values())
    assert warnings > 0
    last = cli.run("doctor").out.splitlines()[-1]
    assert (
        last == f"ready, with {warnings} warning{'s' * (warnings > 1)}: some commands may not work"
    )
    (cli.home / "config.yaml").unlink()
    assert cli.run("doctor").out.splitlines()[-1].startswith("not ready: 1 problem, ")
    assert "nothing to fix" in cli.run("doctor", "--fix").out
    (cli.project / ".podium").mkdir(mode=0o755)
    fixed = cli.run("doctor", "--fix").out
    assert "fixed" in fixed
    assert "nothing to fix" not in fixed


def test_every_limit_is_reported_with_who_holds_it(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cli.home / "config.yaml").write_text(
        (cli.home / "config.yaml").read_text() + "sandbox: {temporary_mb: 300, file_mb: 200}\n"
    )
    cli.says("budgets: {run: {usd: 99.0}}\nsandbox: {file_mb: 0}\n")
    says = cli.within(check_with_ways(check_limits)).says
    assert "200 MB in a file (rlimit)" in says
    assert "300 MB of temporary files (mounts, the guard for their sum)" in says
    assert "not enforced" not in says
    assert "25.0 USD" in says
    intent = "`sandbox: file_mb: 0`, `budgets: run: usd: 99.0`"
    assert f"ignored in podium.yaml: {intent}, allowed only in your own file" in says
    monkeypatch.setenv("PODIUM_SANDBOX", "none")
    found = checks(cli, 0)
    limits, sandbox = found["limits"], found["sandbox"]
    text = "not enforced: 300 MB of temporary files (`sandbox: none` mounts nothing)"
    assert text in limits["says"]
    assert limits["state"] == "warn"
    assert (sandbox["state"], sandbox["mend"]) == ("warn", "unset PODIUM_SANDBOX")
