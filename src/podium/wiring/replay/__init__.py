"""Replay: a recorded run of a playbook happens again, without its model and without its effects."""

from podium.wiring.replay.comparing import Difference, FieldDifference
from podium.wiring.replay.exporting import exported
from podium.wiring.replay.finding import Found, found_file, found_run, journal_difference
from podium.wiring.replay.reading import Recording, read_recording
from podium.wiring.replay.replaying import NEUTRAL_ROOT, Replayed, replay

__all__ = [
    "NEUTRAL_ROOT",
    "Difference",
    "FieldDifference",
    "Found",
    "Recording",
    "Replayed",
    "exported",
    "found_file",
    "found_run",
    "journal_difference",
    "read_recording",
    "replay",
]
