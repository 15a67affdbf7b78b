"""Messages: the block that a prompt requests, parsed as a model would, and the blocks that fake TUIs write.

The only file here that knows the flow's texts.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

TAG = "POLI:MSG"


class ScreenBlock(NamedTuple):
    """One message, whole."""

    to: str
    type: str
    id: str
    body: str

    def lines(self) -> list[str]:
        section = self.type.upper()
        return [
            self.header(),
            f"<{section}>",
            *self.body.split("\n"),
            f"</{section}>",
            f"[[/{TAG}]]",
        ]

    def header(self) -> str:
        meta = {"to": self.to, "type": self.type, "id": self.id}
        return f"[[{TAG} {json.dumps(meta, separators=(',', ':'))}]]"


def fenced(lines: list[str]) -> list[str]:
    return ["```text", *lines, "```"]


_ID = re.compile(r'\bID = ((?:"[^"\n]*"(?: \+ )?)+)')
_PIECE = re.compile(r'"([^"\n]*)"')
_FORM = re.compile(r'"to":"([A-Z]+)","type":"([a-z]+)"')
_FILE = re.compile(r"Your message is in the file (\S+) - read all of it")
_FENCE = "```text"
_NUDGE = "emit the tagged block"
_TEXT_ALLOWED = "without any POLI block"
_PRIMER = "answer with the word READY"


class RequestedBlock(NamedTuple):
    """Block that a prompt requests."""

    id: str
    forms: tuple[tuple[str, str], ...]
    """Address and type of each block that would do."""
    fenced: bool
    allows_text: bool

    @property
    def task(self) -> str:
        return self.id.rpartition("-")[0]


def whole_prompt(text: str) -> str:
    """Return the full prompt: the file that a line names, or the text itself."""
    named = _FILE.search(text)
    if named is None:
        return text
    with open(named[1]) as file:  # noqa: PTH123 — pathlib loads slowly
        return file.read()


def requested_block(prompt: str) -> RequestedBlock | None:
    """Parse the requested block. None: the prompt has no id, so none is requested."""
    ids = list(_ID.finditer(prompt))
    if not ids:
        return None
    rest = prompt[ids[-1].end() :]
    forms = tuple((form[1], form[2]) for form in _FORM.finditer(rest))
    return RequestedBlock(
        id="".join(_PIECE.findall(ids[-1][1])),
        forms=forms,
        fenced=_FENCE in rest,
        allows_text=_TEXT_ALLOWED in prompt,
    )


def is_nudge(prompt: str) -> bool:
    return _NUDGE in prompt


def plain_reply(prompt: str) -> str:
    return "READY" if _PRIMER in prompt else "Understood."
