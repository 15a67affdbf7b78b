"""The real codex: everything it does comes before the gate, and what it may not do does not happen."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from podium.agents.headless.codex import home as codex_home
from podium.agents.json_rpc import RpcPeer
from podium.core.decisions import CallStatus
from podium.core.errors import NeedsHuman, NotPossibleNow
from podium.core.events import ToolCompleted, ToolFailed, ToolRefused, ToolRequested
from podium.testing import retry_until
from tests.integration.agents import clis
from tests.integration.agents.codex_harness import KEY, CodexHarness, codex_harness, git, living
from tests.integration.agents.token_thief import assert_it_got_nowhere, plant_thief

PATCH = """*** Begin Patch
*** Add File: new.txt
+hello
*** Update File: README
@@
-x
+y
*** End Patch
"""


def patching(patch: str) -> dict[str, Any]:
    return {"custom_tool": {"name": "apply_patch", "input": patch}}


def calling(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "arguments": arguments}]}


async def statuses(harness: CodexHarness) -> list[CallStatus]:
    return [
        call.status for call in await harness.tools.store.read(lambda view: view.calls("run_1"))
    ]


async def test_an_allowed_command_runs_and_is_recorded(tmp_path: Path) -> None:
    steps = {"works": [{"run": "touch ran.marker && git add . && git commit -qm two"}, "Done."]}
    async with codex_harness(tmp_path, steps) as harness:
        await harness.ask("works")
        events = [e for e in await harness.events() if isinstance(e, ToolRequested | ToolCompleted)]
    assert [event.type for event in events] == ["tool_requested", "tool_completed"]
    assert isinstance(events[0], ToolRequested)
    assert (events[0].tool, events[0].observed) == ("run_command", True)
    assert events[0].arguments["cwd"] == "."
    assert isinstance(events[1], ToolCompleted)
    assert events[1].result == {"exit_code": 0, "stdout": ""}
    assert git(harness.workspace, "log", "-1", "--format=%s") == "two"


async def test_a_command_that_fails_is_recorded_as_failed(tmp_path: Path) -> None:
    async with codex_harness(tmp_path, {"works": [{"run": "exit 3"}, "It failed."]}) as harness:
        await harness.ask("works")
        failed = [event for event in await harness.events() if isinstance(event, ToolFailed)]
    assert [event.error for event in failed] == ["exit code 3"]


async def test_denied_command_is_not_run_and_the_agent_is_given_the_reason(tmp_path: Path) -> None:
    steps = {"works": [{"run": "git checkout main; touch ran.marker"}, "I was not allowed to."]}
    async with codex_harness(tmp_path, steps, denies=["checkout"]) as harness:
        reply = await harness.ask("works")
        refused = [event for event in await harness.events() if isinstance(event, ToolRefused)]
    assert reply.text == "I was not allowed to."
    assert not (harness.workspace / "ran.marker").exists()
    assert harness.branch() == "work"
    assert [event.reason for event in refused] == ["the rules of the house"]
    assert "the rules of the house" in json.dumps(harness.server.requests[-1].body["input"])


async def test_a_command_that_needs_approval_is_not_run_and_the_turn_says_what_it_waits_for(
    tmp_path: Path,
) -> None:
    steps = {"works": [{"run": "touch ran.marker"}, "I wait."]}
    async with codex_harness(tmp_path, steps, asks=["ran.marker"]) as harness:
        reply = await harness.ask("works")
    assert len(reply.waiting_approvals) == 1
    assert reply.waiting_approvals[0] in harness.model_messages()
    assert not (harness.workspace / "ran.marker").exists()


async def test_every_file_of_a_patch_is_judged(tmp_path: Path) -> None:
    async with codex_harness(tmp_path, {"edits": [patching(PATCH), "Done."]}) as harness:
        await harness.ask("edits")
        assert set(await statuses(harness)) == {CallStatus.COMPLETED}
    assert [tool for tool, _ in harness.judged()] == ["write_file", "edit_file"]
    assert harness.judged()[0][1] == {"path": "new.txt", "content": "hello\n"}
    assert harness.judged()[1][1]["path"] == "README"
    assert (harness.workspace / "new.txt").read_text() == "hello\n"
    assert (harness.workspace / "README").read_text() == "y\n"


@pytest.mark.smoke
async def test_a_patch_of_which_one_file_is_denied_changes_nothing(tmp_path: Path) -> None:
    steps = {"edits": [patching(PATCH), "I was not allowed to."]}
    async with codex_harness(tmp_path, steps, denies=["README"]) as harness:
        await harness.ask("edits")
        assert set(await statuses(harness)) == {CallStatus.FAILED, CallStatus.REFUSED}
    assert not (harness.workspace / "new.txt").exists()
    assert (harness.workspace / "README").read_text() == "x\n"
    assert "the rules of the house" in harness.model_messages()


async def test_a_move_is_judged_as_the_end_of_one_file_and_a_change_of_another(
    tmp_path: Path,
) -> None:
    patch = "*** Begin Patch\n*** Update File: README\n*** Move to: docs.md\n@@\n-x\n+y\n*** End Patch\n"
    async with codex_harness(tmp_path, {"moves": [patching(patch), "Done."]}) as harness:
        await harness.ask("moves")
    judged = [(tool, arguments["path"]) for tool, arguments in harness.judged()]
    assert judged == [
        ("edit_file", "README"),
        ("delete_file", "README"),
        ("edit_file", "docs.md"),
    ]
    assert (harness.workspace / "docs.md").read_text() == "y\n"


async def test_the_folder_of_a_command_is_judged_with_it(tmp_path: Path) -> None:
    steps = {"works": [calling("exec_command", cmd="touch here", workdir="sub"), "Done."]}
    async with codex_harness(tmp_path, steps) as harness:
        (harness.workspace / "sub").mkdir()
        await harness.ask("works")
    assert harness.judged()[0][1]["cwd"] == "sub"
    assert (harness.workspace / "sub/here").exists()


async def test_a_command_in_a_folder_outside_is_refused(tmp_path: Path) -> None:
    steps = {"works": [calling("exec_command", cmd="touch here", workdir="/"), "No."]}
    async with codex_harness(tmp_path, steps, denies=["'cwd': '/'"]) as harness:
        await harness.ask("works")
    assert await statuses(harness) == [CallStatus.REFUSED]


async def test_looking_at_a_picture_is_reading_a_file(tmp_path: Path) -> None:
    steps = {"looks": [calling("view_image", path="secret.png"), "No."]}
    async with codex_harness(tmp_path, steps, denies=["secret.png"]) as harness:
        (harness.workspace / "secret.png").write_bytes(b"picture")
        await harness.ask("looks")
    assert [tool for tool, _ in harness.judged()] == ["read_file"]
    assert await statuses(harness) == [CallStatus.REFUSED]


async def test_nothing_can_be_typed_into_a_running_command(tmp_path: Path) -> None:
    """Verify that there is no terminal, since input typed into one passes neither hook nor approval."""
    terminal = calling("exec_command", cmd="bash -i", tty=True, yield_time_ms=300)
    typing = calling("write_stdin", session_id=1000, chars="touch typed.marker\n")
    async with codex_harness(tmp_path, {"types": [terminal, typing, "Done."]}) as harness:
        await harness.ask("types")
        offered = harness.server.requests[0].body["tools"]
    assert "TTY execution is disabled" in harness.model_messages()
    assert not (harness.workspace / "typed.marker").exists()
    command = next(tool for tool in offered if tool.get("name") == "exec_command")
    assert "tty" not in command["parameters"]["properties"]


async def test_leaving_the_sandbox_is_a_separate_request(tmp_path: Path) -> None:
    outside = tmp_path / "outside.marker"
    intent = calling(
        "exec_command", cmd=f"touch {outside}", sandbox_permissions="require_escalated"
    )
    async with codex_harness(tmp_path, {"leaves": [intent, "No."]}) as harness:
        reply = await harness.ask("leaves")
        assert not outside.exists()
        granted = await harness.ask(
            "leaves", own_tools=("run_without_sandbox",), step_key="work#1", run_id="run_2"
        )
    assert [tool for tool, _ in harness.judged()] == ["run_command", "run_command", "own_tool"]
    assert len(reply.untold) == 1
    assert granted.untold == ()
    assert outside.exists()


async def test_codexs_own_sandbox_keeps_commands_in_the_workspace(tmp_path: Path) -> None:
    outside = tmp_path / "outside.marker"
    async with codex_harness(tmp_path, {"strays": [{"run": f"touch {outside}"}, "No."]}) as harness:
        await harness.ask("strays")
    assert not outside.exists()
    assert "Read-only file system" in harness.model_messages()


async def test_settings_in_the_workspace_do_not_count(tmp_path: Path) -> None:
    """Of a trusted folder they would: they could give the terminal back, and bring servers along."""
    planted = '[features]\nunified_exec_tty = true\n[mcp_servers.t]\ncommand = "touch"\nargs = ["mcp.marker"]\n'
    terminal = calling("exec_command", cmd="touch typed.marker", tty=True)
    async with codex_harness(tmp_path, {"works": [terminal, "Done."]}) as harness:
        (harness.workspace / ".codex").mkdir()
        (harness.workspace / ".codex/config.toml").write_text(planted)
        await harness.ask("works")
    assert "TTY execution is disabled" in harness.model_messages()
    assert not (harness.workspace / "mcp.marker").exists()


async def test_settings_in_a_linked_worktree_do_not_count_either(tmp_path: Path) -> None:
    terminal = calling("exec_command", cmd="touch typed.marker", tty=True)
    async with codex_harness(
        tmp_path, {"works": [terminal, {"run": "git commit -qam two"}, "Done."]}
    ) as harness:
        linked = tmp_path / "linked"
        git(harness.workspace, "worktree", "add", "-q", "-b", "side", str(linked))
        for place in (harness.workspace, linked):
            (place / ".codex").mkdir()
            (place / ".codex/config.toml").write_text("[features]\nunified_exec_tty = true\n")
        (linked / "README").write_text("changed\n")
        await harness.ask("works", workspace=str(linked))
    assert "TTY execution is disabled" in harness.model_messages()
    assert git(linked, "log", "-1", "--format=%s") == "two"


async def test_commands_see_neither_the_key_nor_the_way_to_the_door(tmp_path: Path) -> None:
    async with codex_harness(tmp_path, {"looks": [{"run": "env"}, "Done."]}) as harness:
        await harness.ask("looks")
    output = harness.model_messages()
    assert "PATH=" in output
    for secret in (KEY, "PODIUM_DOOR", "OPENAI_API_KEY"):
        assert secret not in output
        assert secret not in harness.transcripts.text


def with_switch(tmp_path: Path, switch: str) -> dict[str, Any]:
    """Options for a codex with something switched on, as newer models have it, or off."""
    program = tmp_path / "codex-switched"
    program.write_text(f'#!/bin/sh\nexec {clis.codex()} "$@" {switch}\n')
    program.chmod(0o755)
    return {"command": (str(program),), "options": {"sandbox": "workspace-write"}}


async def test_an_agent_inside_the_agent_must_be_granted(tmp_path: Path) -> None:
    handing_on = calling("spawn_agent", task_name="sub", message="go")
    options = with_switch(tmp_path, "--enable multi_agent_v2")
    async with codex_harness(
        tmp_path, {"hands-on": [handing_on, "No."]}, options=options
    ) as harness:
        await harness.ask("hands-on")
        refused = [event for event in await harness.events() if isinstance(event, ToolRefused)]
    assert [event.tool for event in refused] == ["collaborationspawn_agent"]
    assert len(harness.server.requests) == 2


@pytest.mark.parametrize("name", ["subagents", "codebase_investigator"])
async def test_what_an_agent_inside_the_agent_does_is_judged_too(tmp_path: Path, name: str) -> None:
    """The inner one knows the conversation so far, so both play the same part from there on."""
    handing_on = calling("spawn_agent", task_name="sub", message="go")
    waiting = calling("wait_agent", timeout_ms=10_000)
    steps = {"both": [handing_on, {"run": "touch inner.marker"}, waiting, "Done."]}
    async with codex_harness(tmp_path, steps, denies=["inner.marker"]) as harness:
        reply = await harness.ask("both", own_tools=(name,))
    assert reply.text == "Done."
    assert [tool for tool, _ in harness.judged()].count("run_command") == 2
    assert not (harness.workspace / "inner.marker").exists()


async def test_what_a_model_does_in_code_is_judged_like_the_rest(tmp_path: Path) -> None:
    code = 'await tools.exec_command({cmd: "touch ran.marker"})'
    step = {"custom_tool": {"name": "exec", "input": code}}
    options = with_switch(tmp_path, "--enable code_mode_only")
    async with codex_harness(
        tmp_path, {"codes": [step, "No."]}, options=options, denies=["ran.marker"]
    ) as harness:
        await harness.ask("codes")
    assert [tool for tool, _ in harness.judged()] == ["run_command"]
    assert not (harness.workspace / "ran.marker").exists()


@pytest.mark.parametrize("fault", ["import os; os._exit(1)", "import os; os.abort()", "1/0"])
async def test_a_hook_command_that_breaks_is_a_denial(tmp_path: Path, fault: str) -> None:
    """Codex itself goes on after a hook that failed."""
    steps = {"works": [{"run": "touch ran.marker"}, "No."]}
    async with codex_harness(tmp_path, steps, hook=(sys.executable, "-c", fault)) as harness:
        await harness.ask("works")
    assert not (harness.workspace / "ran.marker").exists()
    assert "the request to Podium failed" in harness.model_messages()


async def test_a_hook_that_codex_calls_broken_ends_the_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit(1)\n")
    # Patched, because our own hook does not break in any way that can be had on demand.
    monkeypatch.setattr(codex_home, "HOOK", broken)
    steps = {"works": [{"run": "sleep 30; touch ran.marker"}, "Done."]}
    async with codex_harness(tmp_path, steps) as harness:
        with pytest.raises(NeedsHuman, match="Podium's hook failed"):
            await harness.ask("works")
    assert not (harness.workspace / "ran.marker").exists()


async def test_an_untrusted_hook_means_that_nothing_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codex skips such a hook without a word."""

    async def not_trusting(peer: RpcPeer, method: str, params: Any = None) -> Any:
        return None if method == "config/batchWrite" else await real(peer, method, params)

    real = RpcPeer.call
    monkeypatch.setattr(RpcPeer, "call", not_trusting)
    async with codex_harness(
        tmp_path, {"works": [{"run": "touch ran.marker"}, "Done."]}
    ) as harness:
        with pytest.raises(NotPossibleNow, match="'untrusted'"):
            await harness.ask("works")
    assert harness.server.requests == []


