"""Reads lists of commands for `podium policy test`: a person's file, and those that come with Podium."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import yaml

from podium.domain.errors import BadInput
from podium.domain.model import Json

_MOST_BYTES = 5_000_000


def shipped_cases() -> Iterator[tuple[str, Json]]:
    """The lists in `gate/shell/cases`, each with its name."""
    folder = resources.files("podium.gate.shell") / "cases"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            yield file.name, _parsed(file.read_text("utf-8"), file.name)


def read_yaml(path: Path) -> Json:
    """The content of a file. Raises `BadInput` that says what is wrong with it."""
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise BadInput(f"{str(path)!r} is larger than {_MOST_BYTES} bytes; split the list")
        return _parsed(raw.decode("utf-8"), str(path))
    except OSError as error:
        raise BadInput(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{str(path)!r} is not text in UTF-8") from None


def _parsed(text: str, name: str) -> Json:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(text, Loader=loader)  # noqa: S506 - both loaders are safe ones
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        problem = " ".join(str(error).split())[:300]
        raise BadInput(f"{name!r} is not YAML: {problem}") from None
