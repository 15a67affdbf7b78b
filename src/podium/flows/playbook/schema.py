"""The JSON Schemas of `plugin-profile.yaml` and of a playbook's front matter, as published."""

from __future__ import annotations

from podium.domain.model import Json
from podium.domain.playbooks import PlaybookHead, Profile

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def profile_schema() -> dict[str, Json]:
    """For editors: `# yaml-language-server: $schema=plugin-profile.schema.json` as the first line."""
    return {"$schema": DRAFT, **Profile.model_json_schema(), "title": "Plugin profile"}


def playbook_schema() -> dict[str, Json]:
    """Of what stands between the two `---` at the top of a playbook."""
    return {"$schema": DRAFT, **PlaybookHead.model_json_schema(), "title": "Playbook front matter"}
