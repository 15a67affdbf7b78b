"""The start: quick, and with nothing loaded that is not needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from podium import __version__
from podium.cli.app import all_commands
from tests.integration.cli.command_runner import CommandRunner

HEAVY = {
    *("dbos", "fastapi", "starlette", "uvicorn", "openai", "anthropic", "google.genai"),
    *("pydantic_ai", "langgraph", "mcp", "httpx", "httpx2", "apprise", "cryptography", "jinja2"),
    *("websockets", "python_multipart"),
}

LOADED = """
import json, sys
from podium.cli.start import run_command
for arguments in json.loads(sys.argv.pop()):
    run_command(arguments)
sys.stderr.write("\\nLOADED " + " ".join(sys.modules))
"""


def modules_after(cli: CommandRunner, *commands: tuple[str, ...]) -> set[str]:
    """Return the modules that one process has loaded after these commands."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, json.dumps(commands)],
        cwd=cli.project,
        env=cli.environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return set(done.stderr.rpartition("LOADED ")[2].split())


def test_version_is_printed_without_loading_anything(cli: CommandRunner) -> None:
    assert cli.spawn("--version").out == f"podium {__version__}\n"
    loaded = modules_after(cli, ("--version",))
    assert not loaded & {"typer", "pydantic", "rich", "yaml", "asyncio", "sqlite3"}


def test_the_version_is_json_when_asked_for(cli: CommandRunner) -> None:
    assert cli.run("--json", "--version").json == {"version": __version__}


def test_help_lists_every_command_without_loading_one(cli: CommandRunner) -> None:
    result = cli.spawn("--help")
    assert result.code == 0
    assert all(f"\n  {name} " in result.out for name in all_commands())
    loaded = modules_after(cli, ("--help",))
    assert not [name for name in loaded if name.startswith("podium.") and ".commands" in name]
    assert "pydantic" not in loaded


ONE_OF_EVERY_KIND = {
    "init": ("init",),
    "doctor": ("doctor", "--help"),
    "config": ("config", "show"),
    "run": ("run", "tidy up"),
    "intake": ("intake", "--help"),
    "ask": ("ask", "run the tests"),
    "sense": ("sense", "trust"),
    "candidates": ("candidates",),
    "deploy": ("deploy", "WO-X"),
    "plan": ("plan", "rules", "--check"),
    "playbook": ("playbook", "check", "bump.md"),
    "duet": ("duet", "status"),
    "undo": ("undo", "abcd1234#1"),
    "runs": ("runs",),
    "show": ("show", "abcd1234"),
    "logs": ("logs", "abcd1234"),
    "trace": ("trace", "abcd1234"),
    "cancel": ("cancel", "abcd1234"),
    "resume": ("resume", "abcd1234"),
    "retry": ("retry", "abcd1234"),
    "replay": ("replay", "abcd1234"),
    "approvals": ("approvals",),
    "approve": ("approve", "abcd1234"),
    "reject": ("reject", "abcd1234", "--why", "no"),
    "login": ("login",),
    "logout": ("logout",),
    "whoami": ("whoami",),
    "prompts": ("prompts", "--help"),
    "resolve": ("resolve", "abcd1234:act:0", "--happened"),
    "trust": ("trust",),
    "pack": ("pack", "list"),
    "policy": ("policy", "check", "--", "ls"),
    "receipts": ("receipts", "list"),
    "habits": ("habits", "list"),
    "db": ("db", "migrate", "--check"),
    "serve": ("serve", "tokens"),
    "worker": ("worker", "--help"),
    "workers": ("workers",),
    "queues": ("queues",),
    "top": ("top", "--once"),
    "mcp": ("mcp", "--help"),
    "rehearse": ("rehearse", "--help"),
    "demo": ("demo", "--help"),
    "modelserver": ("modelserver", "--help"),
    "agents": ("agents", "list", "--help"),
    "uninstall": ("uninstall", "--dry-run"),
    "help": ("help", "pipeline"),
    "bench": ("bench", "contract", "--help"),
    "workspaces": ("workspaces", "list"),
}


def test_every_command_is_tried_below() -> None:
    assert set(all_commands()) == set(ONE_OF_EVERY_KIND)


def test_no_command_loads_what_it_does_not_need(cli: CommandRunner) -> None:
    loaded = modules_after(cli, *ONE_OF_EVERY_KIND.values())
    assert {all_commands()[name].app.partition(":")[0] for name in ONE_OF_EVERY_KIND} <= loaded
    assert not loaded & HEAVY


def test_quick_commands_load_neither_gate_nor_tools_nor_rich(cli: CommandRunner) -> None:
    cli.add_run()
    loaded = modules_after(cli, ("runs",), ("approve", "abcd1234"))
    assert "podium.store.sqlite_store" in loaded
    rooms = {
        "podium.policy",
        "podium.tools",
        "podium.sandbox",
        "podium.engine",
        "rich",
        "jsonschema",
    }
    assert not loaded & rooms


def test_list_of_runs_needs_no_event_no_redaction_and_no_other_use_case(cli: CommandRunner) -> None:
    cli.add_run()
    loaded = modules_after(cli, ("runs",))
    assert "podium.app.run_list" in loaded
    unneeded = {"podium.core.events", "podium.store.redaction", "podium.app.run_report"}
    assert not loaded & unneeded