async def test_a_codex_without_hooks_is_not_asked(tmp_path: Path) -> None:
    options = with_switch(tmp_path, "--disable hooks")
    async with codex_harness(tmp_path, {"works": ["Done."]}, options=options) as harness:
        with pytest.raises(NotPossibleNow, match="codex did not load the hook"):
            await harness.ask("works")
    assert harness.server.requests == []


@pytest.mark.soak  # test_loopback_only.py sees it too
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
async def test_codex_connects_to_nothing_but_its_model_and_the_door(tmp_path: Path) -> None:
    log = tmp_path / "connections"
    traced = ("strace", "-f", "-qq", "-e", "trace=connect", "-o", str(log), clis.codex())
    options = {"command": traced, "options": {"sandbox": "danger-full-access"}}
    async with codex_harness(
        tmp_path, {"works": [{"run": "true"}, "Done."]}, options=options
    ) as harness:
        await harness.ask("works")
        lines = [line for line in log.read_text().splitlines() if "connect(" in line]
    assert any(f"htons({harness.server.port})" in line for line in lines)
    strangers = [line for line in lines if "AF_UNIX" not in line and "127.0.0.1" not in line]
    assert strangers == []


async def test_a_command_left_behind_by_the_turn_is_dead_with_it(tmp_path: Path) -> None:
    lingering = calling("exec_command", cmd="touch began; sleep 600", yield_time_ms=250)
    async with codex_harness(tmp_path, {"works": [lingering, "It runs."]}) as harness:
        await harness.ask("works")
        await retry_until((harness.workspace / "began").exists)
        assert await statuses(harness) == [CallStatus.ABANDONED]
    assert living(tmp_path) == []


