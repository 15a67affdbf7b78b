"""The bash grammar. The parser is heavy and loaded when the first line is read.

It takes time that grows with the square of some things: here-documents that nothing ends, expansions
and brackets that stay open. So it is handed a script piece by piece and stopped by the end of
input when it has taken too long. What costs it much without asking for more is counted before.
"""

from __future__ import annotations

import re
from functools import cache
from time import thread_time
from typing import TYPE_CHECKING

from podium.gate.shell.unclear import Unclear

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Point

MOST_BYTES = 32_768
"""Of a script, the bodies of its here-documents aside."""
MOST_SIGNS = {
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
DEEPEST_BRACKETS = 64
_BRACKETS = re.compile(rb"[(\[{]|[)\]}]")
_QUICK_BYTES = 1_024
"""A script of this size is parsed in no time, whatever it is."""
_PIECE_BYTES = 256
_MOST_SECONDS = 0.2
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
    end = thread_time() + _MOST_SECONDS

    def piece(at: int, _: Point) -> bytes:
        nonlocal late
        late = late or thread_time() > end
        return b"" if late else source[at : at + _PIECE_BYTES]

    tree = parser.parse(piece)
    if late:
        raise Unclear("it takes too long to read")
    return tree.root_node


def _check_effort(source: bytes) -> None:
    if len(source) > MOST_BYTES:
        raise Unclear(f"it is longer than {MOST_BYTES} bytes without its here-documents")
    for sign, most in MOST_SIGNS.items():
        if source.count(sign) > most:
            what = "line breaks" if sign == b"\n" else f"times {sign.decode()!r}"
            raise Unclear(f"it has more than {most} {what}")
    depth = 0
    for bracket in _BRACKETS.finditer(source):
        depth = depth + 1 if bracket[0] in b"([{" else max(depth - 1, 0)
        if depth > DEEPEST_BRACKETS:
            raise Unclear(f"it has more than {DEEPEST_BRACKETS} brackets open at once")
