"""The real CLIs without hands: Podium's tools are all they have, and Podium performs every call."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from podium.agents.acp import AcpAgent
from podium.agents.headless.claude.command import TOOLBOX as CLAUDE_TOOLBOX
from podium.agents.headless.claude.session import ClaudeDoor
from podium.agents.headless.codex.hook import is_spared, spared_by
from podium.agents.headless.codex.tools import CodexTools, Judged, mcp_only_models
from podium.agents.headless.gemini import program as gemini_layout
from podium.agents.headless.own_tools import NoOwnTools
from podium.core.approval_steps import grant
from podium.core.decisions import Effect, HookAnswer
from podium.core.errors import BadInput, NotPossibleNow
from podium.core.events import ToolCompleted, ToolFailed, ToolRefused, ToolRequested
from podium.core.model import Json
from podium.core.processes import ProcessExit
from podium.ports import Transaction
from podium.testing import FakeLauncher, FakeTurnDoor
from tests.integration.agents.claude_harness import ClaudeHarness, claude_harness
from tests.integration.agents.codex_harness import CodexHarness, codex_harness
from tests.integration.agents.gemini_harness import GeminiHarness, gemini_harness

AnyHarness = ClaudeHarness | CodexHarness | GeminiHarness
MakeHarness = Callable[..., AbstractAsyncContextManager[AnyHarness]]

READS_RESOURCES = ("list_mcp_resource_templates", "list_mcp_resources", "read_mcp_resource")
"""What codex offers with any server, and has no switch for."""


@dataclass(frozen=True)
class Cli:
    """A CLI, and how its model speaks of tools."""

    name: str
    harness: MakeHarness
    prefix: str
    """What stands before the names of Podium's tools in a request to the model."""
    shell: Mapping[str, Json]
    """A call of its own shell that makes the file `made`."""
    extra: tuple[str, ...] = ()

    def without_hands(
        self, folder: Path, steps: Mapping[str, Sequence[Any]], **more: Any
    ) -> AbstractAsyncContextManager[AnyHarness]:
        return self.harness(folder, steps, options={"options": {"hands": False}}, **more)

    def call(self, tool: str, **arguments: Json) -> dict[str, Json]:
        return {"name": f"{self.prefix}{tool}", "arguments": arguments}


CLIS = [
    Cli(
        "gemini",
        gemini_harness,
        "mcp_podium_",
        {"name": "run_shell_command", "arguments": {"command": "touch made"}},
    ),
    Cli(
        "claude",
        claude_harness,
        CLAUDE_TOOLBOX,
        {"name": "Bash", "arguments": {"command": "touch made"}},
    ),
    Cli(
        "codex",
        codex_harness,
        "",
        {"name": "exec_command", "arguments": {"cmd": "touch made"}},
        READS_RESOURCES,
    ),
]
every_cli = pytest.mark.parametrize("cli", CLIS, ids=lambda cli: cli.name)


def made_in(harness: AnyHarness) -> list[str]:
    """Files named `made` in the workspace, or where the CLI sits."""
    return [str(path) for path in harness.workspace.parent.rglob("made*")]


async def happened(harness: AnyHarness) -> list[tuple[str, str]]:
    kinds = (ToolRequested, ToolCompleted, ToolFailed, ToolRefused)
    return [
        (event.type, event.tool)
        for event in await harness.tools.events()
        if isinstance(event, kinds)
    ]


