"""Puts settings in the place of `${NAME}`."""

from __future__ import annotations

from collections.abc import Mapping

from podium.core.errors import ToolBroke
from podium.tools.packs.handlers import SETTING


def filled(text: str, settings: Mapping[str, str]) -> str:
    """The text with its settings. Raises `ToolBroke` for one that has no value."""
    for name in SETTING.findall(text):
        if not settings.get(name):
            raise ToolBroke(f"{name} is not set; give it a value in the environment")
    return SETTING.sub(lambda match: settings[match[1]], text)
