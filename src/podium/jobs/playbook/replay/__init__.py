"""Replay: a recorded run of a playbook happens again, without its model and without its effects."""

from podium.jobs.playbook.replay.recording import (
    Difference,
    FieldDifference,
    Recording,
    read_recording,
)
from podium.jobs.playbook.replay.source import Found, found_file, found_run, journal_difference
from podium.jobs.playbook.replay.verdict import NEUTRAL_ROOT, Replayed, exported, replay

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
