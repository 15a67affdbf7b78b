"""Redaction of secrets from everything about to be written, and the words of records that it leaves alone.

A document that holds none is returned as it came, after one scan of its text. Only when the scan
finds something is the document decoded, its strings cleaned one by one, and encoded again, so
that nothing that is replaced can damage the JSON around it.

A configured pattern such as `[0-9a-f]{32}` fits every id, and `\\d{4}-\\d\\d-\\d\\d` every deadline:
a record in which they were hidden could not be read back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, Literal, get_args, get_origin
from urllib.parse import quote, quote_plus

from podium.core.encoded_secrets import EncodedSecrets
from podium.core.errors import BadInput
from podium.core.model import FrozenModel, Json
from podium.store.secret_shapes import (
    SHORTEST_SECRET,
    TOKEN_SHAPES,
    hide_tokens,
    may_hold_token,
    secrets_in,
)

_ID = r"[a-z]{2,12}_[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}"

# Ids, and what is made of them: the key of a call, the name of a signal and of the wait for it.
# Digests. Moments.
_RECORD_VALUE = re.compile(
    rf"{_ID}(?::.{{1,200}}:[0-9a-f]{{12}}\.[0-9]+)?"
    rf"|(?:[a-z]{{2,12}}:){{1,2}}{_ID}(?:#[0-9]+)?"
    r"|sha256:[0-9a-f]{64}"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9]{2}:[0-9]{2})"
)


def belongs_to_record(text: str) -> bool:
    """Tell whether this whole string is one that Podium itself wrote and must be able to read."""
    return text in record_literals() or _RECORD_VALUE.fullmatch(text) is not None


@cache
def record_literals() -> frozenset[str]:
    """Names of fields, types of events, and states."""
    return frozenset(literal for cls in _record_classes() for literal in _literals_of(cls))


def _record_classes() -> set[type]:
    """All that a record can be made of: records hold records."""
    # Late: where there is no secret and no pattern, nobody asks for these words.
    from podium.core import decisions, events, work

    classes: set[type] = set()
    waiting = [thing for module in (events, decisions, work) for thing in vars(module).values()]
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, type) and thing not in classes:
            classes.add(thing)
            waiting.extend(
                part for annotation in _annotations(thing) for part in _annotation_parts(annotation)
            )
    return classes


def _literals_of(thing: type) -> Iterator[str]:
    if issubclass(thing, Enum):
        yield from (str(member) for member in thing)
    elif issubclass(thing, FrozenModel):
        yield from thing.model_fields
        for annotation in _annotations(thing):
            yield from _literals(annotation)


def _annotations(thing: type) -> list[Any]:
    if not issubclass(thing, FrozenModel):
        return []
    return [field.annotation for field in thing.model_fields.values()]


def _annotation_parts(annotation: Any) -> Iterator[Any]:
    """Yield the parts of an annotation, such as the model in a tuple of them."""
    if arguments := get_args(annotation):
        for argument in arguments:
            yield from _annotation_parts(argument)
    else:
        yield annotation


def _literals(annotation: Any) -> Iterator[str]:
    if get_origin(annotation) is Literal:
        yield from (str(literal) for literal in get_args(annotation))
    else:
        for argument in get_args(annotation):
            yield from _literals(argument)


SHORTEST_LINE = 12
"""Lines of a secret at least this long are hidden on their own too."""

_MAX_TOKEN_BEGINNING = 256
"""More of a well-known token than is needed to recognise it."""
_MARKER_START = "[redacted:"
_PATTERN_MARKER = "[redacted:pattern]"
_REDACTED_TEXT = "[redacted:text]"
_PASSES = 4
_HEADERS = frozenset(
    {"authorization", "Authorization", "proxy-authorization", "Proxy-Authorization"}
)
_HEADER_START = "Authorization: "

_UNICODE_ESCAPE = re.compile(r"\\u([0-9a-f]{4})")
_BASH_SPECIAL = re.compile(r"""[\s'"\\|&;()<>!{}*\[\]?^$`,]|^[#~]|(?<=[:=])~""")
_BASH_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\x1b": "\\E"}

Hide = Callable[[str], str]


class Redactor:
    """Replaces secrets by `[redacted:NAME]`: given values, known token shapes, configured patterns.

    NAME is the variable's name, the shape's, or `pattern`. Immutable, and safe to share between
    threads.
    """

    def __init__(self, secrets: Mapping[str, str], patterns: Sequence[str] = ()) -> None:
        """`secrets` maps names to values, `patterns` are regular expressions.

        Raises `BadInput` for a value that cannot be told from ordinary text, and for a broken pattern.
        """
        for name, value in secrets.items():
            if problem := _why_unusable(value, secrets):
                raise BadInput(
                    f"the secret {name!r} cannot be redacted: {problem}; change its value"
                )
        self._patterns = tuple(_compiled(pattern) for pattern in patterns)
        self._forms = _forms_of(secrets)
        self._numbers = {form: marker for form, marker in self._forms if _is_number(form)}
        escaped = (_json_escaped(form, ascii_only=False) for form, _ in self._forms)
        self._encoded = EncodedSecrets(
            [(name, part) for name, value in secrets.items() for part in _parts_with_digits(value)],
            # Without secrets nothing is sought, and the words of records need every class of events.
            reserved=[*record_literals(), *_markers(secrets)] if secrets else (),
        )
        self._needles = tuple(dict.fromkeys([*(form for form, _ in self._forms), *escaped]))

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str],
        patterns: Sequence[str] = (),
        *,
        declared: Collection[str] = (),
        harmless: Collection[str] = (),
    ) -> Redactor:
        """For the secrets that these variables hold. Values that are ordinary words are left alone.

        `declared` names variables that are secrets although their names or values do not tell, `harmless` those that
        are none although they do.
        """
        relevant = {n: v for n, v in environ.items() if n not in harmless}
        secrets = secrets_in(relevant) | {n: environ[n] for n in declared if environ.get(n)}
        return cls({n: v for n, v in secrets.items() if not _why_unusable(v, secrets)}, patterns)

    @property
    def longest(self) -> int:
        """Largest number of characters of a secret. Where a text was cut, fewer can be left of one.

        Known values are as long as they are; a token shape needs far less to be recognised.
        """
        forms = (len(form) for form, _ in self._forms[:1])
        return max(_MAX_TOKEN_BEGINNING, self._encoded.longest, *forms)

    def text(self, text: str) -> str:
        """The text without its secrets."""
        return self._without_patterns(self._without_secrets(text))

    def values_in(self, text: str) -> tuple[str, ...]:
        """The names of the given secrets whose values are in the text, however they are written there."""
        markers = (marker for form, marker in self._forms if form in text)
        plain = (marker[len(_MARKER_START) : -1] for marker in markers)
        return tuple(dict.fromkeys([*plain, *self._encoded.names_in(text)]))

    def value(self, value: Json) -> Json:
        """A copy of the JSON value with every string cleaned, the keys of objects too."""
        return self._walk(value, self.text)

    def json_text(self, serialised: str) -> str:
        """One JSON document as text, cleaned. It stays valid JSON; a clean one is unchanged.

        Raises `BadInput` when something must be hidden and the text is not JSON.
        """
        suspicious = self._may_hold_secret(serialised)
        if not suspicious and not self._patterns:
            return serialised
        try:
            document = json.loads(serialised)
            hide = self.text if suspicious else self._without_patterns
            cleaned = self._walk(document, hide)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"cannot redact a value that is not JSON: {error}") from error
        if cleaned == document:
            return serialised
        return json.dumps(cleaned, ensure_ascii=False, separators=(",", ":"))

    def _may_hold_secret(self, text: str) -> bool:
        # A loop over `in` beats one alternation: `re` tries every branch at most positions.
        for needle in self._needles:
            if needle in text:
                return True
        return may_hold_token(text) or self._encoded.may_be_in(text)

    def _without_secrets(self, text: str) -> str:
        cleaned = hide_tokens(self._without_values(text))
        return text if cleaned == text else self._without_values(cleaned)

    def _without_values(self, text: str) -> str:
        """Hide values, longest first, until none is left: a marker may complete another secret."""
        for _ in range(_PASSES):
            before = text
            for form, marker in self._forms:
                if form in text:
                    text = text.replace(form, marker)
            text = self._encoded.hide(text)
            if text == before:
                return text
        return _REDACTED_TEXT

    def _without_patterns(self, text: str) -> str:
        for pattern in self._patterns:
            if pattern.search(text) and not belongs_to_record(text):
                text = pattern.sub(lambda match: _PATTERN_MARKER if match[0] else "", text)
        return text

    def _walk(self, value: Json, hide: Hide) -> Json:
        if isinstance(value, str):
            return hide(value)
        if isinstance(value, dict):
            return self._walk_object(value, hide)
        if isinstance(value, list | tuple):
            return [self._walk(item, hide) for item in value]
        if self._numbers and isinstance(value, int | float) and not isinstance(value, bool):
            return self._numbers.get(json.dumps(value), value)
        return value

    def _walk_object(self, value: dict[str, Json], hide: Hide) -> dict[str, Json]:
        cleaned: dict[str, Json] = {}
        for key, item in value.items():
            name = _unused(hide(key), cleaned)
            cleaned[name] = self._walk(item, hide)
            if key in _HEADERS and isinstance(item, str):
                # The shape needs the header's name in front of the credential.
                line = hide_tokens(_HEADER_START + cleaned[name])
                cleaned[name] = line.removeprefix(_HEADER_START)
        return cleaned


