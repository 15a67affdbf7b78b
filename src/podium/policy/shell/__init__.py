"""Reads shell lines by a real grammar: what they would start, open and remove."""

from podium.policy.shell.command_line import (
    ASSIGNMENT,
    MAX_WORDS,
    assignment,
    read_line,
    read_words,
    split_command,
)
from podium.policy.shell.simple_command import (
    ANY,
    COMPUTED,
    DERIVED,
    Objection,
    ParsedLine,
    Redirect,
    SimpleCommand,
    plainly,
    shown,
)

__all__ = [
    "ANY",
    "ASSIGNMENT",
    "COMPUTED",
    "DERIVED",
    "MAX_WORDS",
    "Objection",
    "ParsedLine",
    "Redirect",
    "SimpleCommand",
    "assignment",
    "plainly",
    "read_line",
    "read_words",
    "shown",
    "split_command",
]
