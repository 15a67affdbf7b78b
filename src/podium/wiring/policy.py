"""The policies of all layers made one gate, with faults at their file and line."""

from __future__ import annotations

from pydantic import ConfigDict

from podium.domain.errors import ConfigFault, ConfigInvalid
from podium.domain.model import Noun
from podium.gate import (
    Policy,
    PolicyFault,
    PolicyLayer,
    RuleGate,
    compile_policy,
    default_policy,
    find_faults,
)
from podium.wiring.configuration import Configuration
from podium.wiring.layers import Layer


class PolicyFile(Noun):
    """A settings file as the gate reads it; the other keys were checked when it was loaded."""

    model_config = ConfigDict(extra="ignore")

    policy: Policy = Policy()


def build_gate(configuration: Configuration) -> RuleGate:
    """The gate of the built-in policy, tightened by the user's and the project's.

    Raises `ConfigInvalid` with every fault of a file, also for a rule that does not fit its own
    examples.
    """
    files = [layer for layer in configuration.layers if "policy" in layer.located.data]
    layers = [PolicyLayer(origin="built-in", policy=default_policy()), *map(_policy_layer, files)]
    faults = list(find_faults(layers))
    for file in files:
        found = [_placed(file, fault) for fault in faults if fault.layer == file.name]
        if found:
            raise ConfigInvalid(file.located.file, found)
    return compile_policy(layers)


def _policy_layer(layer: Layer) -> PolicyLayer:
    policy = layer.located.validated(PolicyFile).policy
    return PolicyLayer(origin="project" if layer.name == "project" else "user", policy=policy)


def _placed(layer: Layer, fault: PolicyFault) -> ConfigFault:
    named = f"rule {fault.rule!r}: " if fault.rule else ""
    return layer.located.fault(("policy", *fault.key), f"{named}{fault.problem}")