def _unused(key: str, taken: Mapping[str, Json]) -> str:
    """The key, or with a number behind it: two secrets as keys must not swallow an entry."""
    name, count = key, 1
    while name in taken:
        count += 1
        name = f"{key}#{count}"
    return name


def _why_unusable(value: str, names: Mapping[str, str]) -> str:
    """The reason why hiding this value would destroy more than it protects, or nothing."""
    bare = value.strip()
    if len(bare) < SHORTEST_SECRET:
        return f"it is shorter than {SHORTEST_SECRET} characters"
    if any(bare in literal for literal in record_literals()):
        return "it is part of a word that Podium's own records use"
    if any(bare in marker for marker in _markers(names)):
        return "it is part of a name that is shown in place of secrets"
    return ""


def _markers(names: Mapping[str, str]) -> Iterator[str]:
    yield from (_PATTERN_MARKER, _REDACTED_TEXT)
    yield from (f"[redacted:{shape.name}]" for shape in TOKEN_SHAPES)
    yield from (f"[redacted:{name}]" for name in names)


def _forms_of(secrets: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Every way a secret may be written, with its marker, longest first."""
    markers = tuple(_markers(secrets))
    forms: dict[str, str] = {}
    for name, value in secrets.items():
        for part in _parts(value):
            for form in _spellings(part):
                if not any(form in marker for marker in markers):
                    forms.setdefault(form, f"[redacted:{name}]")
    return tuple(sorted(forms.items(), key=lambda item: -len(item[0])))


def _parts(value: str) -> Iterator[str]:
    bare = value.strip()
    yield bare
    lines = [line.strip() for line in bare.splitlines()]
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= SHORTEST_LINE)


def _parts_with_digits(value: str) -> Iterator[str]:
    """The value, and those of its lines that are no words, such as the first one of a key file."""
    whole, *lines = _parts(value)
    yield whole
    yield from (line for line in lines if any(one.isdigit() for one in line))


def _spellings(value: str) -> Iterator[str]:
    """The value as it is, and as JSON, Python, shells and URLs write it."""
    yield value
    yield from _json_spellings(value)
    yield repr(value)[1:-1]
    yield repr(value.encode(errors="replace"))[2:-1]
    yield value.replace("'", "'\\''")
    yield from _bash_spellings(value)
    yield re.sub(r'(["$`\\])', r"\\\1", value)
    encoded = value.encode(errors="replace")
    for quoted in (quote(encoded), quote(encoded, safe=""), quote_plus(encoded)):
        yield quoted
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), quoted)


def _json_spellings(value: str) -> Iterator[str]:
    """As encoders write it that escape slashes, or what means something in HTML, or in capitals."""
    for ascii_only in (False, True):
        plain = _json_escaped(value, ascii_only=ascii_only)
        for html in (plain, _escaped_for_html(plain, "<>&"), _escaped_for_html(plain, "<>&'+")):
            for text in (html, html.replace("/", "\\/")):
                yield text
                yield _UNICODE_ESCAPE.sub(lambda match: "\\u" + match[1].upper(), text)


def _escaped_for_html(text: str, characters: str) -> str:
    return "".join(f"\\u{ord(one):04x}" if one in characters else one for one in text)


def _bash_spellings(value: str) -> Iterator[str]:
    """As `printf %q` writes it: with backslashes, or between `$'` and `'`."""
    yield _BASH_SPECIAL.sub(r"\\\g<0>", value)
    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
    quoted = quoted.translate({ord(one): name for one, name in _BASH_NAMED.items()})
    yield quoted
    yield "".join(
        one if one.isascii() else "".join(f"\\{byte:03o}" for byte in one.encode(errors="replace"))
        for one in quoted
    )


def _json_escaped(text: str, *, ascii_only: bool) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?[0-9]+(?:\.[0-9]+)?", text) is not None


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise BadInput(
            f"the redaction pattern {pattern!r} is not a regular expression: {error}"
        ) from error
    if compiled.match(""):
        raise BadInput(
            f"the redaction pattern {pattern!r} matches empty text; make it match at least one character"
        )
    return compiled
