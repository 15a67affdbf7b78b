"""What a prompt asks for, found as a model would find it: the one place of the zoo that knows the flow's words."""

from __future__ import annotations

import re
from typing import NamedTuple

_ID = re.compile(r'\bID = ((?:"[^"\n]*"(?: \+ )?)+)')
_PIECE = re.compile(r'"([^"\n]*)"')
_FORM = re.compile(r'"to":"([A-Z]+)","type":"([a-z]+)"')
_FILE = re.compile(r"Your message is in the file (\S+) - read all of it")
_FENCE = "```text"
_NUDGE = "emit the tagged block"
_WORDS = "without any POLI block"
_PRIMER = "answer with the word READY"


class Wanted(NamedTuple):
    """What a prompt wants to have."""

    id: str
    forms: tuple[tuple[str, str], ...]
    """Address and type of each block that would do."""
    fenced: bool
    words_will_do: bool

    @property
    def task(self) -> str:
        return self.id.rpartition("-")[0]


def whole_prompt(text: str) -> str:
    """What was meant: the file that a line names, or the text itself."""
    named = _FILE.search(text)
    if named is None:
        return text
    with open(named[1]) as file:  # noqa: PTH123 — pathlib loads slowly
        return file.read()


def wanted_by(prompt: str) -> Wanted | None:
    """None: it names no id, so there is nothing to answer with a block."""
    found = list(_ID.finditer(prompt))
    if not found:
        return None
    rest = prompt[found[-1].end() :]
    forms = tuple((form[1], form[2]) for form in _FORM.finditer(rest))
    return Wanted(
        id="".join(_PIECE.findall(found[-1][1])),
        forms=forms,
        fenced=_FENCE in rest,
        words_will_do=_WORDS in prompt,
    )


def is_nudge(prompt: str) -> bool:
    return _NUDGE in prompt


def plain_reply(prompt: str) -> str:
    return "READY" if _PRIMER in prompt else "Understood."