def test_policy_check_loads_neither_workspaces_nor_sandbox_nor_database(cli: CommandRunner) -> None:
    loaded = modules_after(cli, ("policy", "check", "--", "ls"))
    assert "podium.policy.rule_gate" in loaded
    rooms = {"podium.git", "podium.sandbox", "podium.store.sqlite_store", "podium.engine"}
    assert not loaded & (
        rooms | {"podium.tools.door", "podium.tools.instruction_marks", "podium.core.events"}
    )


@pytest.mark.soak
def test_status_of_a_pair_that_is_not_up_loads_neither_its_siblings_nor_terminals(
    cli: CommandRunner,
) -> None:
    loaded = modules_after(cli, ("duet", "status"))
    assert "podium.jobs.duet.commands.status" in loaded
    siblings = {"lifecycle", "log", "tasks", "terminals"}
    assert not loaded & {f"podium.jobs.duet.commands.{name}" for name in siblings}
    assert not loaded & {"podium.agents", "podium.sandbox", "podium.policy", "podium.tools"}


@pytest.mark.soak
def test_settings_that_nobody_wrote_need_no_yaml(cli: CommandRunner) -> None:
    cli.add_run()
    assert "yaml" not in modules_after(cli, ("runs",))
    cli.says("mode: dry-run\n")
    assert "yaml" in modules_after(cli, ("runs",))


def test_first_command_in_a_project_makes_the_database_without_sqlalchemy(
    cli: CommandRunner,
) -> None:
    assert not (cli.project / ".podium").exists()
    loaded = modules_after(cli, ("ask", "what is waiting for me"))
    assert list((cli.project / ".podium").glob("*.db"))
    assert "sqlalchemy" not in loaded


MAX_MODULES = {
    ("--version",): 64,
    ("runs",): 430,
    ("show", "RUN"): 453,
    ("approvals",): 438,
    ("approve", "abcd1234"): 447,
    ("policy", "check", "--", "ls"): 593,
    ("duet", "status"): 458,
    ("sense", "--once", "--if-changed"): 166,
    ("ask", "run the tests"): 609,
}
"""Modules that a command may load, with those of Python and of other packages. A twentieth above what was counted
under Python 3.11: what lifts a command over it costs its users time at every start."""


@pytest.mark.sample(4)
@pytest.mark.parametrize("command", MAX_MODULES, ids=" ".join)
def test_command_loads_no_more_modules_than_its_bound(
    cli: CommandRunner, command: tuple[str, ...]
) -> None:
    run = cli.add_run()
    arguments = tuple(run.id if word == "RUN" else word for word in command)
    if command[0] == "sense":
        # The first tick is not idle: it looks for a planner. The second one leaves a note for the third.
        modules_after(cli, arguments)
        modules_after(cli, arguments)
    loaded = modules_after(cli, arguments)
    assert len(loaded) <= MAX_MODULES[command], sorted(loaded)


def test_idle_tick_needs_neither_settings_nor_typer_nor_an_event_loop(cli: CommandRunner) -> None:
    command = ("sense", "--once", "--if-changed")
    loaded = [modules_after(cli, command) for _ in range(3)]
    assert "pydantic" in loaded[1]
    assert not loaded[2] & {
        "pydantic",
        "typer",
        "asyncio",
        "yaml",
        "sqlite3",
        "podium.cli.error_report",
    }


def test_a_message_is_read_without_the_record_the_engine_and_other_flows(
    cli: CommandRunner,
) -> None:
    loaded = modules_after(cli, ("ask", "run the tests"))
    assert "podium.jobs.operator.operator" in loaded
    rooms = {"podium.engine", "podium.policy", "podium.sandbox", "podium.agents", "podium.testing"}
    assert not loaded & (rooms | {"podium.jobs.pipeline.flow", "podium.core.events", "rich"})


ENDING = """
import atexit, sys, threading, weakref
from podium.cli.start import end_process
class Teardown:
    def __del__(self):
        sys.stderr.write("freed ")
kept = Teardown()
atexit.register(sys.stderr.write, "handler ")
if "thread" in sys.argv:
    threading.Thread(target=lambda: sys.stderr.write("thread ")).start()
    going = threading.Event()
    threading.Thread(target=going.wait).start()
    threading._register_atexit(going.set)
sys.stdout.write("answer")
end_process(7)
"""


def test_process_ends_with_its_code_answer_and_exit_handlers_without_freeing_objects() -> None:
    done = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (7, b"answer", b"handler ")


def test_process_with_threads_alive_waits_for_them() -> None:
    done = subprocess.run([sys.executable, "-c", ENDING, "thread"], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (7, b"answer")
    assert done.stderr == b"thread handler freed "


def test_command_imports_without_collecting_garbage_after_every_700_objects(
    cli: CommandRunner,
) -> None:
    code = "import gc; from podium.cli.start import run_command; run_command(['runs']); print(gc.get_stats()[0]['collections'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cli.project,
        env=cli.environ,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert int(done.stdout) < 10


@pytest.mark.parametrize("name", ONE_OF_EVERY_KIND)
def test_the_help_of_every_command_has_an_example(cli: CommandRunner, name: str) -> None:
    words = (
        ONE_OF_EVERY_KIND[name][:2]
        if name
        in (
            "config",
            "pack",
            "policy",
            "receipts",
            "habits",
            "agents",
            "bench",
            "workspaces",
            "db",
            "plan",
            "playbook",
            "duet",
        )
        else (name,)
    )
    result = cli.run(*words, "--help")
    assert result.code == 0
    assert f"Example:\n    podium {name}" in result.out
    assert "--json" in result.out
