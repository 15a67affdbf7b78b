"""Reader of a command's words: what is certain, and what is only known when they run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from podium.policy.shell.simple_command import ANY, COMPUTED, DERIVED, Unclear

if TYPE_CHECKING:
    from tree_sitter import Node


_PLAIN = re.compile(rb"[A-Za-z0-9_./:=@%+^-]+")
PLAIN_WORD = re.compile(rb"[A-Za-z0-9_./:=@%+^,-]+")
_BARE = re.compile(rb'[^\\$`"!]*')
_EXPANDS = frozenset(
    {"simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"}
)
_SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution"})
_NAME_START = re.compile(rb"[A-Za-z0-9_({@*#?$!'\"\[-]")
_PLAIN_EXPANSION = re.compile(rb"\$(?:(\w+)|\{(\w+)\})")
_ESCAPED_IN_QUOTES = re.compile(rb'\\([$`"\\\n])')
_ACTIVE_IN_QUOTES = re.compile(rb"\\.|`|\$(?=[A-Za-z0-9_({@*#?$!-])", re.DOTALL)
_UNSURE_IN_QUOTES = re.compile(rb"!(?=[^\s\"])|\\[`\n!]|\\$|(?<!\\)\$")
"""Text that only some shells, or only those on a terminal, take for more than its characters."""
_ARITHMETIC = re.compile(rb"[\w\s+\-*/%<>=!&|^~?:,$#(){}\[\]@\"'.]*")
_TWO_WORDS = re.compile(rb"[A-Za-z_]\w*\s+[\w./-]")
_OPEN, _COMMA, _CLOSE = "\x03", "\x04", "\x05"
_INNERMOST = re.compile("\x03([^\x03\x05]*)\x05")
_MAX_ALTERNATIVES = 64
_ANSI = re.compile(r"\\(?:([abeEfnrtv\\'\"?])|x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
_ANSI_ESCAPES = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))
_TEMPORARY = re.compile(rb"\$\(mktemp(?: -d)?\)")


class WordReader:
    """Turns the nodes of one script's words into text. Tells `note` of all that is not plain."""

    def __init__(
        self,
        source: bytes,
        note: Callable[[str], None],
        substitution: Callable[[Node], None],
        assigned: Callable[[str], None],
    ) -> None:
        self._source = source
        self._note = note
        self._substitution = substitution
        self._assigned = assigned
        self.values: dict[str, tuple[str, ...]] = {}
        """Values that variables are known to hold."""
        self.inert: list[tuple[int, int]] = []
        """Ranges of the script that are quoted so that nothing in them is expanded."""
        self.arithmetic = False

    def alternatives(self, node: Node) -> tuple[str, ...]:
        """The words that a word becomes: several when it has braces or a variable with several values."""
        raw = self._source[node.start_byte : node.end_byte]
        if node.type in ("word", "number") and PLAIN_WORD.fullmatch(raw):
            return (raw.decode(),)
        return _spread(self.read(node))

    def text(self, node: Node) -> str:
        """The word as one text; what would become several is only known when it runs."""
        alternatives = self.alternatives(node)
        return alternatives[0] if len(alternatives) == 1 else COMPUTED

    def read(self, node: Node, *, first: bool = True, braces: bool = False) -> str:
        """A word or a part of one. `first`: it stands at the word's beginning."""
        kind = node.type
        raw = self._source[node.start_byte : node.end_byte]
        if kind in ("word", "number", "extglob_pattern", "variable_name"):
            return self._unquoted(raw, first, braces)
        if kind == "string":
            return self._double_quoted(node, first)
        if kind == "raw_string":
            self.inert.append((node.start_byte, node.end_byte))
            return _decoded(raw[1:-1])
        if kind == "concatenation":
            return self._joined(node, first)
        if kind in _EXPANDS or kind == "process_substitution":
            return self._expanded(node, raw, first)
        if kind == "ansi_c_string":
            self.inert.append((node.start_byte, node.end_byte))
            self._note("an expansion ($)")
            return _ansi(_decoded(raw[2:-1])) + DERIVED
        if kind == "brace_expression":
            self._note("a brace expansion or group ({)")
            return _numbered(_decoded(raw))
        if kind == "$":
            self._note("an expansion ($)")
            return "$" if node.end_byte == len(self._source) else COMPUTED
        if (
            not node.children
            and re.fullmatch(rb"[=!<>~+*/%^&|:?-]{1,3}", raw)
            and not set(raw) & set(b"<>&|")
        ):
            return self._unquoted(raw, first, braces)
        raise Unclear(f"it has a part that cannot be parsed: {_decoded(raw)[:40]!r}")

    def _joined(self, node: Node, first: bool) -> str:
        parts: list[str] = []
        for child in node.children:
            at_start = first and not parts
            if child.type == "concatenation":
                parts.append(self._joined(child, at_start))
            else:
                parts.append(self.read(child, first=at_start, braces=True))
        return "".join(parts)

    def _unquoted(self, raw: bytes, first: bool, braces: bool) -> str:
        if _PLAIN.fullmatch(raw):
            return raw.decode()
        text, out, at = _decoded(raw), [], 0
        while at < len(text):
            char = text[at]
            if char == "\\":
                at += 1
                out.append(self._escaped(text[at : at + 1]))
            elif char in "*?[":
                self._note(f"a glob ({char})")
                out.append(ANY)
            elif char == "{" or char == "}":
                self._note(f"a brace expansion or group ({char})")
                out.append(_OPEN if char == "{" else _CLOSE)
            elif char == ",":
                out.append(_COMMA if braces else char)
            elif char == "$":
                if _NAME_START.match(text[at + 1 :].encode("utf-8", "surrogateescape")):
                    raise Unclear("it has an expansion that is not supported")
                self._note("an expansion ($)")
                out.append(char)
            elif char in "`\"'|&;<>() \t\n":
                raise Unclear(f"it has the character {char!r} in an unexpected place")
            else:
                self._note_odd(char, text[at - 1] if at else "", first and at == 0)
                out.append(char)
            at += 1
        return "".join(out)

    def _escaped(self, char: str) -> str:
        if char == "\n":
            self._note("a line continuation")
            return ""
        if not char:
            raise Unclear("it ends in a backslash")
        return char

    def _note_odd(self, char: str, before: str, first: bool) -> None:
        if char == "~" and not before.isalnum():
            self._note("a home folder (~)")
        elif char == "!":
            self._note("a negation or history expansion (!)")
        elif char == "#":
            self._note("a comment (#)")
        elif char == "]":
            self._note("a glob (])")
        elif not (char.isalnum() or char in "_./:=@%+^~-"):
            self._note(f"the character {char!r} unquoted")

    def _double_quoted(self, node: Node, first: bool) -> str:
        at, end = node.start_byte + 1, node.end_byte - 1
        if self._source[at - 1 : at] != b'"' or self._source[end : end + 1] != b'"' or end < at:
            raise Unclear("a double quote is not closed")
        out: list[str] = []
        for child in node.children:
            if child.type in _EXPANDS:
                out.append(self._literal(self._source[at : child.start_byte]))
                raw = self._source[child.start_byte : child.end_byte]
                leading = first and not any(out)
                out.append(self._expanded(child, raw, leading, quoted=True))
                at = child.end_byte
        out.append(self._literal(self._source[at:end]))
        return "".join(out)

    def _literal(self, raw: bytes) -> str:
        if _BARE.fullmatch(raw):
            return _decoded(raw)
        for active in _ACTIVE_IN_QUOTES.finditer(raw):
            if not active[0].startswith(b"\\"):
                raise Unclear("it has a part inside double quotes that cannot be parsed")
        if _UNSURE_IN_QUOTES.search(raw):
            self._note("an escape, a negation (!) or an expansion ($) inside double quotes")
        if b'"' in _ESCAPED_IN_QUOTES.sub(b"", raw):
            raise Unclear("a double quote is not closed")
        return _decoded(_ESCAPED_IN_QUOTES.sub(lambda m: b"" if m[1] == b"\n" else m[1], raw))

    def _expanded(self, node: Node, raw: bytes, first: bool, *, quoted: bool = False) -> str:
        if node.type in _SUBSTITUTIONS:
            backticks = raw.startswith(b"`")
            self._note("a command substitution (backticks)" if backticks else "an expansion ($)")
            self._substitution(node)
            if node.type == "process_substitution":
                return "/dev/fd/63" + DERIVED
            if first and raw == b"$(pwd)":
                return "." + DERIVED
            return "/tmp/made-by-mktemp" + DERIVED if _TEMPORARY.fullmatch(raw) else COMPUTED  # noqa: S108 - the value of the line's own $(mktemp)
        self._note("an expansion ($)")
        plain = _PLAIN_EXPANSION.fullmatch(raw)
        if plain is not None:
            return self._variable((plain[1] or plain[2]).decode(), first, quoted)
        if node.type == "arithmetic_expansion":
            self.calculate(node)
        elif node.type == "expansion":
            self._check_operators(node)
        self.descend(node)
        return COMPUTED

    def _variable(self, name: str, first: bool, quoted: bool) -> str:
        if name in ("HOME", "PWD") and name not in self.values:
            # The gate knows neither: `~` and `.` mean the same where a path begins.
            return ({"HOME": "~", "PWD": "."}[name] + DERIVED) if first else COMPUTED
        values = self.values.get(name, ())
        if not values or (not quoted and any(set(" \t\n") & set(value) for value in values)):
            return COMPUTED
        if len(values) == 1:
            return values[0] + DERIVED
        return _OPEN + _COMMA.join(values) + _CLOSE + DERIVED

    def _check_operators(self, node: Node) -> None:
        signs = [child.type for child in node.children]
        if "@" in signs and "P" in signs:
            raise Unclear("${…@P} runs the content of a variable")
        if {":=", "="} & set(signs):
            named = next((c for c in node.children if c.type == "variable_name"), None)
            if named is not None:
                self._assigned(_decoded(self._source[named.start_byte : named.end_byte]))

    def calculate(self, node: Node) -> None:
        """Check a calculation: some shells read `((git log))` as commands."""
        raw = b"".join(self._calculated(node))
        if not _ARITHMETIC.fullmatch(raw) or _TWO_WORDS.search(raw):
            raise Unclear("it has arithmetic that some shells run as commands")
        self.arithmetic = True

    def _calculated(self, node: Node) -> Iterator[bytes]:
        """The calculation without the commands whose output it takes."""
        at = node.start_byte
        for child in node.children:
            yield self._source[at : child.start_byte]
            if child.type not in _SUBSTITUTIONS:
                yield from self._calculated(child)
            at = child.end_byte
        yield self._source[at : node.end_byte]

    def descend(self, node: Node) -> None:
        """Read the commands inside a part whose own value does not matter."""
        for child in node.children:
            if child.type in _SUBSTITUTIONS:
                self._note("an expansion ($)")
                self._substitution(child)
            elif child.type == "expansion":
                self._check_operators(child)
                self.descend(child)
            elif child.children:
                self.descend(child)


