"""State of the reader: bash grammar (loaded with the first line), script without here-documents, commands read so far.

It takes time that grows with the square of some things: here-documents that nothing ends, expansions
and brackets that stay open. So it is handed a script piece by piece and stopped by the end of
input when it has taken too long. What costs it much without asking for more is counted before.

The grammar loses its way behind `<<EOF 2>&1 | tail`, and a parser that is wrong about where a
here-document ends is wrong about what runs. Each one becomes a plain `< file` whose name tells which
it was; the tree must then show that redirection, else the script is parsed as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from time import thread_time
from typing import TYPE_CHECKING, NamedTuple

from podium.policy.programs import names
from podium.policy.shell.simple_command import Redirect, Unclear, WrittenCommand

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Point


MAX_BYTES = 32_768
"""Of a script, the bodies of its here-documents aside."""
MAX_SIGNS = {
    b"<<": 64,
    b"|": 400,
    b"!": 1_000,
    b"<": 2_000,
    b">": 2_000,
    b"$": 2_000,
    b"\n": 4_000,
    b'"': 8_000,
    b"\\": 8_000,
}
MAX_BRACKETS = 64
_BRACKETS = re.compile(rb"[(\[{]|[)\]}]")
_QUICK_BYTES = 1_024
"""A script of this size is parsed in no time, whatever it is."""
_PIECE_BYTES = 256
_MAX_SECONDS = 0.2
"""Of the processor, so that a busy machine decides as an idle one does. Long scripts take a tenth."""


@cache
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parse(source: bytes) -> Node:
    """The tree of a script. Its `has_error` tells whether the grammar could read all of it.

    Raises `Unclear` for a script that takes too long.
    """
    if len(source) <= _QUICK_BYTES:
        return _parser().parse(source).root_node
    _check_effort(source)
    return _parsed_in_time(source)


def _parsed_in_time(source: bytes) -> Node:
    parser = _parser()
    late = False
    end = thread_time() + _MAX_SECONDS

    def piece(at: int, _: Point) -> bytes:
        nonlocal late
        late = late or thread_time() > end
        return b"" if late else source[at : at + _PIECE_BYTES]

    tree = parser.parse(piece)
    if late:
        raise Unclear("it takes too long to read")
    return tree.root_node


def _check_effort(source: bytes) -> None:
    if len(source) > MAX_BYTES:
        raise Unclear(f"it is longer than {MAX_BYTES} bytes without its here-documents")
    for sign, most in MAX_SIGNS.items():
        if source.count(sign) > most:
            what = "line breaks" if sign == b"\n" else f"times {sign.decode()!r}"
            raise Unclear(f"it has more than {most} {what}")
    depth = 0
    for bracket in _BRACKETS.finditer(source):
        depth = depth + 1 if bracket[0] in b"([{" else max(depth - 1, 0)
        if depth > MAX_BRACKETS:
            raise Unclear(f"it has more than {MAX_BRACKETS} brackets open at once")


MAX_COMMANDS = 256
WORD_KINDS = names(
    "word number string raw_string concatenation simple_expansion expansion command_substitution "
    "process_substitution arithmetic_expansion ansi_c_string brace_expression extglob_pattern "
    "variable_name"
)
"""Kinds of nodes that are words, or parts of one."""
_GAP = re.compile(rb"(?:[ \t\n]|\\\n)*")


class SourcePosition(NamedTuple):
    scope: tuple[int, ...] = ()
    after_success: bool = False
    certain: bool = True
    """It runs exactly once, in the order it is written."""
    fed: bool = False
    looped: bool = False


class ParserState:
    """A script with its tree. Gathers commands, and the first thing that is beyond plain words."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.root = parse(source)
        self.commands: list[WrittenCommand] = []
        self.beyond_plain = ""
        self.unsteady = False
        self.scopes = 0
        self.where = SourcePosition()
        """Position of the statement that is being read."""

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

    def inner(self, where: SourcePosition) -> SourcePosition:
        self.scopes += 1
        return where._replace(scope=(*where.scope, self.scopes))

    def text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "surrogateescape")

    def emit(
        self,
        argv: tuple[str, ...],
        where: SourcePosition,
        *,
        assignments: tuple[tuple[str, str], ...] = (),
        redirects: tuple[Redirect, ...] = (),
        script: str | None = None,
        fed: bool = False,
    ) -> None:
        if len(self.commands) >= MAX_COMMANDS:
            raise Unclear(f"it has more than {MAX_COMMANDS} commands")
        if where.looped and argv[:1] in (("cd",), ("pushd",), ("popd",)):
            self.unsteady = True
        self.commands.append(
            WrittenCommand(
                argv,
                assignments,
                redirects,
                where.scope,
                where.after_success,
                where.fed or fed,
                script,
            )
        )


