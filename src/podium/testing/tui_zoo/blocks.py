"""Message blocks as fake TUIs write them."""

from __future__ import annotations

import json
from typing import NamedTuple

TAG = "POLI:MSG"


class Block(NamedTuple):
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
