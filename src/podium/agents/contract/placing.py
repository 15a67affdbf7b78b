"""Whether an object stands where an answer stands, or is only mentioned, quoted or part of more."""

from __future__ import annotations

import re
from typing import NamedTuple

from podium.agents.contract.objects import Span

MOST_LEAD = 200
"""Characters of a line before the object that are looked at."""

# A list's dash or number, or symbols beyond ASCII: ticks, arrows, what terminals put before a line.
# ASCII has too many that begin comments, diffs and table cells.
_BULLET = r"(?:[-*][ \t]+|\d{1,2}[.)][ \t]+|[^\x00-\x7f\w\s“”„‘’«»‹›「」]{1,3}[ \t]*)"
_FENCE = r"(?:`{1,8}|~~~)[ \t]*\w{0,12}"
_TAG = r"(?:<[A-Za-z][\w:.-]{0,40}>|<\|\w{1,40}\|>\w{0,20})"
_LABEL = (
    r"[#*_ \t]{0,8}(?:here(?:'s|’s| is) )?(?:(?:the|my|your) )?(?:(?:final|corrected|structured) )?"
    r"(?:json|answer|result|output|payload|response|reply|verdict|decision|data)"
    r"(?: (?:json|payload|object))?[*_]{0,3}(?::|[ \t]*[-–—])?[*_]{0,3}"
)
_BEGINS = re.compile(
    rf"(?:\ufeff|ï»¿)?[ \t]*{_BULLET}{{0,4}}(?:(?:{_FENCE}|{_TAG}|{_LABEL})[ \t]*){{0,3}}",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[ \t`*_.;)}]*(?:</[A-Za-z][\w:.-]{0,40}>)?[ \t`\r]*")
_SENTENCE_ENDS = ".!?:—–>*→⇒➜：。！？"
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
    earliest = max(0, span.start - MOST_LEAD - 1)
    begin = max(earliest, text.rfind("\n", earliest, span.start) + 1)
    end = text.find("\n", span.end, span.end + MOST_LEAD)
    return Surroundings(
        lead=text[begin : span.start],
        rest=text[span.end : end if end >= 0 else span.end + MOST_LEAD],
    )


def is_part_of_more(before: str) -> bool:
    """Whether what comes before an object shows it to be inside a list, an object, a string or code."""
    lead = before.rstrip()
    last = lead[-1:]
    if last in ("[", "{") or (last in ('"', "\\") and "\n" not in before[len(lead) :]):
        return True
    if last == "=":
        return not lead.endswith("==")  # an assignment; several are a line drawn under a heading
    if last == ",":
        return _LITERAL_ENDS.search(lead[:-1].rstrip()[-8:]) is not None
    return last == ":" and lead[:-1].rstrip().endswith(('"', "'"))