def loosely(where: SourcePosition) -> SourcePosition:
    return where._replace(certain=False) if where.certain else where


PLACEHOLDER = "/dev/podium-here-document-"
_PLACEHOLDER = PLACEHOLDER.encode()
_OPENING = re.compile(
    rb"""(?<!<)<<(?P<dash>-?)[ \t]*(?:'(?P<single>[\w.-]+)'|"(?P<double>[\w.-]+)"|(?P<slash>\\?)(?P<bare>[\w.-]+))"""
    rb"""(?P<rest>(?:[^'"`\\\#<(\n]|"[^"\\`(\n]*"|'[^'\n]*')*)(?:\n|$)"""
)
"""An operator and the rest of its line, when no quote or parenthesis in that rest reaches further."""
_INNER = re.compile(r"\$\(([^()`'\"\\$]*)\)")
_ARITHMETIC = re.compile(r"\$\(\([\w\s+*/%-]*\)\)")
_ESCAPED = re.compile(r"\\[\\$`]")
_MAX_COUNT = 256
_MAX_UNCLOSED = 16
"""Each one costs a search to the end of the script."""


class HereDocument(NamedTuple):
    """The text between the operator's line and the closing one."""

    body: str
    literal: bool
    """Nothing in it is expanded."""

    def inner_scripts(self) -> Iterator[str]:
        """The commands whose output it holds. Raises `Unclear` for those that cannot be told apart."""
        if self.literal:
            return
        text = _ARITHMETIC.sub("", _ESCAPED.sub("", self.body))
        if "`" in text:
            raise Unclear("a here-document has backticks; quote its closing word: <<'EOF'")
        yield from (match[1] for match in _INNER.finditer(text))
        if "$(" in _INNER.sub("", text) or "${" in text:
            raise Unclear("a here-document has expansions; quote its closing word: <<'EOF'")

    @property
    def certain(self) -> bool:
        """Tell whether a program that is fed it gets exactly this text."""
        return self.literal or not set("$`\\") & set(self.body)


def taken_out(source: bytes) -> tuple[bytes, tuple[HereDocument, ...]]:
    """The script without its here-documents, and these in order. Nothing found: the script itself."""
    if b"<<" not in source or _PLACEHOLDER in source:
        return source, ()
    documents: list[HereDocument] = []
    pieces: list[bytes] = []
    at = 0
    unclosed = 0
    while len(documents) < _MAX_COUNT and unclosed < _MAX_UNCLOSED:
        opening = _OPENING.search(source, at)
        if opening is None:
            break
        end = _closing(source, opening)
        if end is None:
            unclosed += 1
            pieces.append(source[at : opening.start() + 2])
            at = opening.start() + 2
            continue
        body_end, at_next = end
        body = source[opening.end() : body_end].decode("utf-8", "surrogateescape")
        if opening["dash"]:
            body = re.sub(r"(?m)^\t+", "", body)
        literal = bool(opening["single"] or opening["double"] or opening["slash"])
        pieces += [
            source[at : opening.start()],
            b"< %s%d" % (_PLACEHOLDER, len(documents)),
            opening["rest"],
            b"\n",
        ]
        documents.append(HereDocument(body, literal))
        at = at_next
    return b"".join((*pieces, source[at:])), tuple(documents)


def _closing(source: bytes, opening: re.Match[bytes]) -> tuple[int, int] | None:
    """Start and end of the closing line; None when no line closes it."""
    delimiter = opening["single"] or opening["double"] or opening["bare"]
    tabs = rb"\t*" if opening["dash"] else b""
    closing = re.compile(rb"^" + tabs + re.escape(delimiter) + rb"(?:\n|\Z)", re.MULTILINE)
    match = closing.search(source, opening.end())
    return (match.start(), match.end()) if match is not None else None