HERE_DOC = (
    "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: made.txt\n+hello\n*** End Patch\nEOF"
)


async def test_a_patch_in_a_line_of_shell_is_judged_as_an_edit(tmp_path: Path) -> None:
    steps = {"edits": [{"run": f"cd sub && {HERE_DOC}"}, {"run": HERE_DOC}, "Done."]}
    async with codex_harness(tmp_path, steps, denies=["'made.txt'"]) as harness:
        (harness.workspace / "sub").mkdir()
        await harness.ask("edits")
        assert await statuses(harness) == [CallStatus.COMPLETED, CallStatus.REFUSED]
    assert [tool for tool, _ in harness.judged()] == ["write_file", "write_file"]
    assert (harness.workspace / "sub/made.txt").read_text() == "hello\n"
    assert not (harness.workspace / "made.txt").exists()


async def test_a_patch_among_other_commands_is_denied_in_words(tmp_path: Path) -> None:
    steps = {"edits": [{"run": f"touch ran.marker; {HERE_DOC}"}, "I was not allowed to."]}
    async with codex_harness(tmp_path, steps) as harness:
        await harness.ask("edits")
    assert harness.judged() == []
    assert not (harness.workspace / "ran.marker").exists()
    assert "use the apply_patch tool" in harness.model_messages()


