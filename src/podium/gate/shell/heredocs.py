"""Takes here-documents out of a script before it is parsed.

The grammar loses its way behind `<<EOF 2>&1 | tail`, and a parser that is wrong about where a
here-document ends is wrong about what runs. Each one becomes a plain `< file` whose name tells which
it was; the tree must then show that redirection, else the script is parsed as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from podium.gate.shell.unclear import Unclear

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
_MOST = 256
_MOST_UNCLOSED = 16
"""Each one costs a search to the end of the script."""


class HereDocument(NamedTuple):
    """What stands between the operator's line and the closing one."""

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
        """Whether a program that is fed it gets exactly this text."""
        return self.literal or not set("$`\\") & set(self.body)


def taken_out(source: bytes) -> tuple[bytes, tuple[HereDocument, ...]]:
    """The script without its here-documents, and these in order. Nothing found: the script itself."""
    if b"<<" not in source or _PLACEHOLDER in source:
        return source, ()
    found: list[HereDocument] = []
    kept: list[bytes] = []
    at = 0
    unclosed = 0
    while len(found) < _MOST and unclosed < _MOST_UNCLOSED:
        opening = _OPENING.search(source, at)
        if opening is None:
            break
        end = _closing(source, opening)
        if end is None:
            unclosed += 1
            kept.append(source[at : opening.start() + 2])
            at = opening.start() + 2
            continue
        body_end, at_next = end
        body = source[opening.end() : body_end].decode("utf-8", "surrogateescape")
        if opening["dash"]:
            body = re.sub(r"(?m)^\t+", "", body)
        literal = bool(opening["single"] or opening["double"] or opening["slash"])
        kept += [
            source[at : opening.start()],
            b"< %s%d" % (_PLACEHOLDER, len(found)),
            opening["rest"],
            b"\n",
        ]
        found.append(HereDocument(body, literal))
        at = at_next
    return b"".join((*kept, source[at:])), tuple(found)


def _closing(source: bytes, opening: re.Match[bytes]) -> tuple[int, int] | None:
    """Where the body ends and where the script goes on; None when no line closes it."""
    word = opening["single"] or opening["double"] or opening["bare"]
    tabs = rb"\t*" if opening["dash"] else b""
    closing = re.compile(rb"^" + tabs + re.escape(word) + rb"(?:\n|\Z)", re.MULTILINE)
    found = closing.search(source, opening.end())
    return (found.start(), found.end()) if found is not None else None
