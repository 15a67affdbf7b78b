"""The arguments of a call as somebody must see them who answers for it: whole, and none passing for another."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping

from podium.domain.model import Json
from podium.domain.seeing import written_out

LONGEST_IN_LINE = 120
_LOOKS_LIKE_MORE = re.compile(r"[,;] *[^ ,;=]+=|^$|^\s|\s$|^[\"{\[]|^\(from ")
"""A text that could pass for another argument, for a reference, or for nothing."""


def is_reference(value: Json) -> bool:
    """Whether a value stands for what an earlier call will give."""
    if not isinstance(value, dict) or set(value) != {"$from"}:
        return False
    sources = _sources(value["$from"])
    return bool(sources) and all(_is_source(each) for each in sources)


def reference_words(value: Json) -> str:
    """`(from 1: lead_id)`."""
    return ", ".join(
        f"(from {step}: {written_out(field)})" for step, field in _sources(value["$from"])
    )


def exactly(arguments: Mapping[str, Json], indent: int) -> tuple[str, list[str]]:
    """What fits on the call's own line without a doubt, and the lines beneath it for all the rest."""
    plain = {name: value for name, value in arguments.items() if _is_plain(name, value)}
    said = ", ".join(f"{name}={_words(value)}" for name, value in plain.items())
    rest = {name: value for name, value in arguments.items() if name not in plain}
    return said, list(exact_lines(rest, indent))


def exact_lines(arguments: Mapping[str, Json], indent: int) -> Iterator[str]:
    """Each argument on a line of its own, whole. Lines of a text stand behind a bar."""
    start = " " * indent
    for name, value in arguments.items():
        first, *more = _lines(value)
        yield f"{start}{_name(name)}: {first}".rstrip()
        yield from (f"{start}  {line}" for line in more)


def digested(value: Json, longest: int) -> str:
    """A value on one line; a longer one by its beginning, its end, how much is between them, and a digest."""
    if is_reference(value):
        return reference_words(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= longest:
        return repr(text) if isinstance(value, str) else written_out(text)
    half = longest // 2
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]
    left_out = f"[{len(text) - 2 * half} characters left out; sha256 of the whole {digest}]"
    return f"{text[:half]!r}… {left_out} …{text[-half:]!r}"


def _sources(source: Json) -> list[Json]:
    nested = isinstance(source, list) and all(isinstance(each, list) for each in source)
    return source if nested else [source]


def _is_source(source: Json) -> bool:
    match source:
        case [int(), str()]:
            return True
        case _:
            return False


def _is_plain(name: str, value: Json) -> bool:
    if isinstance(value, (dict, list)) and not is_reference(value):
        return False
    words = _words(value)
    return _name(name) == name and "\n" not in words and len(words) <= LONGEST_IN_LINE


def _lines(value: Json) -> list[str]:
    if isinstance(value, str) and "\n" in value:
        lines = written_out(value.replace("\r\n", "\n")).split("\n")
        return ["", *(f"| {line}".rstrip() for line in lines)]
    if isinstance(value, (dict, list)) and not is_reference(value):
        words = written_out(json.dumps(value, ensure_ascii=False))
        if len(words) > LONGEST_IN_LINE:
            return written_out(json.dumps(value, ensure_ascii=False, indent=2)).split("\n")
        return [words]
    return [_words(value)]


def _words(value: Json) -> str:
    """A value that is no record. A text that could pass for something else is quoted."""
    match value:
        case str():
            quoted = _LOOKS_LIKE_MORE.search(value) and "\n" not in value
            return written_out(json.dumps(value, ensure_ascii=False) if quoted else value)
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case dict():
            return reference_words(value)
        case _:
            return json.dumps(value)


def _name(name: str) -> str:
    return written_out(name) if name.isidentifier() else written_out(json.dumps(name))
