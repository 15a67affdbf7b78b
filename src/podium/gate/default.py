"""The policy that holds when nobody wrote one."""

from __future__ import annotations

from functools import cache
from importlib import resources

import yaml

from podium.gate.policy import Policy


@cache
def default_policy() -> Policy:
    """Sensible for coding agents: reading, working in the workspace, committing; people for the rest."""
    text = (resources.files("podium.gate") / "default_policy.yaml").read_text("utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return Policy.model_validate(yaml.load(text, Loader=loader)["policy"])  # noqa: S506 - both loaders are safe ones
