"""What the gate would say of a call, without making it."""

from __future__ import annotations

from datetime import datetime

from podium.domain.errors import UnknownTool
from podium.domain.gating import Call, Decision, GateContext
from podium.domain.launching import NetworkPolicy
from podium.domain.model import Json
from podium.ports import Gate, Toolbox


def check_policy(
    gate: Gate,
    toolbox: Toolbox,
    tool: str,
    arguments: dict[str, Json],
    *,
    mode: str,
    root: str,
    now: datetime,
    confined: bool = False,
    network: NetworkPolicy = "open",
    hosts: tuple[str, ...] = (),
) -> Decision:
    """Judge a call as if it were the first of a fresh run: nothing spent, nothing approved.

    `confined`: as if the kernel kept what it starts to the workspace, with this network.
    Raises `BadArguments` when the arguments do not fit the tool.
    """
    specs = {spec.name: spec for spec in toolbox.specs()}
    try:
        call = toolbox.normalise(tool, arguments, run_id="check", step_key="check", index=0)
    except UnknownTool:
        # The gate has an answer to this as well, and it is the one a run would get.
        call = Call(run_id="check", step_key="check", index=0, tool=tool, arguments=arguments)
    context = GateContext(
        tool=specs.get(tool),
        mode=mode,
        root=root,
        confined=confined,
        holds_zones=confined,
        network=network,
        hosts=hosts,
        now=now,
    )
    return gate.decide(call, context)
