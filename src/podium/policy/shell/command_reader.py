"""Reader of simple commands: arguments, assignments, and files the shell opens for them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from podium.core.decisions import Access
from podium.policy.programs import names
from podium.policy.shell.parser_state import (
    PLACEHOLDER,
    WORD_KINDS,
    HereDocument,
    ParserState,
    SourcePosition,
)
from podium.policy.shell.simple_command import COMPUTED, DERIVED, Redirect, Unclear
from podium.policy.shell.word_reader import PLAIN_WORD, WordReader

if TYPE_CHECKING:
    from tree_sitter import Node


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
            raise Unclear(f"{argv[0]!r} is taken for a program")
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
            self.note("a word in parts that belong together")
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
                raise Unclear(f"it has a declaration that is not understood ({child.type})")
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
            raise Unclear("it sets a variable in a way that is not understood")
        if sign.type == "+=":
            self.note("an assignment that shells read differently (+=)")
            if prefix or "/" in self.text(node):
                raise Unclear("shells do not agree on what += is; use plain =")
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
            raise Unclear(f"{self.text(name)!r} is no name of a variable")
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
                raise Unclear("a here-document is not understood; quote its closing word: <<'EOF'")
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
            raise Unclear("it has a redirection that is not understood")
        target = self.word_reader.text(targets[0])
        if self.documents and target.startswith(PLACEHOLDER):
            return self._document(int(target.removeprefix(PLACEHOLDER)))
        if operator in (">&", "<&") and _DUPLICATED.fullmatch(target):
            return None
        if operator not in _SILENT_REDIRECTS | _WRITING_REDIRECTS:
            raise Unclear(f"it has a redirection that is not understood ({operator})")
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
