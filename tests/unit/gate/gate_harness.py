"""Calls, contexts and gates for the tests of this room."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from podium.core.decisions import (
    Access,
    Approval,
    ApprovalStatus,
    Call,
    Decision,
    GateContext,
    Grant,
    PathUse,
    Tier,
    ToolSpec,
)
from podium.policy import (
    Policy,
    PolicyLayer,
    RuleGate,
    compile_policy,
    default_policy,
    split_command,
)
from podium.policy.zones import resolve

ROOT = "/srv/project"
NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
RUN_COMMAND = ToolSpec(name="run_command", tier=Tier.T1, command_argument="command")


def policy(text: str) -> Policy:
    """A policy as people write it."""
    return Policy.model_validate(yaml.safe_load(text) or {})


def gate_of(
    *, default: bool = False, user: str | None = None, project: str | None = None
) -> RuleGate:
    layers = []
    if default:
        layers.append(PolicyLayer(origin="built-in", policy=default_policy()))
    if user is not None:
        layers.append(PolicyLayer(origin="user", policy=policy(user)))
    if project is not None:
        layers.append(PolicyLayer(origin="project", policy=policy(project)))
    return compile_policy(layers)


def context_for(tool: ToolSpec | None = RUN_COMMAND, **changes: Any) -> GateContext:
    return GateContext(**{"tool": tool, "root": ROOT, "now": NOW, **changes})


def command_call(line: str, **changes: Any) -> Call:
    commands, undecidable = split_command(line)
    return Call(
        **{
            "run_id": "run_1",
            "step_key": "work",
            "index": 0,
            "tool": "run_command",
            "arguments": {"command": line},
            "commands": commands,
            "undecidable": undecidable,
            **changes,
        }
    )


def tool_call(tool: str, *, paths: tuple[PathUse, ...] = (), **changes: Any) -> Call:
    given = {"run_id": "run_1", "step_key": "work", "index": 0, "tool": tool, "paths": paths}
    return Call(**{**given, **changes})


def path(
    given: str, access: Access = Access.READ, *, real: str | None = None, argument: str = "path"
) -> PathUse:
    return PathUse(argument=argument, given=given, real=real or resolve(given, ROOT), access=access)


def spec(name: str, tier: Tier = Tier.T0, **changes: Any) -> ToolSpec:
    return ToolSpec(**{"name": name, "tier": tier, **changes})


def decide(gate: RuleGate, call: Call, tier: Tier = Tier.T0, **changes: Any) -> Decision:
    """The gate's word about a call of a registered tool."""
    tool = RUN_COMMAND if call.tool == "run_command" else spec(call.tool, tier)
    return gate.decide(call, context_for(changes.pop("spec", tool), **changes))


def run(gate: RuleGate, line: str, **changes: Any) -> Decision:
    return decide(gate, command_call(line), **changes)


def approval_for(call: Call, tool: ToolSpec, **changes: Any) -> Approval:
    return Approval(
        **{
            "id": "apr_1",
            "run_id": call.run_id,
            "call_key": call.key,
            "digest": call.digest(tool),
            "tool": call.tool,
            "summary": "what will happen",
            "tier": Tier.T2,
            "status": ApprovalStatus.GRANTED,
            "grants": (Grant(by="ann", at=NOW),),
            "requested_at": NOW,
            "deadline": NOW + timedelta(hours=1),
            **changes,
        }
    )
