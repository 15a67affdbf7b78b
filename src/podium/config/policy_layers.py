"""Policies of all layers compiled into one gate, with problems at their file and line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import ConfigDict

from podium.config.configuration import Configuration
from podium.config.layers import Layer
from podium.config.located import KeyPath, dotted
from podium.core.errors import ConfigInvalid, ConfigProblem
from podium.core.model import FrozenModel, Json
from podium.policy import (
    InvalidPolicy,
    Policy,
    PolicyLayer,
    RuleGate,
    compile_policy,
    default_policy,
    find_problems,
)

_ORDER = ("built-in", "user", "project")


class PolicyFile(FrozenModel):
    """A settings file as the gate reads it; the other keys were checked when it was loaded."""

    model_config = ConfigDict(extra="ignore")

    policy: Policy = Policy()


def build_gate(configuration: Configuration, beside: Sequence[PolicyLayer] = ()) -> RuleGate:
    """The gate of the built-in policy, tightened by the user's and the project's.

    Layers `beside` them come behind those of the same origin. Raises `ConfigInvalid` with every fault of a file, also for a rule that does not fit its own
    examples.
    """
    files = [layer for layer in configuration.layers if "policy" in layer.located.data]
    layers = [PolicyLayer(origin="built-in", policy=default_policy()), *map(_policy_layer, files)]
    problems = list(find_problems(layers))
    for file in files:
        config_problems = [
            _placed(file, problem) for problem in problems if problem.layer == file.name
        ]
        if config_problems:
            raise ConfigInvalid(file.located.file, config_problems)
    return compile_policy(sorted((*layers, *beside), key=lambda layer: _ORDER.index(layer.origin)))


def policies_record(configuration: Configuration) -> dict[str, Json]:
    """Each layer of the policy as it was written, the built-in one first."""
    built_in = default_policy().model_dump(mode="json", exclude_defaults=True)
    files = [layer for layer in configuration.layers if layer.located.data.get("policy")]
    return {"built-in": built_in, **{layer.name: layer.located.data["policy"] for layer in files}}


def policy_listing(configuration: Configuration) -> list[tuple[str, Json, str]]:
    """Every rule, zone, quota and limit of all layers: dotted key, value, origin.

    All of them are in force together: a layer can only make what is above it stricter.
    """
    layers: dict[str, Layer] = {layer.name: layer for layer in configuration.layers}
    rows: list[tuple[str, Json, str]] = []
    for name, policy in policies_record(configuration).items():
        for path, value in _parts(policy):
            layer = layers.get(name)
            origin = layer.origin_of(("policy", *path)) if layer else "built-in"
            rows.append((dotted(("policy", name, *path)), value, origin))
    return rows


def _parts(policy: Json) -> Iterator[tuple[KeyPath, Json]]:
    """The entries of a policy's lists and tables, and its single values."""
    for key, value in policy.items():
        inner = enumerate(value) if isinstance(value, list) else ()
        entries = value.items() if isinstance(value, dict) else inner
        yield from (((key, entry), part) for entry, part in entries)
        if not isinstance(value, dict | list):
            yield (key,), value


def _policy_layer(layer: Layer) -> PolicyLayer:
    policy = layer.located.validated(PolicyFile).policy
    return PolicyLayer(origin="project" if layer.name == "project" else "user", policy=policy)


def _placed(layer: Layer, problem: InvalidPolicy) -> ConfigProblem:
    named = f"rule {problem.rule!r}: " if problem.rule else ""
    return layer.located.problem(("policy", *problem.key), f"{named}{problem.problem}")
