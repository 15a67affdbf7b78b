"""Whether an object stands where an answer stands, or is only mentioned, quoted or part of more."""

from __future__ import annotations

import re
from typing import NamedTuple

from podium.agents.contract.objects import Span

MOST_LEAD = 200
"""Characters of a line before the object that are looked at."""

_BULLET = r"(?:[-*•●⏺✦◆│┃|][ \t]+|\d{1,2}[.)][ \t]+)"
_FENCE = r"(?:`{1,8}|~~~)[ \t]*\w{0,12}"
_TAG = r"<[A-Za-z][\w:.-]{0,40}>"
_LABEL = (
    r"[#*_ \t]{0,8}(?:here(?:'s|’s| is) )?(?:(?:the|my|your) )?(?:(?:final|corrected|structured) )?"
    r"(?:json|answer|result|output|payload|response|reply|verdict|decision|data)"
    r"(?: (?:json|payload|object))?[*_]{0,3}:?[*_]{0,3}"
)
_BEGINS = re.compile(rf"\ufeff?[ \t]*{_BULLET}*(?:(?:{_FENCE}|{_TAG}|{_LABEL})[ \t]*){{0,3}}", re.IGNORECASE)
_ENDS = re.compile(r"[ \t`*_.;)}]*(?:</[A-Za-z][\w:.-]{0,40}>)?[ \t`\r]*")
_SENTENCE_ENDS = ".!?:—–>*"
_LITERAL_ENDS = re.compile(r"""(?:[}\]"'\d]|\b(?:true|false|null|True|False|None))$""")


class Surroundings(NamedTuple):
    """The line an object begins on, up to it, and the line it ends on, after it."""

    lead: str
    rest: str

    @property
    def is_quoted(self) -> bool:
        """As mail and markdown quote others: with `>` before it."""
        return self.lead.lstrip().startswith(">")

    @property
    def begins_its_line(self) -> bool:
        return len(self.lead) <= MOST_LEAD and _BEGINS.fullmatch(self.lead) is not None

    @property
    def closes_its_line(self) -> bool:
        """Whether it comes after a sentence or a label, and nothing comes after it."""
        last = self.lead.rstrip(" \t`")[-1:]
        return bool(last) and last in _SENTENCE_ENDS and _ENDS.fullmatch(self.rest) is not None


def surroundings(text: str, span: Span) -> Surroundings:
    begin = max(text.rfind("\n", 0, span.start) + 1, span.start - MOST_LEAD - 1)
    end = text.find("\n", span.end, span.end + MOST_LEAD)
    return Surroundings(
        lead=text[begin : span.start],
        rest=text[span.end : end if end >= 0 else span.end + MOST_LEAD],
    )


def is_part_of_more(before: str) -> bool:
    """Whether what comes before an object shows it to be inside a list, object, string or program."""
    lead = before.rstrip()
    last = lead[-1:]
    if last in ("[", "{", '"', "\\", "="):
        return True
    if last == ",":
        return _LITERAL_ENDS.search(lead[:-1].rstrip()[-8:]) is not None
    if last == ":":
        return lead[:-1].rstrip().endswith(('"', "'"))
    # A call, such as print({…}), or a shell's quote around it.
    return before.endswith("'") or re.search(r"\w\($", before[-40:]) is not None
