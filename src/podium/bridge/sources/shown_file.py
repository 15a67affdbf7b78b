"""One text file as it stands, for somebody who is to say how it should change."""

from __future__ import annotations

from collections.abc import Callable

from podium.bridge.sources.finding import find, read_whole
from podium.bridge.sources.kit import NotSensed, SourceKit
from podium.bridge.sources.understanding import text_of
from podium.domain.model import whole_text
from podium.domain.sensing import Sensed

FILES = "files"


def shown_file(kit: SourceKit, place: str, may_see: Callable[[str], bool]) -> Sensed:
    """Its text without secrets, or why it is not shown. `may_see` is asked of its real path, from the root on."""
    found = find(kit.root, place, kit.is_own)
    shown = kit.redact(whole_text(place))
    try:
        if found.fault:
            raise found.fault
        if not may_see(found.real):
            raise NotSensed("unreadable", "it lies where nobody may look")
        text = text_of(read_whole(kit.root, found, kit.file_bytes))
    except NotSensed as fault:
        return Sensed(source=FILES, place=shown, condition=fault.condition, why=fault.why)
    return Sensed(source=FILES, place=shown, content=kit.redact(whole_text(text)))
