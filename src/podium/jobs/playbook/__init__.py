"""Playbook: an agent without tools of its own follows a playbook through Podium's tools."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.jobs.playbook.criteria import commands_of, disagreements, tools_of
    from podium.jobs.playbook.models import playbook_schema, profile_schema
    from podium.jobs.playbook.prompt import InputValues, build_prompt, fitting, settle

__all__ = [
    "InputValues",
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
        "commands_of": "criteria",
        "disagreements": "criteria",
        "tools_of": "criteria",
        "InputValues": "prompt",
        "fitting": "prompt",
        "settle": "prompt",
        "build_prompt": "prompt",
        "playbook_schema": "models",
        "profile_schema": "models",
    },
)
