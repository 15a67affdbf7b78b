"""Takes a pack's secret settings out of what its tools say.

The toolbox removes secrets that it knows by the names of variables; here a registry says itself which
of its settings are secret, whatever they are called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from podium.domain.errors import OutcomeUnknown, PodiumError, ToolBroke
from podium.domain.model import Json
from podium.domain.packs import Pack

_SHORTEST = 6
"""Shorter values would be found all over ordinary text."""


@dataclass(frozen=True)
class Hiding:
    """The secrets of one pack."""

    secrets: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, pack: Pack, settings: Mapping[str, str]) -> Hiding:
        secret = (setting.name for setting in pack.registry.settings if setting.secret)
        found = {name: settings[name] for name in secret if len(settings[name]) >= _SHORTEST}
        # The longest first: one may be a part of another.
        return cls(dict(sorted(found.items(), key=lambda pair: -len(pair[1]))))

    def text(self, text: str) -> str:
        for name, value in self.secrets.items():
            text = text.replace(value, f"[redacted:{name}]")
        return text

    def json(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.json(key): self.json(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.json(item) for item in value]
        return value

    def error(self, tool: str, error: Exception) -> Exception:
        """The error itself, or one without the secret that its words hold."""
        if isinstance(error, PodiumError) and not isinstance(error, ToolBroke):
            return error
        said = str(error)
        if self.text(said) == said:
            return error
        words = self.text(said)
        if isinstance(error, OutcomeUnknown):
            return OutcomeUnknown(words)
        kind = "" if isinstance(error, ToolBroke) else f"{tool!r} broke: {type(error).__name__}: "
        return ToolBroke(f"{kind}{words}")
