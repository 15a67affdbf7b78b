"""Handling of codex's messages: its actions are compared with what was judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podium.agents.headless.codex.session import CodexSession, Meter, is_piece
from podium.agents.headless.codex.tools import Judged
from podium.agents.json_rpc import RpcError
from podium.core.decisions import Effect, HookAnswer
from podium.core.errors import BudgetSpent, NeedsHuman
from podium.core.turns import TurnLimits
from podium.testing import FakeHookDoors

HOOKS = "/home/.codex/hooks.json"


class Talk:
    """A talk with codex's part left to the test."""

    def __init__(self, workspace: Path, *answers: HookAnswer, **limits: Any) -> None:
        self.workspace = str(workspace)
        self.door = FakeHookDoors(answers=answers).door
        self.judged = Judged(self.workspace)
        self.meter = Meter("codex", TurnLimits(**limits))
        self.talk = CodexSession("codex", self.door, self.judged, self.meter, HOOKS)

    async def hook(
        self,
        use: str,
        status: str = "completed",
        source: str = HOOKS,
        method: str = "hook/completed",
    ) -> None:
        run = {
            "id": f"pre-tool-use:0:{source}:{use}",
            "eventName": "preToolUse",
            "displayOrder": 0,
            "sourcePath": source,
            "status": status,
            "entries": [{"kind": "error", "text": "hook exited with code 1"}],
        }
        await self.talk.hear(method, {"run": run})

    async def begins(self, **item: Any) -> None:
        await self.talk.hear("item/started", {"item": item})

    async def ends(self, **item: Any) -> None:
        await self.talk.hear("item/completed", {"item": item})

    def command(self, use: str) -> dict[str, Any]:
        return {"type": "commandExecution", "id": use, "command": "ls", "cwd": self.workspace}


