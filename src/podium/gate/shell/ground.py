"""What every part of the reader stands on: the script, its tree, and the commands found so far."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from podium.gate.programs import names
from podium.gate.shell.grammar import parse
from podium.gate.shell.nouns import Redirect, Written
from podium.gate.shell.unclear import Unclear

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_COMMANDS = 256
WORDS = names(
    "word number string raw_string concatenation simple_expansion expansion command_substitution "
    "process_substitution arithmetic_expansion ansi_c_string brace_expression extglob_pattern "
    "variable_name"
)
"""Kinds of nodes that are words, or parts of one."""
_GAP = re.compile(rb"(?:[ \t\n]|\\\n)*")


class Where(NamedTuple):
    scope: tuple[int, ...] = ()
    after_success: bool = False
    certain: bool = True
    """It runs exactly once, in the order it is written."""
    fed: bool = False
    looped: bool = False


class Ground:
    """A script with its tree. Gathers commands, and the first thing that is beyond plain words."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.root = parse(source)
        self.commands: list[Written] = []
        self.beyond_plain = ""
        self.unsteady = False
        self.scopes = 0
        self.where = Where()
        """Where the statement stands that is being read."""

    def note(self, what: str) -> None:
        if not self.beyond_plain:
            self.beyond_plain = f"it has {what}"

    def children(self, node: Node) -> list[Node]:
        """A node's children, when nothing but blanks stands between them."""
        children = node.children
        at, end = node.start_byte, node.end_byte
        if node.type == "program":
            at, end = 0, len(self.source)
        for child in children:
            if child.start_byte != at:
                self._gap(at, child.start_byte)
            at = child.end_byte
        if at != end:
            self._gap(at, end)
        return children

    def _gap(self, start: int, end: int) -> None:
        gap = self.source[start:end]
        if not _GAP.fullmatch(gap):
            raise Unclear(f"it has a text that is not understood: {gap[:40]!r}")
        if b"\n" in gap:
            self.note("a line continuation" if b"\\\n" in gap else "a line break")

    def inner(self, where: Where) -> Where:
        self.scopes += 1
        return where._replace(scope=(*where.scope, self.scopes))

    def text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "surrogateescape")

    def emit(
        self,
        words: tuple[str, ...],
        where: Where,
        *,
        assignments: tuple[tuple[str, str], ...] = (),
        redirects: tuple[Redirect, ...] = (),
        script: str | None = None,
        fed: bool = False,
    ) -> None:
        if len(self.commands) >= MOST_COMMANDS:
            raise Unclear(f"it has more than {MOST_COMMANDS} commands")
        if where.looped and words[:1] in (("cd",), ("pushd",), ("popd",)):
            self.unsteady = True
        self.commands.append(
            Written(
                words,
                assignments,
                redirects,
                where.scope,
                where.after_success,
                where.fed or fed,
                script,
            )
        )


def loosely(where: Where) -> Where:
    return where._replace(certain=False) if where.certain else where
