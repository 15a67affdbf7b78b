"""Playbook: an agent with no hands follows a playbook. Here: what it is told."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.flows.playbook.agreeing import commands_of, disagreements, tools_of
    from podium.flows.playbook.inputs import Settled, fitting, settle
    from podium.flows.playbook.prompting import build_prompt
    from podium.flows.playbook.schema import playbook_schema, profile_schema

__all__ = [
    "Settled",
    "build_prompt",
    "commands_of",
    "disagreements",
    "fitting",
    "playbook_schema",
    "profile_schema",
    "settle",
    "tools_of",
]

export_lazily(
    __name__,
    {
        "commands_of": "agreeing",
        "disagreements": "agreeing",
        "tools_of": "agreeing",
        "Settled": "inputs",
        "fitting": "inputs",
        "settle": "inputs",
        "build_prompt": "prompting",
        "playbook_schema": "schema",
        "profile_schema": "schema",
    },
)
