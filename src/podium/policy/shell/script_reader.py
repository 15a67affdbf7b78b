"""Reader of a script by the bash grammar: every simple command in it.

The grammar is not trusted to see everything. Every byte between two nodes must be a blank, every
node of a known kind, and every `$(`, backtick and `<(` that is not quoted must have been found as a
command; anything else is unclear, which the gate answers with a denial.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from podium.core.decisions import Access
from podium.policy.programs import names
from podium.policy.shell.command_reader import (
    MAX_COMMANDS,
    PLACEHOLDER,
    RESERVED,
    WORD_KINDS,
    CommandReader,
    HereDocument,
    SourcePosition,
    loosely,
    sign,
    taken_out,
)
from podium.policy.shell.simple_command import COMPUTED, DERIVED, Redirect, Unclear, WrittenCommand

if TYPE_CHECKING:
    from tree_sitter import Node


_BARE_WORDS = re.compile(r"[A-Za-z0-9_./:=,@%+^-]+(?: [A-Za-z0-9_./:=,@%+^-]+)*")
"""One command without a sign that means anything to a shell: half of all lines, and no grammar needed."""
_HIDDEN = re.compile(rb"\\.|`|\$\(|[<>]\(", re.DOTALL)
_BEFORE_COMMENT = frozenset(b" \t\n;|&()")
_SEQUENCES = names(
    "program compound_statement do_group else_clause elif_clause if_statement while_statement"
)
_TOKENS = names("; & && || | |& ( ) { } do done then fi if elif else while until") | {
    "\n",
}
_MAX_DEPTH = 32
"""Statements in one another; nobody reads more. Each takes up to ten of Python's frames."""
_TOO_DEEP = "it is nested too deeply"


class ParsedScript(NamedTuple):
    """A script, parsed."""

    commands: tuple[WrittenCommand, ...]
    beyond_plain: str
    unsteady: bool


def read_script(text: str) -> ParsedScript:
    """Read a script. Raises `Unclear` with the reason."""
    try:
        return _read(text)
    except RecursionError:  # Calculations and conditions may nest without a statement between.
        raise Unclear(_TOO_DEEP) from None


def _read(text: str) -> ParsedScript:
    if _BARE_WORDS.fullmatch(text):
        argv = tuple(text.split(" "))
        if argv[0] not in RESERVED and "=" not in argv[0]:
            return ParsedScript((WrittenCommand(argv, (), (), (), False, False, None),), "", False)
    source = text.encode("utf-8", "surrogateescape")
    shorter, documents = taken_out(source)
    if documents:
        reader = _StatementReader(shorter, documents)
        if reader.confirmed:
            return reader.read()
    return _StatementReader(source, ()).read()


