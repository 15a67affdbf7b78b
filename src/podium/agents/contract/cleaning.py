"""What terminals put around text, taken away."""

from __future__ import annotations

import re

# Parameters of an escape are short in practice; the bounds keep a flood of half escapes linear.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]{0,64}+[ -/]{0,8}+[@-~]|\][^\x07\x1b]{0,4096}+(?:\x07|\x1b\\)|[PX^_][^\x1b]{0,4096}+\x1b\\|[@-Z\\^_])"
)


def without_escapes(text: str) -> str:
    """The text without terminal escapes; the very same object when there are none."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text