@every_cli
async def test_podiums_tools_are_all_there_is_and_what_they_give_reaches_the_model(
    tmp_path: Path, cli: Cli
) -> None:
    intent: list[Json] = [
        cli.call("write_file", path="made.txt", content="hi\n"),
        cli.call("read_file", path="made.txt"),
        cli.call("read_file", path="missing.txt"),
        cli.call("run_command", command="touch more"),
    ]
    steps = {"work": [{"tools": intent}, "Done."]}
    async with cli.without_hands(tmp_path, steps, denies=("run_command",)) as harness:
        reply = await harness.ask("work", own_tools=("web_search",))
        first, last = harness.server.requests
        offered = {
            f"{cli.prefix}{spec.name}"
            for spec in harness.tools.toolbox.specs()
            if not spec.observed_only and spec.offered != "by_name"
        }
        output = harness.model_messages()
        done = await happened(harness)
        files = sorted(path.name for path in harness.workspace.iterdir())
    assert set(first.tools) == set(last.tools) == {*offered, *cli.extra}
    assert done == [
        ("tool_requested", "write_file"),
        ("tool_completed", "write_file"),
        ("tool_requested", "read_file"),
        ("tool_completed", "read_file"),
        ("tool_requested", "read_file"),
        ("tool_failed", "read_file"),
        ("tool_refused", "run_command"),
    ]
    assert files == [".git", "README", "made.txt"]
    assert "1\\thi" in output
    assert "Error: " in output
    assert "Permission Denied: the rules of the house" in output
    assert "pdt_" not in f"{output}{harness.transcripts.text}"
    assert (reply.text, reply.stopped, reply.waiting_approvals) == ("Done.", None, ())
    assert [warning for warning in reply.warnings if "web_search" in warning]


@every_cli
async def test_a_model_that_asks_for_a_tool_of_the_cli_gets_nothing_done(
    tmp_path: Path, cli: Cli
) -> None:
    intent: list[Json] = [dict(cli.shell)]
    intent += [
        {"name": name, "arguments": {"server": "podium", "uri": "file:///"}} for name in cli.extra
    ]
    steps: dict[str, list[Any]] = {
        "own": [
            {"tools": intent},
            {"tools": [{"name": "write_file", "arguments": {"file_path": "made", "content": "x"}}]},
            {"tools": [{"name": "Write", "arguments": {"file_path": "made", "content": "x"}}]},
            "I could not.",
        ]
    }
    if cli.name == "codex":
        patch = "*** Begin Patch\n*** Add File: made\n+x\n*** End Patch\n"
        steps["own"][1:3] = [{"custom_tool": {"name": "apply_patch", "input": patch}}]
    async with cli.without_hands(tmp_path, steps) as harness:
        reply = await harness.ask("own")
        assert made_in(harness) == []
        assert harness.gate.judged == []
        refused = [tool for kind, tool in await happened(harness) if kind == "tool_refused"]
    assert reply.text == "I could not."
    assert sorted(refused) == sorted(cli.extra)


@every_cli
async def test_a_call_that_waits_is_done_in_the_same_conversation_after_the_yes(
    tmp_path: Path, cli: Cli
) -> None:
    steps = {
        "first": [{"tools": [cli.call("run_command", command="touch made")]}, "I wait."],
        "again": [
            {"tools": [cli.call("run_command", command="touch made")]},
            {"tools": [cli.call("finish", summary="It is made.")]},
            {"tools": [cli.call("write_file", path="made.too", content="x")]},
            "Anything else?",
        ],
    }
    async with cli.without_hands(tmp_path, steps, asks=("run_command",)) as harness:
        first = await harness.ask("first")
        (approval,) = first.waiting_approvals
        output = harness.model_messages()
        assert made_in(harness) == []
        await _grant(harness, approval)
        second = await harness.ask("again", session=first.session, step_key="work#1")
        text = repr(harness.server.requests[-1].body)
        made = made_in(harness)
    assert f"Waiting for approval {approval}; end your turn" in output
    assert first.text == "I wait."
    assert made == [str(harness.workspace / "made")]
    assert (second.text, second.session) == ("It is made.", first.session)
    assert second.waiting_approvals == ()
    assert "SCRIPT:first" in text
    assert "you have called `finish`" in text


async def _grant(harness: AnyHarness, approval_id: str) -> None:
    def say_yes(tx: Transaction) -> None:
        asked = tx.approval(approval_id)
        assert asked is not None
        tx.save_approval(grant(asked, "ann", harness.tools.clock.now()))

    await harness.tools.store.write(say_yes)