class _StatementReader(CommandReader):
    """Reads statements, and the commands they are made of."""

    def __init__(self, source: bytes, documents: Sequence[HereDocument]) -> None:
        super().__init__(source, documents)
        self.handled: set[int] = set()
        """Offsets at which substitutions begin that were read, and at which backticks end."""
        self._depth = 0

    @property
    def confirmed(self) -> bool:
        """Tell whether the tree shows every here-document as the redirection it stands for."""
        if self.root.has_error:
            return False
        placeholder_count = self.source.count(PLACEHOLDER.encode())
        return placeholder_count == len(self.documents) == _placeholders(self.root, self.source)

    def read(self) -> ParsedScript:
        if self.root.has_error:
            raise Unclear("it is incomplete or has a syntax error")
        self.sequence(self.root, self.where)
        self._check_hidden()
        if not self.commands:
            raise Unclear("it is empty")
        if self.word_reader.arithmetic and self._has_runnable_text():
            raise Unclear("it has arithmetic, and a text that the arithmetic may run")
        return ParsedScript(tuple(self.commands), self.beyond_plain, self.unsteady)

    def _has_runnable_text(self) -> bool:
        """A calculation runs `a[$(…)]` in the value of a variable: no text may hold such a thing."""
        return _RUNNABLE_ESCAPED.search(self.source) is not None or any(
            _RUNNABLE.search(self.source, start, end) for start, end in self.word_reader.inert
        )

    def statement(self, node: Node, where: SourcePosition) -> None:
        handler = _HANDLERS.get(node.type)
        if handler is None:
            raise Unclear(f"it has shell grammar that is not supported ({node.type})")
        if self._depth >= _MAX_DEPTH:
            raise Unclear(_TOO_DEEP)
        before, self.where = self.where, where
        self._depth += 1
        handler(self, node, where)
        self._depth -= 1
        self.where = before

    def sequence(self, node: Node, where: SourcePosition) -> None:
        """Statements one after another, and what stands between them."""
        if node.type != "program":
            self._note_grammar(node)
        if node.type == "compound_statement" and node.children[0].type == "((":
            self._calculation(node)
            return
        inside = where if node.type in ("program", "compound_statement") else loosely(where)
        if node.type in ("do_group", "while_statement"):
            inside = inside._replace(looped=True)
        self._statements(self.children(node), inside)

    def _statements(self, children: Sequence[Node], where: SourcePosition) -> None:
        for at, child in enumerate(children):
            if not child.is_named:
                self._token(child)
            elif child.type in WORD_KINDS:
                raise Unclear("it has a word in place of a command")
            else:
                after = children[at + 1].type if at + 1 < len(children) else ""
                self.statement(child, self.inner(loosely(where)) if after == "&" else where)
                if where.after_success:
                    where = where._replace(after_success=False)

    def _note_grammar(self, node: Node) -> None:
        if node.type == "compound_statement":
            self.note("a brace expansion or group ({)")
        else:
            self.note(f"shell grammar ({node.children[0].type if node.children else node.type})")

    def _token(self, child: Node) -> None:
        if child.type not in _TOKENS:
            raise Unclear(f"it has shell grammar that is not supported ({child.type})")
        if child.type == "&":
            self.note("a background job (&)")
        if child.is_missing:
            raise Unclear("it is incomplete")

    def list_(self, node: Node, where: SourcePosition) -> None:
        later: list[tuple[str, Node]] = []
        while node.type == "list":  # `a && b && c` is a list of a list and c, as long as the line.
            node, operator, right = self._pair(node)
            later.append((operator, right))
        self.statement(node, where)
        for operator, right in reversed(later):
            self.statement(right, where._replace(after_success=operator == "&&", certain=False))

    def _pair(self, node: Node) -> tuple[Node, str, Node]:
        children = self.children(node)
        if len(children) != 3 or children[1].type not in ("&&", "||"):
            raise Unclear("it has '&&' or '||' without a command")
        return children[0], children[1].type, children[2]

    def pipeline(self, node: Node, where: SourcePosition) -> None:
        self._stages(self.children(node), where)

    def _stages(self, children: Sequence[Node], where: SourcePosition) -> None:
        fed = where.fed
        after_success = where.after_success
        for child in children:
            if not child.is_named:
                if child.type == "|&":
                    self.note("a background job (&)")
                elif child.type != "|":
                    raise Unclear(f"it has shell grammar that is not supported ({child.type})")
                fed, after_success = True, False
                continue
            self.statement(
                child, self.inner(loosely(where))._replace(fed=fed, after_success=after_success)
            )

    def subshell(self, node: Node, where: SourcePosition) -> None:
        self.note("a subshell or function (parenthesis)")
        self._statements(self.children(node), self.inner(where))

    def negated(self, node: Node, where: SourcePosition) -> None:
        self.note("a negation or history expansion (!)")
        for child in self.children(node):
            if child.is_named:
                self.statement(child, where._replace(certain=False))
            elif child.type != "!":
                raise Unclear("it has a negation that cannot be parsed")

    def function(self, node: Node, where: SourcePosition) -> None:
        self.note("a subshell or function (parenthesis)")
        self.unsteady = True
        name = node.child_by_field_name("name")
        if name is None:
            raise Unclear("it has a function without a name")
        self.emit(("function", self.word_reader.text(name)), loosely(where))
        for child in self.children(node):
            if child.type == "file_redirect":
                self.emit((), where, redirects=self.redirects([child])[0])
            elif child.is_named and child != name:
                self.statement(child, loosely(where)._replace(looped=True, fed=True))

    def for_(self, node: Node, where: SourcePosition) -> None:
        children = self.children(node)
        if children[0].type != "for":
            raise Unclear("`select` waits for input")
        self.note("shell grammar (for)")
        name = ""
        values: list[str] = []
        for child in children:
            if child.type == "variable_name":
                name = self.text(child)
            elif child.type in WORD_KINDS:
                values += self.word_reader.alternatives(child)
            elif child.is_named:
                self._loop_variable(name, values)
                self.statement(child, loosely(where)._replace(looped=True))
                self.word_reader.values.pop(name, None)

    def _loop_variable(self, name: str, values: Sequence[str]) -> None:
        self.emit((), self.where, assignments=((name, COMPUTED),))
        is_computable = values and all(COMPUTED not in value for value in values)
        if is_computable and name not in self.set_names | self.for_names:
            self.word_reader.values[name] = tuple(value.replace(DERIVED, "") for value in values)
        self.for_names.add(name)

    def counting_for(self, node: Node, where: SourcePosition) -> None:
        self.note("shell grammar (for)")
        self.word_reader.arithmetic = True
        for child in node.children:
            if child.type in ("do_group", "compound_statement"):
                self.statement(child, loosely(where)._replace(looped=True))
            elif child.is_named:
                self.word_reader.calculate(child)
                self.word_reader.descend(child)

    def case(self, node: Node, where: SourcePosition) -> None:
        self.note("shell grammar (case)")
        for child in self.children(node):
            if child.type == "case_item":
                for part in child.children:
                    if part.type in WORD_KINDS:
                        self.word_reader.text(part)
                    elif part.is_named:
                        self.statement(part, loosely(where))
            elif child.type in WORD_KINDS:
                self.word_reader.text(child)
            elif child.is_named:
                self.statement(child, where)

    def test(self, node: Node, where: SourcePosition) -> None:
        self.note("a glob ([)" if node.children[0].type == "[" else "shell grammar ([[)")
        redirects: list[Redirect] = []
        self._test_parts(node, redirects)
        self.word_reader.descend(node)
        self.emit(("test",), where, redirects=tuple(redirects))

    def _test_parts(self, node: Node, redirects: list[Redirect]) -> None:
        """Words of a condition; some shells take `[[` for a program and `>` for a redirection."""
        for at, child in enumerate(node.children):
            if child.type in ("<", ">") and at + 1 < len(node.children):
                target = self.word_reader.text(node.children[at + 1])
                redirects.append(
                    Redirect(target, Access.READ if child.type == "<" else Access.WRITE)
                )
            elif child.type == "raw_string":
                self.word_reader.read(child)
            elif child.type == "test_operator" and self.text(child) in _CALCULATING_TESTS:
                self.word_reader.arithmetic = True
            elif child.children and child.type not in WORD_KINDS:
                self._test_parts(child, redirects)
            elif child.type == "concatenation":
                self.word_reader.read(child)

    def comment(self, node: Node, where: SourcePosition) -> None:
        before = self.source[node.start_byte - 1 : node.start_byte]
        if before and before[0] not in _BEFORE_COMMENT:
            raise Unclear("it has a '#' that cannot be parsed")
        self.note("a comment (#)")
        self.word_reader.inert.append((node.start_byte, node.end_byte))

    def _calculation(self, node: Node) -> None:
        self.note("a subshell or function (parenthesis)")
        self.word_reader.calculate(node)
        self.word_reader.descend(node)
        self.emit(("test",), self.where)

    def redirected(self, node: Node, where: SourcePosition) -> None:
        children = self.children(node)
        parts = [child for child in children if child.type.endswith("_redirect")]
        bodies = [child for child in children if not child.type.endswith("_redirect")]
        redirects, script, fed = self.redirects(parts)
        if len(bodies) > 1:
            raise Unclear("it has a redirection that cannot be parsed")
        if bodies:
            self._with_redirects(bodies[0], where, redirects, script, fed)
        else:
            self.emit((), where, redirects=redirects)

    def _with_redirects(
        self,
        node: Node,
        where: SourcePosition,
        redirects: tuple[Redirect, ...],
        script: str | None,
        fed: bool,
    ) -> None:
        """The grammar gives a redirection to the whole of `a && b > c`; it belongs to the last command."""
        if node.type == "command":
            self.read_command(node, where, redirects, script, fed)
        elif node.type == "list":
            left, operator, right = self._pair(node)
            self.statement(left, where)
            after = where._replace(after_success=operator == "&&", certain=False)
            self._with_redirects(right, after, redirects, script, fed)
        elif node.type == "pipeline":
            *others, last = self.children(node)
            self._stages(others, where)
            inside = self.inner(loosely(where))._replace(fed=True, after_success=False)
            self._with_redirects(last, inside, redirects, script, fed)
        else:
            self.emit((), where, redirects=redirects)
            self.statement(node, where._replace(fed=where.fed or fed))

    def substitution(self, node: Node) -> None:
        raw = self.source[node.start_byte : node.end_byte]
        self.handled.add(node.start_byte)
        if raw.startswith(b"`"):
            self.handled.add(node.end_byte - 1)
            if b"\\`" in raw:
                raise Unclear("it has backticks inside backticks; use $(…)")
        inside = self.inner(loosely(self.where))
        children = self.children(node)[1:-1]
        if len(children) == 1 and children[0].type == "file_redirect":
            self.emit((), inside, redirects=self.redirects(children)[0])
        else:
            self._statements(children, inside)

    def _check_hidden(self) -> None:
        """Every command substitution of the script must have been read as one."""
        at = 0
        inert = sorted(self.word_reader.inert)
        while (hit := _HIDDEN.search(self.source, at)) is not None:
            while inert and inert[0][1] <= hit.start():
                inert.pop(0)
            if inert and inert[0][0] <= hit.start():
                at = inert[0][1]
                continue
            if not hit[0].startswith(b"\\") and hit.start() not in self.handled:
                after = self.source[hit.end() : hit.end() + 1]
                if hit[0] != b"$(" or after != b"(":
                    raise Unclear("it has a command substitution that cannot be parsed")
            at = hit.end()

    def inner_script(self, text: str) -> None:
        scope = self.inner(self.where).scope
        self.commands += [
            one._replace(scope=(*scope, *one.scope)) for one in read_script(text).commands
        ]
        if len(self.commands) > MAX_COMMANDS:
            raise Unclear(f"it has more than {MAX_COMMANDS} commands")


