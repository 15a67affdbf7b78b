"""The duet: two agents hand messages to each other until a person's task is done."""

from podium.flows.duet.kit import Chair, DuetKit, Stage
from podium.flows.duet.options import DuetOptions, PairOptions
from podium.flows.duet.prompting import primer
from podium.flows.duet.story import play_duet

__all__ = ["Chair", "DuetKit", "DuetOptions", "PairOptions", "Stage", "play_duet", "primer"]
