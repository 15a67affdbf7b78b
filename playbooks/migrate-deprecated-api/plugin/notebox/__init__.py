"""The part of the host that plugins see. It belongs to the host: plugins only read it."""

import warnings
from collections.abc import Iterator, Mapping


class Settings(Mapping[str, str]):
    """The person's settings. A name that is not set raises `KeyError`, as in any mapping."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Host:
    def __init__(self, values: dict[str, str]) -> None:
        self.settings = Settings(values)

    def get_setting(self, name: str) -> str:
        """Deprecated: use `settings`. Gives an empty text for a name that is not set."""
        warnings.warn(
            "get_setting goes away in 6.0; use settings", DeprecationWarning, stacklevel=2
        )
        return self.settings.get(name, "")
