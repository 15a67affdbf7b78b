"""Reads shell lines by a real grammar: what they would start, open and remove."""

from podium.policy.shell.command_line import (
    ASSIGNMENT,
    MAX_TOKENS,
    assignment,
    read_argv,
    read_line,
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
    printable,
)

__all__ = [
    "ANY",
    "ASSIGNMENT",
    "COMPUTED",
    "DERIVED",
    "MAX_TOKENS",
    "Objection",
    "ParsedLine",
    "Redirect",
    "SimpleCommand",
    "assignment",
    "plainly",
    "printable",
    "read_argv",
    "read_line",
    "split_command",
]
