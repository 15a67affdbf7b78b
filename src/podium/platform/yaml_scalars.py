"""Plain YAML scalars by the core schema: no dates, no octals, no `yes` for true."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from podium.core.model import Json

_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})\Z")
_FLOAT = re.compile(r"[-+]?((\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)\Z")
_LITERALS: Mapping[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def core_value(text: str) -> Json:
    """Nothing, a flag, a number that JSON can hold, or the text itself."""
    if text in _LITERALS:
        return _LITERALS[text]
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text) and math.isfinite(float(text)):
        return float(text)
    return text
