"""Options and mode in force, merged from all layers of settings; keys that guard only tighten."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from podium.config.configuration import Configuration
from podium.config.flow_options import flow_options
from podium.config.layers import Layer
from podium.core.work import MODES, Mode, QueueSpec
from podium.jobs.sense.idle_tick import MODE_VARIABLE
from podium.jobs.sense.models import lower_mode
from podium.jobs.sense.options import SenseOptions

SENSE = "sense"
"""The flow of a tick that plans, the role of its calls, and the queue of its candidates."""
ORDERS = "orders"
"""The queue of claimed orders."""


def options_in_force(configuration: Configuration) -> SenseOptions:
    """The options of the strongest file, within what the user's file allows.

    Until a person trusts it, a project's file also stays within the zones that come with Podium. Raises
    `ConfigInvalid` at the place of a fault.
    """
    options = SenseOptions.model_validate(flow_options(configuration, SENSE))
    owners = [layer for layer in configuration.layers if SENSE in layer.settings.flows]
    if not owners or owners[-1].name != "project":
        return options
    for other in owners[:-1]:
        options = _within(options, _options_of(other), _keys_of(other))
    if not configuration.project_is_trusted():
        options = _within(options, SenseOptions(), {"safe_zones", "forbidden_zones"})
    return options


def sense_mode(
    configuration: Configuration, environ: Mapping[str, str], *, unsaid: Mode = "sensing"
) -> Mode:
    """Return the mode in force: the one given by --mode, else the strictest that is configured; lowered by the environment.

    Where nobody configured anything it only watches, or what `unsaid` says.
    """
    settings, origin = configuration.settings, configuration.origin_of("mode")
    if origin == "--mode":
        return lower_mode(settings.mode, environ.get(MODE_VARIABLE, "").strip())
    modes = [
        mode
        for layer in configuration.layers
        if SENSE in layer.settings.flows and (mode := _options_of(layer).mode) is not None
    ]
    if origin != "default":
        modes.append(settings.mode)
    configured = min(modes, key=MODES.index, default=unsaid)
    return lower_mode(configured, environ.get(MODE_VARIABLE, "").strip())


def order_queues(configuration: Configuration) -> tuple[QueueSpec, ...]:
    """Queues of the loop, which no podium.yaml needs to name. None without an inbox or options of the loop."""
    has_options = any(SENSE in layer.settings.flows for layer in configuration.layers)
    project = configuration.folders.project
    if not has_options and not (project / options_in_force(configuration).layout.inbox).is_dir():
        return ()
    named = {spec.name for spec in configuration.settings.queue_specs()}
    own = (QueueSpec(name=SENSE), QueueSpec(name=ORDERS))
    return tuple(spec for spec in own if spec.name not in named)


def _options_of(layer: Layer) -> SenseOptions:
    return SenseOptions.model_validate(layer.settings.flows[SENSE])


def _keys_of(layer: Layer) -> set[str]:
    return set(layer.settings.flows[SENSE])


def _within(options: SenseOptions, other: SenseOptions, keys: set[str]) -> SenseOptions:
    """The options, as far as another file's word about the same keys lets them go."""
    changed: dict[str, object] = {}
    if "safe_zones" in keys:
        changed["safe_zones"] = _common(options.safe_zones, other.safe_zones)
    if "forbidden_zones" in keys:
        both = (*options.forbidden_zones, *other.forbidden_zones)
        changed["forbidden_zones"] = tuple(dict.fromkeys(both))
    for key in ("orders_per_hour", "orders_per_day", "most_tries"):
        if key in keys:
            changed[key] = min(getattr(options, key), getattr(other, key))
    for key in ("again_seconds", "promote_after"):
        if key in keys:
            changed[key] = max(getattr(options, key), getattr(other, key))
    return options.model_copy(update=changed)


def _common(zones: tuple[str, ...], allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Of two lists of places, what lies in both."""
    common = [zone for zone in zones if any(_inside(zone, other) for other in allowed)]
    common += [other for other in allowed if any(_inside(other, zone) for zone in zones)]
    return tuple(dict.fromkeys(common))


def _inside(zone: str, other: str) -> bool:
    return PurePosixPath(zone).is_relative_to(other)
