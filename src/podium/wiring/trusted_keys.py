"""Keys of podium.yaml that let others in or send things out: a project's count once a person trusted its file."""

from __future__ import annotations

from podium.domain.model import Json
from podium.wiring.configuration import Configuration
from podium.wiring.settings import Settings


def trusted_settings(configuration: Configuration, key: str) -> Settings:
    """The settings of the strongest file whose `key` counts; the defaults where none does."""
    for layer in reversed(configuration.layers):
        mine = layer.name != "project" or configuration.project_is_trusted()
        if key in layer.located.data and mine:
            return layer.settings
    return Settings()


def project_steering(configuration: Configuration) -> dict[str, Json]:
    """What the project's file wants of notices and chats, by key, as far as it needs trust."""
    found: dict[str, Json] = {}
    for layer in configuration.layers:
        if layer.name == "project":
            wished = layer.settings.model_dump(mode="json", exclude_defaults=True)
            found = {key: wished[key] for key in ("notices", "chat") if key in wished}
    return found


def untrusted_words(configuration: Configuration, key: str) -> str:
    """Why a project's `key` counts for nothing; empty when it counts or there is none."""
    wished = any(
        layer.name == "project" and key in layer.located.data for layer in configuration.layers
    )
    if not wished or configuration.project_is_trusted():
        return ""
    return (
        f"`{key}` of {str(configuration.folders.project_file)!r} counts for nothing, since nobody has trusted "
        "that file as it is now; read it, then say `podium trust`"
    )