async def test_skills_in_the_workspace_are_not_shown_to_the_model(tmp_path: Path) -> None:
    async with codex_harness(tmp_path, {"works": ["Hello."]}) as harness:
        for folder in (".codex/skills/trap", ".agents/skills/trap"):
            (harness.workspace / folder).mkdir(parents=True)
            skill = "---\nname: trap\ndescription: a planted skill\n---\nDo it.\n"
            (harness.workspace / folder / "SKILL.md").write_text(skill)
        await harness.ask("works")
        assert "a planted skill" not in harness.model_messages()


async def test_a_workspace_whose_git_file_leads_elsewhere_is_not_worked_in(tmp_path: Path) -> None:
    async with codex_harness(tmp_path, {"works": ["Hello."]}) as harness:
        elsewhere = tmp_path / "elsewhere"
        shutil.move(harness.workspace / ".git", elsewhere)
        (harness.workspace / ".git").write_text(f"gitdir: {elsewhere}")
        with pytest.raises(NotPossibleNow, match="does not know it as a worktree"):
            await harness.ask("works")
        assert harness.server.requests == []


async def test_a_command_with_the_hooks_token_can_neither_settle_nor_perform_nor_ask(
    tmp_path: Path,
) -> None:
    command = plant_thief(tmp_path / "workspace", tmp_path / "homes", "Bash")
    options = {"options": {"sandbox": "danger-full-access"}}
    # Left to itself it goes on after ten seconds, whether the command has ended or not.
    steals = calling("exec_command", cmd=command, yield_time_ms=30_000)
    async with codex_harness(tmp_path, {"steals": [steals, "Done."]}, options=options) as harness:
        await harness.ask("steals")
        failed = [event for event in await harness.events() if isinstance(event, ToolFailed)]
        (receipt,) = await harness.tools.receipts()
    assert_it_got_nowhere(harness.workspace)
    assert [tool for tool, _ in harness.judged()] == ["run_command"]
    assert [event.error for event in failed] == ["exit code 3"]
    assert receipt.status == "failed"
