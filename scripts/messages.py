"""Every text that a person or an agent can see, as lines of file, key and text: `make messages`.

Texts of the code are the arguments of exceptions, and of calls and returns that are sentences; help is taken from the docstrings and options of
commands; pages and prompts are taken whole. What a program only compares or stores is left out as far as that can be told.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parents[1] / "src" / "podium"
TEMPLATES = (".html",)
PROMPTS = (".md", ".txt")
_SENTENCE = re.compile(r"[^\W\d_]{2,}[,;:.]? [^\W\d_]")
"""Two words, at least."""
_CODE = re.compile(
    r"^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|WITH|ALTER|DROP)\b|[\\^]\w\+?|\(\?[:P!=<]|::|^\w+ -> "
)
_DATA = ("token_set", "message_rule", "names", "Table", "words", "compile")
"""Functions whose arguments are vocabulary or statements, which nobody is shown."""
_INNER = ("style", "script")


class Message(NamedTuple):
    """One text, and where it is."""

    file: str
    line: int
    key: str
    text: str


def messages() -> Iterator[Message]:
    """Those of all files, in their order."""
    for path in sorted(SOURCE.rglob("*")):
        name = path.relative_to(SOURCE).as_posix()
        if path.suffix == ".py" and "generated" not in path.parts:
            yield from _of_code(name, ast.parse(path.read_text()))
        elif path.suffix in TEMPLATES:
            yield from _of_page(name, path.read_text())
        elif path.suffix in PROMPTS and "sample" not in path.parts:
            for number, line in enumerate(path.read_text().splitlines(), start=1):
                if line.strip():
                    yield Message(name, number, "prompt", line.strip())


def _of_code(name: str, tree: ast.Module) -> Iterator[Message]:
    docstrings = _docstrings(tree)
    seen: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_command(node):
            text = ast.get_docstring(node)
            if text:
                yield Message(name, node.lineno, f"help {node.name}", " ".join(text.split()))
        for key, value in _texts_in(node):
            if id(value) in seen or id(value) in docstrings:
                continue
            seen.update(id(inner) for inner in ast.walk(value))
            text = _text_of(value)
            if _SENTENCE.search(text) and not _CODE.search(text):
                yield Message(name, value.lineno, key, text)


def _docstrings(tree: ast.Module) -> set[int]:
    """Texts that stand alone as a statement: docstrings, of attributes too."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def _is_command(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        "command" in ast.unparse(decorator) or "callback" in ast.unparse(decorator)
        for decorator in node.decorator_list
    )


def _texts_in(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Texts of one node, with the name of what they are for."""
    match node:
        case ast.Raise(exc=ast.Call() as call):
            yield from _arguments(ast.unparse(call.func), call)
        case ast.Call():
            yield from _arguments(ast.unparse(node.func), node)
        case ast.Return(value=value) | ast.Yield(value=value) if value is not None:
            yield from (("return", text) for text in _parts(value))
        case ast.Assign(value=value) | ast.AnnAssign(value=value) if value is not None:
            yield from (("text", text) for text in _parts(value))
        case _:
            return


def _arguments(function: str, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    if function.rpartition(".")[2] in (*_DATA, "execute"):
        return
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    yield from ((function.rpartition(".")[2], text) for value in values for text in _parts(value))


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    """The texts of an expression: alternatives, entries of lists, values of tables."""
    match value:
        case ast.Constant(value=str()) | ast.JoinedStr():
            yield value
        case ast.BinOp(op=ast.Add()):
            yield value
        case ast.IfExp(body=body, orelse=orelse):
            yield from (*_parts(body), *_parts(orelse))
        case ast.Dict(values=values) | ast.Tuple(elts=values) | ast.List(elts=values):
            for inner in values:
                yield from _parts(inner)
        case _:
            return


def _text_of(value: ast.expr) -> str:
    """The text, with `{…}` for what is only known when it is shown."""
    match value:
        case ast.Constant(value=str(text)):
            return " ".join(text.split())
        case ast.JoinedStr(values=values):
            return " ".join("".join(_piece(part) for part in values).split())
        case ast.BinOp(left=left, right=right):
            return f"{_text_of(left)} {_text_of(right)}".strip()
        case _:
            return "{…}"


def _piece(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    return f"{{{ast.unparse(part.value)}}}" if isinstance(part, ast.FormattedValue) else ""


class _Page(HTMLParser):
    """The texts of a template, with its instructions left out."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[tuple[int, str, str]] = []
        self._inner = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inner += tag in _INNER
        for name, value in attrs:
            if name in ("title", "placeholder", "aria-label", "alt") and value:
                self._add(name, value)

    def handle_endtag(self, tag: str) -> None:
        self._inner -= tag in _INNER

    def handle_data(self, data: str) -> None:
        if not self._inner:
            self._add("page", data)

    def _add(self, key: str, text: str) -> None:
        if any(character.isalpha() for character in text):
            self.texts.append((self.getpos()[0], key, " ".join(text.split())))


def _of_page(name: str, text: str) -> Iterator[Message]:
    page = _Page()
    page.feed(re.sub(r"\{#.*?#\}|\{%.*?%\}", "", text, flags=re.DOTALL))
    for line, key, shown in page.texts:
        if any(character.isalpha() for character in re.sub(r"\{\{.*?\}\}", "", shown)):
            yield Message(name, line, key, shown)


def main() -> None:
    for message in messages():
        sys.stdout.write(f"{message.file}:{message.line}\t{message.key}\t{message.text}\n")


if __name__ == "__main__":
    main()
