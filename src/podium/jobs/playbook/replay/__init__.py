"""Replay: a recorded run of a playbook happens again, without its model and without its effects."""

from podium.jobs.playbook.replay.recording import (
    EventDifference,
    FieldDifference,
    Recording,
    read_recording,
)
from podium.jobs.playbook.replay.replay import (
    NEUTRAL_ROOT,
    ReplaySource,
    ReplayVerdict,
    exported,
    journal_difference,
    replay,
    source_of_file,
    source_of_run,
)

__all__ = [
    "NEUTRAL_ROOT",
    "EventDifference",
    "FieldDifference",
    "Recording",
    "ReplaySource",
    "ReplayVerdict",
    "exported",
    "journal_difference",
    "read_recording",
    "replay",
    "source_of_file",
    "source_of_run",
]
