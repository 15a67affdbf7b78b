"""Settings that name files of a project which steer agents or runs: marked where they are declared.

The import gate guards what they name, as it guards the settings themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from podium.core.model import Json

_SEPARATORS = re.compile(r"[\s=;|&<>()'\"]+")
_LIKE_A_FILE = re.compile(r"/|\w\.\w")


def _itself(text: str) -> Sequence[str]:
    return (text,) if text else ()


def _prompt(name: str) -> Sequence[str]:
    """A name without the ending is a prompt of Podium's own folder, or one that ships."""
    return (name,) if name.endswith(".md") else ()


def _pack(name: str) -> Sequence[str]:
    """Also one that is not there yet: it would go before the one that ships."""
    if not name:
        return ()
    return (name,) if "/" in name else (f"{name}/tools.registry.json", f"packs/{name}")


def _program(argument: str) -> Sequence[str]:
    """Parts of a command's word that may be files: also behind `--option=`, and in a line for a shell."""
    parts = _SEPARATORS.split(argument)
    return [part for part in parts if _LIKE_A_FILE.search(part) and not part.startswith("-")]


@dataclass(frozen=True)
class SteeringFile:
    """Marks a setting whose texts name files or folders, from the project on."""

    paths: Callable[[str], Sequence[str]] = _itself
    files_only: bool = False
    """A folder of that name is not meant."""


STEERING_FILE = SteeringFile()
PROMPT_FILE = SteeringFile(_prompt)
PACK_FOLDER = SteeringFile(_pack)
PROGRAM_FILES = SteeringFile(_program, files_only=True)


def steering_files(settings: BaseModel) -> Iterator[tuple[str, SteeringFile]]:
    """The paths that marked settings name, in whatever parts of them, each with its mark."""
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        annotations = [
            annotation for annotation in field.metadata if isinstance(annotation, SteeringFile)
        ]
        for text in _texts(value) if annotations else ():
            yield from ((path, annotations[0]) for path in annotations[0].paths(text))
        for part in _parts(value):
            yield from steering_files(part)


def _texts(value: Json) -> Sequence[str]:
    return (value,) if isinstance(value, str) else tuple(value or ())


def _parts(value: Json) -> Iterator[BaseModel]:
    if isinstance(value, BaseModel):
        yield value
    elif isinstance(value, dict):
        yield from (item for item in value.values() if isinstance(item, BaseModel))
    elif isinstance(value, tuple):
        yield from (item for item in value if isinstance(item, BaseModel))
