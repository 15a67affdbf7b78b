"""The cases, read from their files."""

from __future__ import annotations

import codecs
from importlib.resources import files
from typing import Literal

from pydantic import model_validator

from podium.core.model import FrozenModel, NonEmpty

Encoding = Literal["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1"]

_MARKS = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


class WantedEdit(FrozenModel):
    """One edit as it was sent."""

    find: str
    replace: str
    at_line: int | None = None


class EditCase(FrozenModel):
    """A file, the edits that were asked for, and the text that must come out, or none."""

    shape: NonEmpty
    """What is wrong, or special, with it."""
    name: NonEmpty
    text: str
    edits: tuple[WantedEdit, ...]
    expect: str | None = None
    """None: it must be refused, and the file stays as it is."""
    encoding: Encoding = "utf-8"
    padding_lines: int = 0
    """So many lines stand before and behind the text, of the file and of what must come out."""

    @model_validator(mode="after")
    def _changes_something(self) -> EditCase:
        if self.expect == self.text:
            raise ValueError("what must come out differs from the text, or nothing must")
        return self

    @property
    def before(self) -> bytes:
        """The file."""
        return self._bytes(self.text)

    @property
    def after(self) -> bytes | None:
        """The file as it must be afterwards; None when the edits must be refused."""
        return None if self.expect is None else self._bytes(self.expect)

    def _bytes(self, text: str) -> bytes:
        lines = [f"filler line {number} of many\n" for number in range(self.padding_lines)]
        tail = "".join(lines).replace("filler", "trailer")
        padded = f"{''.join(lines)}{text}{tail}"
        return _MARKS.get(self.encoding, b"") + padded.encode(self.encoding)


def edit_cases(shape: str | None = None) -> list[EditCase]:
    """All cases, or those of one shape, in the order of their files."""
    folder = files(__package__)
    sources = sorted(
        (path for path in folder.iterdir() if path.name.endswith(".jsonl")),
        key=lambda one: one.name,
    )
    cases = [
        EditCase.model_validate_json(line)
        for source in sources
        for line in source.read_text(encoding="utf-8").split("\n")
        if line
    ]
    return [case for case in cases if shape is None or case.shape == shape]
