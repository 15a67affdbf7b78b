"""Playbook: an agent with no hands follows a playbook. Here: what it is told."""

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
