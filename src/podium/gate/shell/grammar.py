"""The bash grammar. The parser is heavy and loaded when the first line is read."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


@cache
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parse(source: bytes) -> Node:
    """The tree of a script. Its `has_error` tells whether the grammar could read all of it."""
    return _parser().parse(source).root_node