_CALCULATING_TESTS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v"})
_RUNNABLE = re.compile(rb"\$\(|`")
_RUNNABLE_ESCAPED = re.compile(rb"\\\$\(|\\`")


def _placeholders(node: Node, source: bytes) -> int:
    """Count redirections from a here-document's placeholder in the tree."""
    if node.type == "file_redirect" and sign(node) == "<":
        target = node.children[-1]
        raw = source[target.start_byte : target.end_byte]
        return int(target.type == "word" and raw.startswith(PLACEHOLDER.encode()))
    return sum(_placeholders(child, source) for child in node.children if child.is_named)


_HANDLERS: dict[str, Callable[[_StatementReader, Node, SourcePosition], None]] = {
    **dict.fromkeys(_SEQUENCES, _StatementReader.sequence),
    "list": _StatementReader.list_,
    "pipeline": _StatementReader.pipeline,
    "subshell": _StatementReader.subshell,
    "negated_command": _StatementReader.negated,
    "function_definition": _StatementReader.function,
    "for_statement": _StatementReader.for_,
    "c_style_for_statement": _StatementReader.counting_for,
    "case_statement": _StatementReader.case,
    "test_command": _StatementReader.test,
    "comment": _StatementReader.comment,
    "redirected_statement": _StatementReader.redirected,
    "command": _StatementReader.command,
    "declaration_command": _StatementReader.declaration,
    "unset_command": _StatementReader.declaration,
    "variable_assignment": _StatementReader.assignment,
    "variable_assignments": _StatementReader.assignments,
}
