"""Takes a pack's secret settings out of what its tools say.

The toolbox removes secrets that it knows by the names of variables; here a registry says itself which
of its settings are secret, whatever they are called.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from urllib.parse import quote, quote_plus

from podium.core.encoded_secrets import EncodedSecrets
from podium.core.errors import OutcomeUnknown, PodiumError, ToolBroke
from podium.core.model import Json
from podium.core.packs import Pack

_SHORTEST = 6
"""Shorter values would be found all over ordinary text."""
_CUT = "…"


@dataclass(frozen=True)
class PackSecrets:
    """The secrets of one pack, by name, and every form in which they are looked for."""

    secrets: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, pack: Pack, settings: Mapping[str, str]) -> PackSecrets:
        secret = (setting.name for setting in pack.registry.settings if setting.secret)
        values = {name: settings[name] for name in secret if len(settings[name]) >= _SHORTEST}
        # The longest first: one may be a part of another.
        return cls(dict(sorted(values.items(), key=lambda pair: -len(pair[1]))))

    def text(self, text: str) -> str:
        for name, form in self._forms:
            text = text.replace(form, f"[redacted:{name}]")
        return self._encoded.hide(text)

    @cached_property
    def _forms(self) -> list[tuple[str, str]]:
        forms = [(name, form) for name, value in self.secrets.items() for form in _written(value)]
        return sorted(forms, key=lambda pair: -len(pair[1]))

    @cached_property
    def _encoded(self) -> EncodedSecrets:
        return EncodedSecrets(self.secrets.items())

    def _without_beginnings(self, message: str) -> str:
        """Words quote only so much of what was said, and the cut may go through a secret."""
        *quoted, last = message.split(_CUT)
        return _CUT.join([*(self._without_beginning(part) for part in quoted), last])

    def _without_beginning(self, part: str) -> str:
        for name, form in self._forms:
            for size in range(min(len(form), len(part)), _SHORTEST - 1, -1):
                if part.endswith(form[:size]):
                    return f"{part[:-size]}[redacted:{name}]"
        return part

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
        original = str(error)
        message = self._without_beginnings(self.text(original))
        if message == original:
            return error
        if isinstance(error, OutcomeUnknown):
            return OutcomeUnknown(message)
        kind = "" if isinstance(error, ToolBroke) else f"{tool!r} broke: {type(error).__name__}: "
        return ToolBroke(f"{kind}{message}")


def _written(secret: str) -> set[str]:
    """The value as it stands in plain text, in addresses and forms, in JSON, in JSON inside JSON, and in HTML."""
    quoted = {quote(secret, safe=""), quote(secret), quote_plus(secret)}
    quoted |= {re.sub(r"%..", lambda part: part[0].lower(), form) for form in quoted}
    escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    escaped |= {form.replace("/", "\\/") for form in escaped}
    escaped |= {json.dumps(form)[1:-1] for form in escaped}
    return {secret, *quoted, *escaped, escape(secret), repr(secret)[1:-1]}
