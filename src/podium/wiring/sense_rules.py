"""Planning rules from a file: a project's own, or those that come with Podium."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from podium.domain.errors import BadInput, ConfigInvalid
from podium.flows.sense.rule_language import RuleBook
from podium.flows.sense.rules import rule_faults
from podium.wiring.configuration import Configuration
from podium.wiring.flow_options import flow_options
from podium.wiring.located import Located
from podium.wiring.parsing import parse_located, read_located

SHIPPED = "default_rules.yaml"


@dataclass(frozen=True)
class LoadedRules:
    """Rules whose examples hold, and where they come from."""

    name: str
    book: RuleBook


def load_rules(file: Path | None = None) -> LoadedRules:
    """Rules of a file, each tried on its own examples; without a file those that come with Podium.

    Raises `ConfigInvalid` with every fault at its line.
    """
    return _shipped() if file is None else _tried(read_located(file))


def _tried(located: Located) -> LoadedRules:
    book = located.validated(RuleBook)
    if faults := rule_faults(book):
        raise ConfigInvalid(located.file, [located.fault(*fault) for fault in faults])
    return LoadedRules(located.file, book)


def rules_file(configuration: Configuration) -> Path | None:
    """The file a project names for its rules. None: it names none. Raises `BadInput` for one outside."""
    named = str(flow_options(configuration, "sense").get("rules") or "")
    if not named:
        return None
    root = configuration.folders.project.resolve()
    file = (root / named).resolve()
    if not file.is_relative_to(root):
        raise BadInput(f"rules {named!r} lie outside the project; keep them in it")
    return file


@cache
def _shipped() -> LoadedRules:
    place = files("podium.flows.sense") / SHIPPED
    return _tried(parse_located(place.read_bytes(), SHIPPED))
