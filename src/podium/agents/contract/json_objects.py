"""JSON of a text: read exactly as the standard has it, and its objects, each an answer, a quotation or part of the thinking.

Read backwards from a closing brace, JSON has no ambiguity: a quote that no backslash escapes ends a
string, the one before it on the same line begins it, since strings hold no line breaks. So each
closing brace has at most one partner, prose with odd quotes spoils one line at most, and the cost
is that of looking at each brace, quote and line break once.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from podium.core.model import Json

MAX_LISTED = 5
MAX_EXPLAINED = 1000
"""With more things wrong than this they are only counted: each costs memory to be told."""


def misfit(error: ValidationError) -> str:
    count = error.error_count()
    if count > MAX_EXPLAINED:
        return f"The last JSON object does not fit the schema: it has {count} errors"
    issues = error.errors(include_url=False, include_context=False)
    listed = "; ".join(
        f"{_path(issue['loc'])}: {issue['msg'][:300]}{_was(issue['input'], issue['type'])}"
        for issue in issues[:MAX_LISTED]
    )
    more = f"; and {count - MAX_LISTED} more" if count > MAX_LISTED else ""
    return f"The last JSON object does not fit the schema: {listed}{more}"


def quoted(value: object, most: int = 80) -> str:
    """As JSON on one line, cut short."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= most else text[:most] + "…"


def _was(value: object, kind: str) -> str:
    return "" if kind == "missing" else f" (was {quoted(value)})"


def _path(location: tuple[int | str, ...]) -> str:
    return "$" + "".join(map(_step, location[:20]))


def _step(part: int | str) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if part.isidentifier() and len(part) <= 80 else f"[{quoted(part)}]"


MAX_DEPTH = 100

_TOO_DEEP = f"it is nested deeper than {MAX_DEPTH} levels"
_SUSPECT = re.compile("\\\\u(?:[dD][89a-fA-F]|0000)|[\ud800-\udfff]")
_DAMAGED = re.compile("[\x00\ud800-\udfff]")


def load_object(source: str, *, raw_breaks: bool = False) -> dict[str, Json]:
    """The object this text is. Raises `ValueError` that says what is wrong with it.

    `raw_breaks` lets line breaks and other control characters stand unescaped in strings.
    """
    try:
        value = (_LENIENT if raw_breaks else _DECODER).decode(source)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    return _object(value, source)


def leading_object(source: str) -> tuple[dict[str, Json], int]:
    """The object that this text begins with, raw breaks in its strings allowed, and where it ends.

    Raises `ValueError` as `load_object` does.
    """
    try:
        value, end = _LENIENT.raw_decode(source)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    return _object(value, source[:end]), end


def _object(value: Json, source: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    check_value(value, look_at_strings=_SUSPECT.search(source) is not None)
    return value


def check_value(value: Json, *, look_at_strings: bool = True) -> None:
    """Raise `ValueError` for what no file, database or prompt could keep as it is."""
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Json] = []
        for item in level:
            if isinstance(item, dict):
                inner += item.keys() if look_at_strings else ()
                inner += item.values()
            elif isinstance(item, list):
                inner += item
            elif look_at_strings and isinstance(item, str) and _DAMAGED.search(item):
                raise ValueError("a string contains a NUL or half of a surrogate pair")
        if not inner:
            return
        level = inner
    raise ValueError(_TOO_DEEP)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {quoted(twice)} occurs twice")
    return unique


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:40]} is too large")
    return number


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _decoder(*, strict: bool) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_without_duplicates,
        parse_float=_finite,
        parse_constant=_no_constant,
        strict=strict,
    )


_DECODER = _decoder(strict=True)
_LENIENT = _decoder(strict=False)


# A run of backslashes is taken whole, so that a million of them are looked at once.
_TOKENS = re.compile(r'\\++"?|["{}\n]')
_OPEN, _CLOSE, _QUOTE, _LINE = b'{}"\n'


