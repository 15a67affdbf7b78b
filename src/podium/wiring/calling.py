"""Single calls from outside put together: which tools there are for them, and the flow that sees one through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.domain.gating import ToolSpec
from podium.flows.calling import CALL, CallJob, CallKit, calling
from podium.ports import Flow, FlowBody
from podium.wiring.late_flow import when_needed

if TYPE_CHECKING:
    from podium.tools import Registry
    from podium.wiring.podium import Podium

OF_TURNS = ("finish",)
"""What means something within a turn alone."""


def callable_tools() -> Registry:
    """The tools that can be called one at a time, in the project's folder."""
    from podium.tools import Registry, builtin_tools

    return Registry([tool for tool in builtin_tools() if tool.spec.name not in OF_TURNS])


def callable_specs() -> tuple[ToolSpec, ...]:
    return tuple(callable_tools().specs())


async def build_call(podium: Podium) -> Flow:
    """The flow with the tools of this project."""
    from podium.engine import FlowDefinition

    return FlowDefinition(CALL, when_needed(lambda: _call(podium)), input_type=CallJob)


async def _call(podium: Podium) -> FlowBody:
    registry = callable_tools()
    door = await podium.tool_door(registry=registry)
    toolbox = podium.toolbox_behind(door, registry=registry)
    return calling(CallKit(await podium.store(), toolbox))
