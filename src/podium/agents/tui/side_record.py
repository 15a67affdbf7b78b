"""What must be known of a side's program by whichever Podium comes next."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from podium.agents.private_files import write_private
from podium.domain.model import Noun, json_of


class SideRecord(Noun):
    """One program's lives and conversation."""

    kind: str
    session: str = ""
    """Its conversation. Empty: it has not begun, or cannot be gone on with."""
    lives: int = 0
    """How often the program was started."""
    server: tuple[int, int] | None = None
    """The life of the server that it was started in last."""
    primed: bool = False
    """This conversation has been told its part."""


@dataclass(frozen=True)
class SideBook:
    """Keeps the record in a file."""

    file: Path
    kind: str

    def read(self) -> SideRecord:
        """A record that is damaged, or of another kind of program, counts for nothing."""
        new = SideRecord(kind=self.kind)
        try:
            known = SideRecord.model_validate_json(self.file.read_bytes())
        except (OSError, ValidationError):
            return new
        return known if known.kind == new.kind else new

    def keep(self, record: SideRecord) -> None:
        """On return it survives a crash."""
        write_private(self.file, json_of(record).encode())
