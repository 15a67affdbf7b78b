"""What a project has that the fields of a start form can be filled with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from weakref import WeakKeyDictionary

from podium.domain.errors import PodiumError
from podium.tools.packs import known_packs, shipped_packs
from podium.wiring.duet_tasks import pairs_in_use
from podium.wiring.pipeline_spec import pipeline_spec
from podium.wiring.podium import Podium

Choices = Mapping[tuple[str, str], tuple[str, ...]]
"""Flow and option → the values there are. What is missing here is free text."""

_FIXED: WeakKeyDictionary[Podium, Choices] = WeakKeyDictionary()
"""What podium.yaml says: a console reads it once."""


def choices_of(podium: Podium) -> Choices:
    """Modes, agents, packs and pairs of this project."""
    fixed = _FIXED.get(podium)
    if fixed is None:
        fixed = _FIXED[podium] = _of_configuration(podium)
    packs = known_packs(project=podium.folders.project, shipped=shipped_packs())
    return {**fixed, ("operator", "pack"): tuple(sorted(pack.name for pack in packs))}


def _of_configuration(podium: Podium) -> Choices:
    agents = tuple(podium.settings.agents)
    found = {
        ("pipeline", "mode"): _readable(lambda: pipeline_spec(podium.configuration).modes),
        ("pipeline", "agent"): agents,
        ("playbook", "agent"): agents,
        ("duet", "pairs"): _readable(
            lambda: [pair.name for pair in pairs_in_use(podium, podium.environ)]
        ),
    }
    return {option: values for option, values in found.items() if values}


def _readable(values: Callable[[], Iterable[str]]) -> tuple[str, ...]:
    """None of a flow whose part of podium.yaml is at fault: that is told when a run of it is started."""
    try:
        return tuple(values())
    except PodiumError:
        return ()