class ObjectSpan(NamedTuple):
    """A piece of a text: `text[start:end]`."""

    start: int
    end: int


class Objects(NamedTuple):
    """The outermost pairs of braces and the braces without a partner, each list last first."""

    spans: list[ObjectSpan]
    opened: list[int]
    closed: list[int]


def find_objects(text: str) -> Objects:
    """Every outermost `{…}` of the text, JSON or not."""
    positions, kinds = _tokens(text)
    spans: list[ObjectSpan] = []
    opened: list[int] = []
    closing: list[int] = []
    at = len(kinds) - 1
    while at >= 0:
        kind = kinds[at]
        if kind == _CLOSE:
            closing.append(positions[at])
        elif kind == _OPEN and closing:
            _keep_outermost(spans, ObjectSpan(positions[at], closing.pop() + 1))
        elif kind == _OPEN:
            opened.append(positions[at])
        elif kind == _QUOTE and closing:
            at = _string_start(kinds, at)
        at -= 1
    return Objects(spans, opened, closing)


def _tokens(text: str) -> tuple[array[int], bytearray]:
    positions, kinds = array("I"), bytearray()
    for match in _TOKENS.finditer(text):
        token = match[0]
        if token[0] == "\\" and (token[-1] != '"' or len(token) % 2 == 0):
            continue  # no quote, or an escaped one
        positions.append(match.end() - 1)
        kinds.append(ord(token[-1]))
    return positions, kinds


def _string_start(kinds: bytearray, end: int) -> int:
    """The quote that begins the string which ends here; without one on the line, it is a stray."""
    at = end - 1
    while at >= 0 and kinds[at] not in (_QUOTE, _LINE):
        at -= 1
    return at if at >= 0 and kinds[at] == _QUOTE else end


def _keep_outermost(spans: list[ObjectSpan], span: ObjectSpan) -> None:
    while spans and spans[-1].end <= span.end:
        spans.pop()
    spans.append(span)


MAX_LEAD = 200
"""Characters of a line before the object that are looked at."""

# A list's dash or number, or symbols beyond ASCII: ticks, arrows, what terminals put before a line.
# ASCII has too many that begin comments, diffs and table cells.
_BULLET = r"(?:[-*][ \t]+|\d{1,2}[.)][ \t]+|[^\x00-\x7f\w\s“”„‘’«»‹›「」]{1,3}[ \t]*)"
_CODE_BLOCK = r"(?:`{1,8}|~~~)[ \t]*\w{0,12}"
# Other tags hold examples, quotations, and what tools said.
_TAG = (
    r"(?:<(?:(?:final|json|structured|my)[_-])?(?:answer|final|output|result|json|response|reply|payload|verdict|decision|pre|code)"
    r"(?:[ \t][^<>\n]{0,80})?>|<\|\w{1,40}\|>\w{0,20})"
)
_LABEL = (
    r"[#*_ \t]{0,8}(?:here(?:'s|’s| is) )?(?:(?:the|my|your) )?(?:(?:final|corrected|structured) )?"
    r"(?:json|answer|result|output|payload|response|reply|verdict|decision|data)"
    r"(?: (?:json|payload|object))?[*_]{0,3}(?::|[ \t]*[-–—])?[*_]{0,3}"
)
_BEGINS = re.compile(
    rf"(?:\ufeff|ï»¿)?[^\S\n]*{_BULLET}{{0,4}}(?:(?:{_CODE_BLOCK}|{_TAG}|{_LABEL})[ \t]*){{0,3}}",
    re.IGNORECASE,
)
_ENDS = re.compile(
    r"[ \t`*_.;)}]*+(?:(?:</?[A-Za-z][\w:.-]{0,40}>|<\|\w{1,40}\|>|【[^】\n]{0,40}】)[ \t`*_.;)}]*+){0,4}[\s\u200b\ufeff]*+"
)
_QUOTED = re.compile(rf"[^\S\n]*(?:{_BULLET}){{0,4}}>")
_SENTENCE_ENDS = ".!?:—–*→⇒➜：。！？"
_ANSWER_TAG = re.compile(rf"{_TAG}$", re.IGNORECASE)
# Code, a log, another speaker: whatever comes after these on a line is not the agent's answer.
_OTHERS_LINE = re.compile(
    r"//|/\*|<!--|=>|\b(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR)\b|\d\d:\d\d:\d\d"
    r"|^\W*(?i:human|user|system|tool|stdout|stderr)\b[^:\n]{0,40}:"
)
_OTHERS_LINE_BEFORE = re.compile(r"\s*(?:>|\$ )")
_HEADER_BEFORE = re.compile(r"^(?:HTTP/\d|Content-[A-Z])[^\n]*\s*\Z", re.MULTILINE)
_LITERAL_ENDS = re.compile(r"""(?:[}\]"'\d]|\b(?:true|false|null|True|False|None))$""")
_TAG_BEFORE = re.compile(r"<(?P<name>[A-Za-z][\w:.-]{0,40})(?:[ \t][^<>\n]{0,80})?>$")
_OTHER_LANGUAGES = re.compile(
    r"[`~]*+[ \t]*(?:diff|patch|ya?ml|toml|console|shell\w*|bash|sh|http|log)\b", re.IGNORECASE
)


