"""What may be said before or after any command."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Options:
    """The global options of one invocation."""

    json: bool = False
    debug: bool = field(default_factory=lambda: os.environ.get("PODIUM_DEBUG", "") not in ("", "0"))
    project: Path | None = None
    mode: str = ""
    """How far things may go, where a command lets a person say so. Empty: as configured."""
    labels: tuple[str, ...] = ()
    """What a worker offers to queues."""
    ending_words: str = ""
    """What to tell them at once, before the work is put down."""
    parting_words: str = ""
    """What to tell a person who interrupts: where the work stands and how it goes on."""