async def test_the_hook_of_gemini_refuses_its_own_tools_even_when_they_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings and rules of a CLI with hands, and the hook of one without."""
    monkeypatch.setattr(gemini_layout, "mcp_only_settings", lambda settings, server: settings)
    everything = '[[rule]]\ntoolName = "*"\ndecision = "allow"\npriority = 900\n'
    monkeypatch.setattr(gemini_layout, "RULES", everything)
    steps = {"own": [{"run": "touch made"}, "I could not."]}
    async with CLIS[0].without_hands(tmp_path, steps) as harness:
        await harness.ask("own")
        assert "run_shell_command" in harness.server.requests[0].tools
        assert made_in(harness) == []
        (refused,) = [
            event for event in await harness.tools.events() if isinstance(event, ToolRefused)
        ]
        assert refused.tool == "run_shell_command"
        assert "has not announced the tool use" in refused.reason
        assert "Permission Denied" in harness.model_messages()


def hook(tool: str, arguments: dict[str, Json]) -> dict[str, Json]:
    found: dict[str, Json] = {"tool_name": tool, "tool_input": arguments, "tool_use_id": "u1"}
    return {"subtype": "hook_callback", "input": found}


@pytest.mark.parametrize("tool", ["Bash", "read_file", "mcp__other__read_file", "Task", "own"])
async def test_claude_is_refused_whatever_is_not_podiums_and_the_request_is_recorded(
    tool: str,
) -> None:
    door = FakeTurnDoor(answers=deque([HookAnswer(decision=Effect.ALLOW)]))
    gatekeeper = ClaudeDoor(NoOwnTools(door, CLAUDE_TOOLBOX), "/w", takes_answers=False)
    answer: Any = await gatekeeper.answer(hook(tool, {"command": "ls"}))
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "no tools of its own" in answer["hookSpecificOutput"]["permissionDecisionReason"]
    passed: Any = await gatekeeper.answer(hook(f"{CLAUDE_TOOLBOX}read_file", {"path": "x"}))
    assert passed["hookSpecificOutput"]["permissionDecision"] == "allow"
    assert [asked for _, asked, _ in door.asked] == [f"own {tool}"]


@pytest.mark.parametrize(
    ("item", "is_podiums"),
    [
        ({"type": "mcpToolCall", "server": "podium", "tool": "read_file"}, True),
        ({"type": "mcpToolCall", "server": "other", "tool": "read_file"}, False),
        ({"type": "commandExecution", "command": "ls", "server": "podium"}, False),
        ({"type": "fileChange", "changes": []}, False),
    ],
)
def test_codex_may_do_nothing_but_call_podium(item: dict[str, Any], is_podiums: bool) -> None:
    judged: Judged = CodexTools("/w")
    assert (judged.difference(item) == "") is is_podiums


def test_codexs_hook_asks_for_every_tool_unless_informed_which_are_judged_elsewhere() -> None:
    spared, command = spared_by(["--judged-elsewhere=mcp__podium__", "python", "-IS"])
    assert command == ["python", "-IS"]
    assert is_spared({"tool_name": "mcp__podium__read_file"}, spared)
    assert not is_spared({"tool_name": "Bash"}, spared)
    assert not is_spared({}, spared)
    assert spared_by(["python", "-IS"]) == ("", ["python", "-IS"])
    assert not is_spared({"tool_name": "mcp__podium__read_file"}, "")


@pytest.mark.parametrize(
    "data", [b"", b"no such command", b"[]", b'{"models": 5}', b'{"models": [5]}']
)
async def test_codex_that_does_not_list_its_models_is_not_asked_for_mcp_only(
    data: bytes,
) -> None:
    launcher = FakeLauncher({("codex",): ProcessExit(exit_code=0, stdout=data)})
    with pytest.raises(NotPossibleNow, match="podium doctor"):
        await mcp_only_models("codex", launcher, ("codex",), "/", {})


async def test_over_acp_gemini_cannot_be_without_hands(tmp_path: Path) -> None:
    options = {"options": {"hands": False}}
    with pytest.raises(BadInput, match="kind: gemini"):
        async with gemini_harness(tmp_path, {}, kind=AcpAgent, options=options):
            pass
