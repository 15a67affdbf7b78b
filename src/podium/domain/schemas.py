"""What a JSON Schema says beyond right and wrong."""

from __future__ import annotations

import copy

from podium.domain.model import Json


def with_defaults(schema: dict[str, Json], arguments: dict[str, Json]) -> dict[str, Json]:
    """A copy of the arguments with the schema's defaults, inside objects that are given too."""
    complete = dict(arguments)
    for name, inner in schema.get("properties", {}).items():
        if not isinstance(inner, dict):
            continue
        if name not in complete and "default" in inner:
            complete[name] = copy.deepcopy(inner["default"])
        elif isinstance(complete.get(name), dict):
            complete[name] = with_defaults(inner, complete[name])
    return complete
