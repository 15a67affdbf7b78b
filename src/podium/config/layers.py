"""Settings of several sources merged into one, with the origin of every value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from podium.config.located import KeyPath, Located, dotted
from podium.config.settings import SandboxSettings, Settings, common
from podium.core.model import Json
from podium.core.work import MODES

NAMED = ("agents", "roles", "flows", "queues")
"""Keys that hold entries by name."""

LayerName = Literal["user", "project", "environment", "flag"]

TIGHTENING = (
    "approvers", "redact", "secrets", "not_secret", "budgets", "sandbox", "environment", "forge",
)  # fmt: skip
"""Keys of which the stricter holds; `policy` too, whose layers the gate keeps apart."""


@dataclass(frozen=True)
class Layer:
    """One source of settings, valid in itself."""

    name: LayerName
    located: Located
    settings: Settings

    def origin_of(self, path: KeyPath) -> str:
        """Origin of a value of this layer, in words for a person."""
        key = dotted(path)
        if self.name == "flag":
            return "--" + key.replace("_", "-")
        if self.name == "environment":
            return "PODIUM_" + key.upper()
        position = self.located.position_of(path)
        return f"{self.located.file}:{position.line}" if position else self.located.file


Origins = Mapping[str, str]
"""Dotted key → where its value came from."""


def merge(layers: tuple[Layer, ...]) -> tuple[Settings, Origins]:
    """Make one of layers given from the weakest to the strongest.

    An agent, role, flow or queue is taken whole from the strongest layer that has it.
    """
    data: dict[str, Json] = {}
    owners: dict[KeyPath, Layer] = {}
    for layer in layers:
        for key, value in layer.located.data.items():
            if key in (*NAMED, "workspaces"):
                data[key] = {**data.get(key, {}), **value}
                owners |= {(key, name): layer for name in value}
            elif key not in TIGHTENING and key not in ("policy", "mode"):
                data[key] = value
                owners[(key,)] = layer
    settings = Settings.model_validate_json(json.dumps(data))
    files = tuple(layer for layer in layers if layer.name in ("user", "project"))
    mode, mode_origin = _mode(layers)
    guards = _tightened(files)
    guards["sandbox"], sandbox_origin = _sandbox(guards["sandbox"], layers)
    guards["budgets"] = guards["budgets"].in_force()
    workspaces = settings.workspaces.model_copy(update={"forbidden": _forbidden(files)})
    merged = settings.model_copy(update={**guards, "mode": mode, "workspaces": workspaces})
    origins = {
        **_owned_origins(data, owners),
        **_guard_origins(files),
        **sandbox_origin,
        **mode_origin,
    }
    return merged, origins


def leaves_of(settings: Settings) -> Iterator[tuple[KeyPath, Json]]:
    """Every single value with its path. Empty collections are values."""
    return _leaves(settings.model_dump(mode="json"))


def _owned_origins(data: Mapping[str, Json], owners: Mapping[KeyPath, Layer]) -> dict[str, str]:
    origins = {}
    for path, _value in _leaves(data):
        owner = owners.get(path[:2]) or owners.get(path[:1])
        if owner is not None:
            origins[dotted(path)] = owner.origin_of(path)
    return origins


def _leaves(data: Mapping[str, Json], path: KeyPath = ()) -> Iterator[tuple[KeyPath, Json]]:
    for key, value in data.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _mode(layers: tuple[Layer, ...]) -> tuple[str, dict[str, str]]:
    """A person's word of now holds; of two files the stricter one."""
    layers_with_mode = [layer for layer in layers if "mode" in layer.located.data]
    spoken = [layer for layer in layers_with_mode if layer.name in ("environment", "flag")]
    if not layers_with_mode:
        return Settings().mode, {}
    strictest = min(layers_with_mode, key=lambda layer: MODES.index(layer.settings.mode))
    holding = spoken[-1] if spoken else strictest
    return holding.settings.mode, {"mode": holding.origin_of(("mode",))}


def _forbidden(files: tuple[Layer, ...]) -> tuple[str, ...]:
    """The union of all files' forbidden paths."""
    paths = (path for layer in files for path in layer.settings.workspaces.forbidden)
    return tuple(dict.fromkeys(paths))


def _sandbox(
    files: SandboxSettings, layers: tuple[Layer, ...]
) -> tuple[SandboxSettings, dict[str, str]]:
    """The files' setting, unless a person says just now that it may go without."""
    spoken = [
        layer
        for layer in layers
        if layer.name in ("environment", "flag") and layer.settings.sandbox.kind is not None
    ]
    if not spoken:
        return files.in_force(), {}
    kind = spoken[-1].settings.sandbox.kind
    held = files.model_copy(update={"kind": kind}).in_force()
    return held, {"sandbox.kind": spoken[-1].origin_of(("sandbox",))}


def _tightened(files: tuple[Layer, ...]) -> dict[str, Json]:
    user = next((layer.settings for layer in files if layer.name == "user"), Settings())
    environment = user.environment
    if environment.inherit is None:
        # Nothing is handed on by default, and a project cannot add to what the user's file allows.
        environment = environment.model_copy(update={"inherit": ()})
    values: dict[str, Json] = {
        "approvers": dict(user.approvers),
        "redact": user.redact,
        # None by default, and a project cannot add to them.
        "secrets": user.secrets or (),
        "not_secret": user.not_secret or (),
        "budgets": user.budgets,
        "sandbox": user.sandbox,
        "environment": environment,
        "forge": user.forge,
    }
    for layer in files:
        if layer.name == "project":
            values = _with_project(values, layer.settings)
    return values


def _with_project(values: dict[str, Json], project: Settings) -> dict[str, Json]:
    approvers = dict(values["approvers"])
    for group, names in project.approvers.items():
        # A project cannot put itself among the people whom the user's file names.
        before = approvers.get(group, names)
        approvers[group] = tuple(name for name in before if name in names)
    return {
        "approvers": approvers,
        "redact": tuple(dict.fromkeys((*values["redact"], *project.redact))),
        "secrets": common(values["secrets"], project.secrets),
        "not_secret": common(values["not_secret"], project.not_secret),
        "budgets": values["budgets"].tightened_by(project.budgets),
        "sandbox": values["sandbox"].tightened_by(project.sandbox),
        "environment": values["environment"].tightened_by(project.environment),
        "forge": values["forge"].tightened_by(project.forge),
    }


def _guard_origins(files: tuple[Layer, ...]) -> dict[str, str]:
    """For what several files may have a say in, all of them are named."""
    origins: dict[str, list[str]] = {}
    for layer in files:
        guards = {key: layer.located.data[key] for key in TIGHTENING if key in layer.located.data}
        for path, _value in _leaves(guards):
            origins.setdefault(dotted(path), []).append(layer.origin_of(path))
    return {key: " + ".join(origins) for key, origins in origins.items()}
