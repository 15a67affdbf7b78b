"""Home of opencode, names of its tools, and workspaces in which it does not work."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from podium.agents.deps import AgentDeps, AgentOptions
from podium.agents.headless.home import private_home
from podium.agents.headless.opencode.agent import TRIED_VERSION, OpencodeCliAgent
from podium.agents.headless.opencode.home import (
    environment_for,
    grantable_tools,
    lay_out,
    login_of,
    own_options,
    permission_for,
    refuse_what_it_would_obey,
    translate,
)
from podium.core.errors import AgentUnavailable, BadInput, ConfigInvalid, NotPossibleNow
from podium.core.processes import ProcessExit
from podium.core.turns import Turn, TurnLimits, unknown_names
from podium.testing import (
    FakeConfinementProvider,
    FakeHookDoors,
    FakeLauncher,
    FixedClock,
    MemoryTranscripts,
    retry_until,
)
from podium.tools import Registry, builtin_tools, own_tools

SERVED: dict[str, Any] = {
    "name": "coder",
    "model": "m",
    "base_url": "http://127.0.0.1:9/v1",
    "env": {"OPENAI_API_KEY": "secret://KEY", "PLAIN": "x"},
}


def deps_in(folder: Path, launcher: FakeLauncher | None = None) -> AgentDeps:
    return AgentDeps(
        confinement_provider=FakeConfinementProvider(),
        launcher=launcher or FakeLauncher(),
        doors=FakeHookDoors(),
        transcripts=MemoryTranscripts(),
        clock=FixedClock(),
        hook_command=("/bin/hook", "it"),
        homes=folder / "homes",
        user_home=folder / "person",
        environ={},
    )


def turn_in(folder: Path, **changes: Any) -> Turn:
    given = {"run_id": "run_1", "step_key": "s", "role": "r", "prompt": "go", **changes}
    return Turn(workspace=str(folder), **given)


def laid_out(folder: Path, options: AgentOptions, **turn: Any) -> dict[str, Any]:
    """Return what lies in the home: every JSON file by its name."""
    deps, asked = deps_in(folder), turn_in(folder, **turn)
    with private_home(deps, asked, "coder", logins=login_of(options, deps)) as home:
        lay_out(home, asked, options, own_options(options), deps, {"PODIUM_DOOR": "/d"}, "1.2.3")
        assert home.path.joinpath(".config/opencode/node_modules").is_dir()
        return {file.name: json.loads(file.read_text()) for file in home.path.rglob("*.json")}


def test_without_the_plugin_there_are_no_tools(tmp_path: Path) -> None:
    found = laid_out(tmp_path, AgentOptions(**SERVED))
    settings = found["opencode.json"]
    assert settings["permission"] == {"*": "deny"}
    assert len(settings["plugin"]) == 1
    assert settings["plugin"][0].startswith("file:///")
    assert found["door.json"]["permission"]["*"] == "allow"
    assert found["door.json"]["command"] == ["/bin/hook", "it"]
    assert found["door.json"]["env"]["PODIUM_DOOR"] == "/d"


def test_programs_of_the_workspace_are_not_run_by_themselves(tmp_path: Path) -> None:
    settings = laid_out(tmp_path, AgentOptions(**SERVED))["opencode.json"]
    assert (settings["formatter"], settings["lsp"]) == (False, False)


def test_the_key_is_named_in_the_settings_and_hidden_from_commands(tmp_path: Path) -> None:
    found = laid_out(tmp_path, AgentOptions(**SERVED))
    served = found["opencode.json"]["provider"]["podium"]["options"]
    assert served == {"baseURL": "http://127.0.0.1:9/v1", "apiKey": "{env:OPENAI_API_KEY}"}
    assert found["door.json"]["hidden"] == ["OPENAI_API_KEY"]


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("http://127.0.0.1:9", "/v1"),
        ("http://127.0.0.1:9/", "/v1"),
        ("http://127.0.0.1:9/api/", "/api"),
    ],
)
def test_a_server_without_a_path_is_asked_below_v1(given: str, asked: str, tmp_path: Path) -> None:
    settings = laid_out(tmp_path, AgentOptions(**{**SERVED, "base_url": given}))["opencode.json"]
    assert settings["provider"]["podium"]["options"]["baseURL"] == f"http://127.0.0.1:9{asked}"


def test_nothing_is_installed_at_run_time(tmp_path: Path) -> None:
    found = laid_out(tmp_path, AgentOptions(**SERVED))
    locked = found["package-lock.json"]["packages"][""]["dependencies"]
    assert locked == found["package.json"]["dependencies"] == {"@opencode-ai/plugin": "1.2.3"}


def test_a_login_is_copied_only_where_no_server_is_named(tmp_path: Path) -> None:
    login = tmp_path / "person/.local/share/opencode/auth.json"
    login.parent.mkdir(parents=True)
    login.write_text('{"anthropic": {"type": "api", "key": "k"}}')
    own = AgentOptions(name="coder", model="anthropic/claude-sonnet-4-5")
    assert laid_out(tmp_path, own)["auth.json"] == {"anthropic": {"type": "api", "key": "k"}}
    assert "auth.json" not in laid_out(tmp_path, AgentOptions(**SERVED))


def test_what_a_project_says_to_agents_is_still_read_unless_it_leads_elsewhere(
    tmp_path: Path,
) -> None:
    words = tmp_path / "AGENTS.md"
    words.write_text("be kind")
    options = AgentOptions(**SERVED)
    assert laid_out(tmp_path, options)["opencode.json"]["instructions"] == [str(words)]
    words.rename(tmp_path / "elsewhere")
    words.symlink_to(tmp_path / "elsewhere")
    assert laid_out(tmp_path, options)["opencode.json"]["instructions"] == []


def test_its_own_variables_win_over_those_of_the_settings(tmp_path: Path) -> None:
    env = {"OPENCODE_DISABLE_PROJECT_CONFIG": "", "HOME": "/elsewhere", "MINE": "1"}
    with private_home(deps_in(tmp_path), turn_in(tmp_path), "coder") as home:
        found = environment_for(AgentOptions(name="coder", env=env), home, {})
    assert (found["OPENCODE_DISABLE_PROJECT_CONFIG"], found["MINE"]) == ("1", "1")
    assert found["HOME"] == str(home.path)


def test_settings_that_do_not_fit_are_named() -> None:
    with pytest.raises(BadInput, match=r"'coder' has a base_url but no model"):
        own_options(AgentOptions(name="coder", base_url="http://127.0.0.1:9"))
    with pytest.raises(ConfigInvalid, match=r"options of agent 'coder': retries"):
        own_options(AgentOptions(name="coder", options={"retries": -1}))
    with pytest.raises(ConfigInvalid, match=r"dance"):
        own_options(AgentOptions(name="coder", options={"dance": 1}))


def test_what_a_role_was_not_given_is_denied(tmp_path: Path) -> None:
    plain = permission_for(turn_in(tmp_path))
    assert {plain[name] for name in ("webfetch", "websearch", "task", "skill")} == {"deny"}
    given = permission_for(turn_in(tmp_path, own_tools=("web_fetch", "subagents")))
    assert (given["webfetch"], given["task"], given["websearch"]) == ("allow", "allow", "deny")
    by_other_words = ("WebFetch", "codebase_investigator", "google_web_search")
    same = permission_for(turn_in(tmp_path, own_tools=by_other_words))
    assert {same[name] for name in ("webfetch", "task", "websearch")} == {"allow"}


def test_only_what_it_has_counts_as_given() -> None:
    wished = ("web_fetch", "Task", "google_web_search", "dancing")
    served = AgentOptions(**SERVED)
    assert unknown_names(wished, grantable_tools(served)) == ("google_web_search", "dancing")
    searching = AgentOptions(name="coder", env={"OPENCODE_ENABLE_EXA": "1"})
    assert unknown_names(wished, grantable_tools(searching)) == ("dancing",)
    assert unknown_names(wished, grantable_tools(AgentOptions(name="c", model="opencode/x"))) == (
        "dancing",
    )


def test_different_edits_are_different_calls() -> None:
    long = "x" * 600_000
    edits: list[tuple[str, dict[str, Any]]] = [
        ("edit", {"filePath": "a", "oldString": old, "newString": new, **more})
        for old, new in (("a", "b\n+ c"), ("a\n+ b", "c"), ("a", "b"), ("a", "b\n"), ("a", long))
        for more in ({}, {"replaceAll": True})
    ]
    edits += [
        ("apply_patch", {"kind": "add", "path": "a", "change": text})
        for text in ("+x", long, f"{long}y", f"{long}z")
    ]
    edits += [("todowrite", {"todos": [text]}) for text in (long, f"{long}y")]
    made = {json.dumps(translate(tool, arguments)) for tool, arguments in edits}
    assert len(made) == len(edits)
    assert all(len(call) < 600_000 for call in made)


CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("bash", {"command": "ls", "description": "x"}, "run_command"),
    ("bash", {"command": "ls", "workdir": "src"}, "run_command"),
    ("read", {"filePath": "a", "offset": 3}, "read_file"),
    ("write", {"filePath": "a", "content": "b"}, "write_file"),
    ("edit", {"filePath": "a", "oldString": "x", "newString": "y"}, "edit_file"),
    ("apply_patch", {"kind": "add", "path": "a", "change": "+x"}, "edit_file"),
    ("apply_patch", {"kind": "move to", "path": "a", "change": "+x"}, "edit_file"),
    ("apply_patch", {"kind": "delete", "path": "a", "change": "+x"}, "delete_file"),
    ("glob", {"pattern": "*"}, "list_files"),
    ("grep", {"pattern": "x", "include": "*.py"}, "search_text"),
    ("webfetch", {"url": "http://a", "format": "text"}, "web_fetch"),
    ("websearch", {"query": "x"}, "web_search"),
    ("task", {"description": "d", "prompt": "p", "subagent_type": "general"}, "ask_subagent"),
    ("todowrite", {"todos": []}, "keep_notes"),
    ("invalid", {"tool": "x", "error": "y"}, "keep_notes"),
    ("skill", {"name": "x"}, "own_tool"),
    ("evil_mcp_tool", {"a": 1}, "own_tool"),
]


@pytest.mark.parametrize(("tool", "arguments", "name"), CALLS)
def test_every_one_of_its_tools_is_registered(
    tool: str, arguments: dict[str, Any], name: str
) -> None:
    found, intent = translate(tool, arguments)
    assert found == name
    spec = Registry((*builtin_tools(), *own_tools())).spec(found)
    assert spec is not None
    assert set(intent) <= set(spec.input_schema["properties"])
    assert set(spec.input_schema.get("required", ())) <= set(intent)


OBEYED: dict[str, str] = {
    ".opencode/plugin/evil.js": "",
    ".opencode/plugins/evil.ts": "",
    "opencode.json": '{"plugin": ["./evil.js"]}',
    "opencode.jsonc": '{"model": "m", "plugins": ["evil"]}',
    ".opencode/opencode.json": '{"references": {"x": "evil/evil"}}',
    ".opencode/opencode.jsonc": '{"skills": ["https://example.org/"]}',
    "../opencode.json": '{"\\u0070lugin": []}',
    "../../.opencode/plugin/evil.js": "",
}


@pytest.mark.parametrize("name", OBEYED)
def test_it_does_not_work_where_it_would_obey_something_unasked(name: str, tmp_path: Path) -> None:
    workspace = tmp_path / "a/b"
    workspace.mkdir(parents=True)
    refuse_what_it_would_obey("coder", workspace)
    place = workspace / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(OBEYED[name])
    with pytest.raises(NotPossibleNow, match=r"'coder' cannot work in .*before it asks Podium"):
        refuse_what_it_would_obey("coder", workspace)


@pytest.mark.parametrize("content", ["// words\n{}", "{", "[" * 100_000, "\ud800", "x" * 1_000_001])
def test_settings_that_nobody_can_read_are_not_risked(content: str, tmp_path: Path) -> None:
    (tmp_path / "opencode.json").write_text(content, errors="surrogatepass")
    with pytest.raises(NotPossibleNow):
        refuse_what_it_would_obey("coder", tmp_path)


def test_a_pipe_in_the_place_of_settings_is_not_waited_on(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "opencode.json")
    with pytest.raises(NotPossibleNow, match="not a regular file"):
        refuse_what_it_would_obey("coder", tmp_path)


def test_settings_that_have_no_effect_are_let_be(tmp_path: Path) -> None:
    harmless = '{"$schema": "s", "model": "m", "permission": {"*": "allow"}, "mcp": {}}'
    (tmp_path / "opencode.json").write_text(harmless)
    (tmp_path / ".opencode/agent").mkdir(parents=True)
    refuse_what_it_would_obey("coder", tmp_path)
    (tmp_path / "opencode.json").write_text(harmless.replace("mcp", "plugin"))
    with pytest.raises(NotPossibleNow):
        refuse_what_it_would_obey("coder", tmp_path)


async def test_a_model_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    known = ProcessExit(exit_code=0, stdout=TRIED_VERSION.encode())
    launcher = FakeLauncher(
        {("opencode", "--version"): known, ("opencode",): None, ("git",): ProcessExit(exit_code=1)}
    )
    options = AgentOptions(**SERVED, options={"silence_seconds": 0.05})
    agent = OpencodeCliAgent(options, deps_in(tmp_path, launcher))
    with pytest.raises(AgentUnavailable, match="received nothing from its model") as caught:
        await agent.ask(turn_in(tmp_path, limits=TurnLimits(seconds=None)))
    assert caught.value.usage is not None
    assert not caught.value.usage.complete
    assert not any(process.alive for process in launcher.processes)


async def test_a_turn_that_is_cancelled_ends_its_program(tmp_path: Path) -> None:
    known = ProcessExit(exit_code=0, stdout=TRIED_VERSION.encode())
    launcher = FakeLauncher(
        {("opencode", "--version"): known, ("opencode",): None, ("git",): ProcessExit(exit_code=1)}
    )
    agent = OpencodeCliAgent(AgentOptions(**SERVED), deps_in(tmp_path, launcher))
    asking = asyncio.create_task(agent.ask(turn_in(tmp_path, limits=TurnLimits(seconds=None))))
    await retry_until(lambda: any(process.alive for process in launcher.processes))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not any(process.alive for process in launcher.processes)