def _spread(text: str) -> tuple[str, ...]:
    """Braces written out, as bash does it; other shells take them as they stand."""
    if _OPEN not in text and _CLOSE not in text and _COMMA not in text:
        return (_tidied(text),)
    done: list[str] = []
    todo = [text]
    while todo:
        one = todo.pop()
        inner = next((m for m in _INNERMOST.finditer(one) if _COMMA in m[1]), None)
        if inner is None:
            done.append(one)
            continue
        head, tail = one[: inner.start()], one[inner.end() :]
        choices = inner[1].split(_COMMA)
        if len(done) + len(todo) + len(choices) > _MAX_ALTERNATIVES:
            return (COMPUTED,)
        todo += [f"{head}{choice}{tail}" for choice in reversed(choices)]
    several = len(done) > 1
    return tuple(_tidied(one + DERIVED if several else one) for one in done)


def _tidied(text: str) -> str:
    text = text.replace(_OPEN, "{").replace(_COMMA, ",").replace(_CLOSE, "}")
    if DERIVED in text:
        return text.replace(DERIVED, "") + DERIVED
    return text


def _numbered(raw: str) -> str:
    """`{1..3}` with all its numbers; longer ones are only known when they run."""
    match = re.fullmatch(r"\{(-?\d{1,6})\.\.(-?\d{1,6})\}", raw)
    if match is None:
        return COMPUTED
    least, most = sorted((int(match[1]), int(match[2])))
    if most - least >= _MAX_ALTERNATIVES:
        return COMPUTED
    return _OPEN + _COMMA.join(map(str, range(least, most + 1))) + _CLOSE


def _ansi(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        escape, hexadecimal, octal, other = match.groups()
        if escape:
            return _ANSI_ESCAPES[escape]
        if hexadecimal or octal:
            code = int(hexadecimal, 16) if hexadecimal else int(octal, 8)
            return chr(code) if code > 5 else COMPUTED
        return COMPUTED if other in "uUcx" else f"\\{other}"

    return _ANSI.sub(one, text)


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
