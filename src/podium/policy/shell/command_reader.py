"""Reader of simple commands on the parser's state: bash grammar, script without here-documents, commands read so far.

Parsing takes time that grows with the square of some things: here-documents that nothing ends, expansions
and brackets that stay open. So the parser is handed a script piece by piece and stopped by the end of
input when it has taken too long. What costs it much without asking for more is counted before.

The grammar loses its way behind `<<EOF 2>&1 | tail`, and a parser that is wrong about where a
here-document ends is wrong about what runs. Each one becomes a plain `< file` whose name tells which
it was; the tree must then show that redirection, else the script is parsed as it stands.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cache
from time import thread_time
from typing import TYPE_CHECKING, NamedTuple

from podium.core.decisions import Access
from podium.policy.programs import names
from podium.policy.shell.simple_command import COMPUTED, DERIVED, Redirect, Unclear, WrittenCommand
from podium.policy.shell.word_reader import PLAIN_WORD, WordReader

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
            raise Unclear(f"it has text that cannot be parsed: {gap[:40]!r}")
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


RESERVED = names(
    "if then else elif fi do done case esac while until for select in function coproc { } [[ ]] ! time"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_JOINED = re.compile(rb"(?:\\\n)+")
_DUPLICATED = re.compile(r"\d+-?|-")
_SILENT_REDIRECTS = frozenset({"<", "<&"})
_WRITING_REDIRECTS = frozenset({">", ">>", "&>", "&>>", ">&", ">|"})


class CommandReader(ParserState, ABC):
    """Reads one simple command at a time. What stands around them is read by whoever extends it."""

    def __init__(self, source: bytes, documents: Sequence[HereDocument]) -> None:
        super().__init__(source)
        self.documents = documents
        self.word_reader = WordReader(source, self.note, self.substitution, self.assign_unknown)
        self.for_names: set[str] = set()
        self.set_names: set[str] = set()

    @abstractmethod
    def substitution(self, node: Node) -> None:
        """Read the commands of `$(…)`, backticks or `<(…)`."""

    @abstractmethod
    def subshell(self, node: Node, where: SourcePosition) -> None:
        """Read `( … )`, which may stand behind `time`."""

    @abstractmethod
    def inner_script(self, text: str) -> None:
        """Read commands that stand in a here-document."""

    def command(self, node: Node, where: SourcePosition) -> None:
        self.read_command(node, where, (), None, False)

    def read_command(
        self,
        node: Node,
        where: SourcePosition,
        redirects: tuple[Redirect, ...],
        script: str | None,
        fed: bool,
    ) -> None:
        assignments: list[tuple[str, str]] = []
        argv: list[str] = []
        end = -1
        own: list[Node] = []
        for child in self.children(node):
            kind = child.type
            start = child.start_byte
            if kind == "word" and end != start:
                # Most words are plain; a line that goes on leaves a backslash in between.
                raw = self.source[start : child.end_byte]
                if PLAIN_WORD.fullmatch(raw) and self.source[start - 1 : start] != b"\n":
                    argv.append(raw.decode())
                    end = child.end_byte
                    continue
            if kind == "variable_assignment":
                assignments.append(self._assignment(child, prefix=True))
            elif kind.endswith("_redirect"):
                own.append(child)
            elif kind == "subshell" and argv == ["time"]:
                self.subshell(child, where)
            else:
                part = child.children[0] if kind == "command_name" and child.children else child
                joined = end >= 0 and self._touching(end, child.start_byte)
                self._add(argv, part, joined=joined)
                end = child.end_byte
        more, own_script, own_fed = self.redirects(own)
        if argv and argv[0] in RESERVED - {"time", "coproc"}:
            raise Unclear(f"{argv[0]!r} is used as a program name")
        if argv and _ASSIGNMENT.match(argv[0]):
            raise Unclear(f"{argv[0]!r} looks like an assignment but its name is quoted")
        if argv and argv[0] in ("let", "test", "["):
            self.word_reader.arithmetic = True
        if argv[:1] == ["coproc"]:
            self.note("shell grammar (coproc)")
        self.emit(
            tuple(argv),
            where,
            assignments=tuple(assignments),
            redirects=(*redirects, *more),
            script=script if script is not None else own_script,
            fed=fed or own_fed,
        )

    def _touching(self, end: int, start: int) -> bool:
        """Tell whether two parts make one word: nothing between them, or a line that goes on."""
        return end == start or _JOINED.fullmatch(self.source[end:start]) is not None

    def _add(self, argv: list[str], node: Node, *, joined: bool) -> None:
        if joined:
            self.note("a word composed of several parts")
            argv[-1] = f"{argv[-1].replace(DERIVED, '')}{self.word_reader.text(node)}"
            if "$" in argv[-1]:
                argv[-1] = COMPUTED
        else:
            argv += self.word_reader.alternatives(node)

    def declaration(self, node: Node, where: SourcePosition) -> None:
        """`export A=1`, `declare -x A`, `unset A`: words, of which some are assignments."""
        tokens: list[str] = []
        for child in self.children(node):
            if child.type == "variable_assignment":
                name, value = self._assignment(child, prefix=False)
                tokens.append(f"{name}={value}")
            elif child.type in WORD_KINDS or not child.is_named:
                tokens.append(self.word_reader.text(child) if child.is_named else self.text(child))
            else:
                raise Unclear(f"it has a declaration that is not supported ({child.type})")
        self.emit(tuple(tokens), where)

    def assignment(self, node: Node, where: SourcePosition) -> None:
        name, value = self._assignment(node, prefix=False)
        self.emit((), where, assignments=((name, value),))
        once = name not in self.set_names | self.for_names
        if once and where.certain and not where.looped and COMPUTED not in value:
            self.word_reader.values[name] = (value.replace(DERIVED, ""),)
        else:
            self.word_reader.values.pop(name, None)
        self.set_names.add(name)

    def assignments(self, node: Node, where: SourcePosition) -> None:
        for child in self.children(node):
            self.assignment(child, where)

    def _assignment(self, node: Node, *, prefix: bool) -> tuple[str, str]:
        name, sign, *rest = node.children
        value = rest[0] if rest else None
        adjoining = name.end_byte == sign.start_byte and (
            value is None or (sign.end_byte == value.start_byte and len(rest) == 1)
        )
        if not adjoining or sign.type not in ("=", "+="):
            raise Unclear("it has an assignment that cannot be parsed")
        if sign.type == "+=":
            self.note("an assignment that shells interpret differently (+=)")
            if prefix or "/" in self.text(node):
                raise Unclear("shells interpret += differently; use =")
        text = ""
        if value is not None and value.type == "array":
            self.note("a subshell or function (parenthesis)")
            text = COMPUTED
            for child in value.children:
                if child.type in WORD_KINDS:
                    self.word_reader.text(child)
        elif value is not None:
            text = self.word_reader.text(value)
        if name.type == "subscript":
            self.note("a glob ([)")
            self.word_reader.descend(name)
            name = name.children[0]
        if not _NAME.fullmatch(self.text(name)):
            raise Unclear(f"{self.text(name)!r} is not a variable name")
        return self.text(name), text

    def assign_unknown(self, name: str) -> None:
        self.emit((), self.where, assignments=((name, COMPUTED),))
        self.set_names.add(name)
        self.word_reader.values.pop(name, None)

    def redirects(self, nodes: Sequence[Node]) -> tuple[tuple[Redirect, ...], str | None, bool]:
        """Files that are opened, the text that is fed, and whether anything is fed at all."""
        redirects: list[Redirect] = []
        script: str | None = None
        fed = False
        for node in nodes:
            self.note(f"a redirection ({sign(node)})")
            if node.type == "herestring_redirect":
                text_read = self.word_reader.text(node.children[-1])
                script = None if COMPUTED in text_read else f"{text_read.replace(DERIVED, '')}\n"
                fed = True
            elif node.type != "file_redirect":
                raise Unclear("a here-document cannot be parsed; quote its closing word: <<'EOF'")
            else:
                text = self._file_redirect(node, redirects)
                script, fed = (text, True) if text is not None else (script, fed or _reads(node))
        return tuple(redirects), script, fed

    def _file_redirect(self, node: Node, redirects: list[Redirect]) -> str | None:
        """Note the file it opens; or give the text of the here-document that it stands for."""
        operator = sign(node)
        targets = [child for child in self.children(node) if child.is_named]
        targets = [child for child in targets if child.type != "file_descriptor"]
        if not targets:
            return None
        if len(targets) > 1:
            raise Unclear("it has a redirection that cannot be parsed")
        target = self.word_reader.text(targets[0])
        if self.documents and target.startswith(PLACEHOLDER):
            return self._document(int(target.removeprefix(PLACEHOLDER)))
        if operator in (">&", "<&") and _DUPLICATED.fullmatch(target):
            return None
        if operator not in _SILENT_REDIRECTS | _WRITING_REDIRECTS:
            raise Unclear(f"it has a redirection that is not supported ({operator})")
        access = Access.READ if operator in _SILENT_REDIRECTS else Access.WRITE
        redirects.append(Redirect(target, access))
        return None

    def _document(self, number: int) -> str:
        document = self.documents[number]
        for inner in document.inner_scripts():
            self.inner_script(inner)
        return document.body if document.certain else COMPUTED


def sign(node: Node) -> str:
    return next((child.type for child in node.children if not child.is_named), "")


def _reads(node: Node) -> bool:
    return sign(node) in _SILENT_REDIRECTS