async def test_a_command_that_was_judged_goes_on_and_is_settled(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.judged.translate("Bash", {"command": "ls", "cwd": talk.workspace, "use": "u1"})
    await talk.hook("u1")
    await talk.begins(**talk.command("u1"))
    await talk.ends(**talk.command("u1"), status="completed", exitCode=0)
    assert talk.door.settled["u1"] is True


async def test_a_command_that_was_never_judged_ends_the_turn(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    with pytest.raises(NeedsHuman, match="started before Podium had allowed it"):
        await talk.begins(**talk.command("u1"))


async def test_the_yes_of_another_hook_does_not_count(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.judged.translate("Bash", {"command": "ls", "cwd": talk.workspace, "use": "u1"})
    await talk.hook("u1", source="/workspace/.codex/hooks.json")
    with pytest.raises(NeedsHuman):
        await talk.begins(**talk.command("u1"))


async def test_a_command_in_another_folder_than_was_judged_ends_the_turn(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.judged.translate("Bash", {"command": "ls", "cwd": talk.workspace, "use": "u1"})
    await talk.hook("u1")
    with pytest.raises(NeedsHuman, match="instead of"):
        await talk.begins(**{**talk.command("u1"), "cwd": "/etc"})


async def test_a_change_of_a_file_that_was_not_judged_ends_the_turn(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    path = str(tmp_path / "a")
    payload = {"operation": "update", "path": path, "change": "+x\n", "use": "u1"}
    talk.judged.translate("apply_patch", payload)
    await talk.hook("u1")
    await talk.begins(type="fileChange", id="u1", changes=[{"path": path}])
    with pytest.raises(NeedsHuman, match="which the checked patch does not"):
        await talk.begins(type="fileChange", id="u1", changes=[{"path": path}, {"path": "/b"}])
    moved = {"path": path, "kind": {"type": "update", "move_path": "/c"}}
    with pytest.raises(NeedsHuman, match="'/c'"):
        await talk.begins(type="fileChange", id="u1", changes=[moved])


async def test_typing_into_a_running_command_ends_the_turn(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    method = "item/commandExecution/terminalInteraction"
    await talk.talk.hear(method, {"itemId": "u1", "stdin": ""})
    with pytest.raises(NeedsHuman, match="input was sent"):
        await talk.talk.hear(method, {"itemId": "u1", "stdin": "rm -rf .\n"})


@pytest.mark.parametrize("status", ["failed", "stopped", "running", None])
async def test_a_hook_that_did_not_answer_ends_the_turn(tmp_path: Path, status: str) -> None:
    with pytest.raises(NeedsHuman, match="hook exited with code 1"):
        await Talk(tmp_path).hook("u1", status)


async def test_a_refused_part_settles_the_others(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    for path in ("a", "b"):
        payload = {"operation": "update", "path": str(tmp_path / path), "use": "u1"}
        talk.judged.translate("apply_patch", payload)
    await talk.hook("u1", "blocked")
    assert talk.door.settled["u1#0"] is False


async def test_denied_request_to_leave_the_sandbox_goes_into_the_next_prompt(
    tmp_path: Path,
) -> None:
    answers = HookAnswer(decision=Effect.DENY, say="no"), HookAnswer(decision=Effect.ALLOW)
    talk = Talk(tmp_path, *answers)
    payload = {"itemId": "u1", "command": "ls", "cwd": "/"}
    method = "item/commandExecution/requestApproval"
    assert await talk.talk.answer(method, payload) == {"decision": "decline"}
    assert await talk.talk.answer(method, payload) == {"decision": "accept"}
    (untold,) = talk.talk.untold
    assert untold.endswith("outside the sandbox: no")


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("item/fileChange/requestApproval", {"decision": "decline"}),
        ("item/permissions/requestApproval", {"permissions": {}}),
        ("mcpServer/elicitation/request", {"action": "decline"}),
        ("item/tool/requestUserInput", {"answers": {}}),
    ],
)
async def test_everything_else_that_codex_may_ask_for_is_declined(
    tmp_path: Path, method: str, answer: dict[str, Any]
) -> None:
    assert await Talk(tmp_path).talk.answer(method, {}) == answer


async def test_what_codex_has_no_business_to_ask_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RpcError):
        await Talk(tmp_path).talk.answer("account/chatgptAuthTokens/refresh", {})


async def test_a_search_of_the_provider_is_put_before_the_gate_afterwards(tmp_path: Path) -> None:
    talk = Talk(tmp_path, HookAnswer(decision=Effect.ALLOW))
    await talk.ends(type="webSearch", id="s1", query="weather")
    assert talk.door.asked == [("request", "web_search", {"query": "weather"})]
    assert talk.door.settled == {"s1": True}
    with pytest.raises(NeedsHuman, match="searched the web for 'secrets'"):
        await talk.ends(type="webSearch", id="s2", query="secrets")


async def test_a_turn_over_its_price_is_ended(tmp_path: Path) -> None:
    talk = Talk(tmp_path, usd=0.5)
    talk.meter.model = "gpt-5"
    await talk.talk.hear("turn/started", {"turn": {"id": "t1"}})
    tokens = {"last": {"inputTokens": 10_000_000, "outputTokens": 1}}
    await talk.talk.hear("thread/tokenUsage/updated", {"turnId": "t1", "tokenUsage": tokens})
    with pytest.raises(BudgetSpent, match="usd"):
        await talk.hook("u1")


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("item/started", {"item": None}),
        ("item/completed", {"item": {"type": "fileChange", "changes": [None]}}),
        ("item/completed", {"item": {}}),
        ("hook/completed", {"run": []}),
        ("hook/completed", {}),
        ("thread/tokenUsage/updated", {"turnId": "", "tokenUsage": 5}),
        ("turn/started", {"turn": 3}),
        ("turn/completed", {"threadId": "", "turn": "no"}),
        ("error", {"error": "words", "willRetry": True}),
        ("error", {"error": {}, "willRetry": True}),
        ("warning", {}),
        ("something/new", {"params": {"x": 1}}),
        (
            "thread/tokenUsage/updated",
            {"turnId": [1], "tokenUsage": {"last": {"inputTokens": "x"}}},
        ),
        ("turn/started", {"turn": {"id": {}}}),
        ("item/completed", {"item": {"id": [], "type": {}, "status": []}}),
        ("hook/completed", {"run": {"id": [], "eventName": "preToolUse", "sourcePath": {}}}),
    ],
)
async def test_messages_of_any_shape_are_survived(
    tmp_path: Path, method: str, params: dict[str, Any]
) -> None:
    talk = Talk(tmp_path)
    await talk.talk.hear(method, params)
    assert talk.door.asked == []


@pytest.mark.parametrize(
    "changes",
    [None, "words", [None], [{}], [{"path": 7}], [{"path": "/a\0"}], [{"path": "/a", "kind": 3}]],
)
async def test_a_change_that_cannot_be_read_ends_the_turn(tmp_path: Path, changes: Any) -> None:
    talk = Talk(tmp_path)
    payload = {"operation": "update", "path": str(tmp_path / "a"), "change": "+x\n", "use": "u1"}
    talk.judged.translate("apply_patch", payload)
    await talk.hook("u1")
    with pytest.raises(NeedsHuman):
        await talk.begins(type="fileChange", id="u1", changes=changes)


async def test_an_act_without_a_name_ends_the_turn(tmp_path: Path) -> None:
    with pytest.raises(NeedsHuman):
        await Talk(tmp_path).begins(type="commandExecution", id=["u1"])


def test_a_turn_counts_one_exchange_once_it_is_asked_and_says_that_more_is_not_known() -> None:
    meter = Meter("codex", TurnLimits())
    assert (meter.usage(1.0).turns, meter.usage(1.0).complete) == (0, True)
    meter.asked = True
    assert (meter.usage(1.0).turns, meter.usage(1.0).complete) == (1, False)
    meter.model = "gpt-5"
    figures = {"inputTokens": 10, "cachedInputTokens": True, "outputTokens": 10**30}
    meter.count({"last": figures})
    meter.count({"last": figures})
    used = meter.usage(1.0)
    assert (used.turns, used.input_tokens, used.output_tokens, used.complete) == (2, 20, 0, True)


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ('{"method":"item/agentMessage/delta","params":{"delta":"sk-"}}', True),
        (' { "method" : "item/reasoning/summaryTextDelta", "params": {}}', True),
        ('{"method":"item/commandExecution/outputDelta","params":{}}', True),
        ('{"method":"item/completed","params":{"item":{"text":"/delta"}}}', False),
        ('{"id":1,"result":{}}', False),
        ("noise", False),
    ],
)
def test_pieces_of_what_comes_whole_later_are_known(line: str, is_one: bool) -> None:
    assert is_piece(line) is is_one


async def test_the_hook_may_ask_from_its_start_to_its_end(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    await talk.hook("u1", "running", method="hook/started")
    await talk.hook("u2", "running", "/elsewhere/hooks.json", method="hook/started")
    assert talk.door.expected == ["u1"]
    await talk.hook("u1", "blocked")
    assert talk.door.expected == []


async def test_a_command_without_an_exit_code_is_not_called_done(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.judged.translate("Bash", {"command": "ls", "cwd": talk.workspace, "use": "u1"})
    await talk.hook("u1")
    await talk.begins(**talk.command("u1"))
    await talk.ends(**talk.command("u1"), status="completed", exitCode=None)
    assert talk.door.settled == {}


async def test_a_command_that_turns_out_to_be_a_patch_ends_the_turn(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.judged.translate("Bash", {"command": "ls", "cwd": talk.workspace, "use": "u1"})
    await talk.hook("u1")
    changes = [{"path": str(tmp_path / "a"), "kind": {"type": "add"}}]
    with pytest.raises(NeedsHuman, match="which the checked patch does not"):
        await talk.begins(type="fileChange", id="u1", changes=changes)