class Surroundings(NamedTuple):
    """The line an object begins on, up to it, and the line it ends on, after it."""

    lead: str
    rest: str
    before: str
    """Some of what comes before those."""

    @property
    def is_an_answers(self) -> bool:
        """True if it stands as an answer does: at the beginning of a line, or at its end after a sentence."""
        led_to = self.is_led_to and self.ends_its_line
        return not self.is_quoted and (self.begins_its_line or led_to)

    @property
    def is_quoted(self) -> bool:
        """As mail and markdown quote others, with `>` before it; as a terminal shows what a command said."""
        line_before = self.before.removesuffix("\n").rpartition("\n")[2]
        return (
            _QUOTED.match(self.lead) is not None
            or _OTHERS_LINE_BEFORE.match(line_before) is not None
            or _HEADER_BEFORE.search(self.before) is not None
        )

    @property
    def begins_its_line(self) -> bool:
        return len(self.lead) <= MAX_LEAD and _BEGINS.fullmatch(self.lead) is not None

    @property
    def is_led_to(self) -> bool:
        """True if it comes after a sentence or a label."""
        lead = self.lead.rstrip(" \t`")
        if _OTHERS_LINE.search(lead):
            return False
        return bool(lead) and (lead[-1] in _SENTENCE_ENDS or _ANSWER_TAG.search(lead) is not None)

    @property
    def ends_its_line(self) -> bool:
        return _ENDS.fullmatch(self.rest) is not None

    @property
    def is_followed_by_a_sentence(self) -> bool:
        """True if a whole sentence follows it on its line that is not about the object itself."""
        rest = self.rest.strip(" \t\r.;")
        return rest[:1].isupper() and self.rest.rstrip()[-1:] in (".", "!", "?")


def surroundings(text: str, span: ObjectSpan) -> Surroundings:
    earliest = max(0, span.start - MAX_LEAD - 1)
    # A carriage return alone is how a terminal writes a line anew.
    begin = max(
        earliest, *(text.rfind(line_break, earliest, span.start) + 1 for line_break in "\n\r")
    )
    end = text.find("\n", span.end, span.end + MAX_LEAD)
    return Surroundings(
        lead=text[begin : span.start],
        rest=text[span.end : end if end >= 0 else span.end + MAX_LEAD],
        before=text[max(0, begin - MAX_LEAD) : begin],
    )


def is_part_of_more(before: str, after: str) -> bool:
    """Return whether the text around an object shows it to be inside a list, an object, a string, code, another's tag."""
    lead = before.rstrip()
    last = lead[-1:]
    if last in ("[", "{", "(", "\\") or (last == '"' and "\n" not in before[len(lead) :]):
        return True
    if lead.endswith("/*") or before.rfind("<!--") > before.rfind("-->"):
        return True
    if _OTHER_LANGUAGES.match(before[max(before.rfind("```"), before.rfind("~~~")) :][:40]):
        return True
    if last == "=":
        # An assignment or a comparison; several at both ends are a line drawn across.
        return not (lead.endswith("==") and lead.rpartition("\n")[2].startswith("=="))
    if last == ",":
        return _LITERAL_ENDS.search(lead[:-1].rstrip()[-8:]) is not None
    if last == ">":
        return _is_in_anothers_tag(lead[-200:], after)
    return last == ":" and lead[:-1].rstrip().endswith(('"', "'"))


def _is_in_anothers_tag(lead: str, after: str) -> bool:
    match = _TAG_BEFORE.search(lead)
    if match is None or _ANSWER_TAG.search(match[0]):
        return False
    return after[:2000].lstrip().startswith(f"</{match['name']}")


_NAMES = (
    "think",
    "thinking",
    "thought",
    "thoughts",
    "reasoning",
    "scratchpad",
    "draft",
    "analysis",
)
_NAME = rf"(?:\w{{1,20}}:)?(?:{'|'.join(_NAMES)})"
_THINKING_TAGS = re.compile(
    rf"(?P<begins><{_NAME}(?:\s[^<>]{{0,80}})?>|\[think\]|◁think▷|<\|(?:start_thinking|begin_of_thought)\|>"
    r"|<\|channel\|>(?:analysis|commentary)\b)"
    rf"|</{_NAME}\s{{0,8}}>|\[/think\]|◁/think▷|<\|(?:end_thinking|end_of_thought)\|>|<\|channel\|>final\b",
    re.IGNORECASE,
)
# As they are really written, for texts too long to be searched for every spelling.
_WRITTEN = ("<think>", "<thinking>", "<reasoning>", "<seed:think>", "[THINK]", "◁think▷")


def thoughts(text: str, objects: Sequence[ObjectSpan] = (), earlier: str = "") -> Thoughts:
    """The thoughts of a text. A mark inside an object, or in backticks, is text about marks.

    `earlier` is what came before the text, in which a thought may have begun.
    """
    spans: list[ObjectSpan] = []
    begun = 0 if _is_open_after(earlier) else None
    for match in _thinking_tags(text, objects):
        if match["begins"]:
            begun = match.start() if begun is None else begun
        elif begun is None:
            spans = [
                ObjectSpan(0, match.end())
            ]  # it began before the reply did, as some templates have it
        else:
            spans.append(ObjectSpan(begun, match.end()))
            begun = None
    if begun is not None:
        spans.append(ObjectSpan(begun, len(text) + 1))
    return Thoughts(spans)


class Thoughts:
    """Disjoint pieces of a text, in order."""

    def __init__(self, spans: list[ObjectSpan]) -> None:
        self._spans = spans
        self._starts = [span.start for span in spans]

    def hold(self, position: int) -> bool:
        at = bisect_right(self._starts, position) - 1
        return at >= 0 and position < self._spans[at].end


def _thinking_tags(text: str, objects: Sequence[ObjectSpan]) -> Iterator[re.Match[str]]:
    within = Thoughts(sorted(objects))
    for match in _THINKING_TAGS.finditer(text):
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        in_backticks = "`" in (before, after)
        if not in_backticks and not within.hold(match.start()):
            yield match


def _is_open_after(text: str) -> bool:
    begins = max((text.rfind(tag) for tag in _WRITTEN), default=-1)
    return begins >= 0 and begins > max(text.rfind(f"{tag[0]}/{tag[1:]}") for tag in _WRITTEN)
