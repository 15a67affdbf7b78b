"""Settings of an API model: provider, model, address and key."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, get_args
from urllib.parse import urlsplit

from pydantic import Field, ValidationError

from podium.agents.deps import AgentOptions, problems_line
from podium.agents.kinds import SECRET_PREFIX, key_hint
from podium.core.errors import AgentNotLoggedIn, BadInput
from podium.core.model import FrozenModel

ResolveSecret = Callable[[str], str]
"""Gives the value behind `secret://NAME` for the NAME. Raises `UserMustAct` or `LookupError`."""

ProviderName = Literal["google", "openai", "openai-responses", "openrouter", "anthropic"]
PROVIDERS: tuple[ProviderName, ...] = get_args(ProviderName)


class ApiSettings(FrozenModel):
    """The `options` of an API agent in podium.yaml."""

    provider: ProviderName | None = None
    """None: the model's prefix says it, as in `anthropic:claude-sonnet-4-5`."""
    max_output_tokens: int | None = Field(default=None, ge=1)
    """The longest answer to one request. None: the provider's own limit."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    thinking: bool | Literal["minimal", "low", "medium", "high"] | None = None
    """Amount of thinking before an answer. None: the model's default."""
    native_schema: bool = True
    """Use the provider's own JSON schema for payloads, where it has one."""
    same_call_limit: int = Field(default=5, ge=1)
    """Times in a row that the model may ask for the very same call."""
    longest_result_characters: int = Field(default=100_000, ge=1_000)
    """Characters of a tool's result that are shown to the model; the rest is cut."""
    silence_seconds: float = Field(default=300.0, gt=0)
    """A provider that says nothing for so long has gone away."""


@dataclass(frozen=True)
class _Provider:
    base_url: str
    keys: dict[str, str]
    """Variable that holds a key → the header it travels in."""


_BEARER = "authorization"
_PROVIDER_DEFAULTS: dict[ProviderName, _Provider] = {
    "google": _Provider(
        "https://generativelanguage.googleapis.com",
        {"GEMINI_API_KEY": "x-goog-api-key", "GOOGLE_API_KEY": "x-goog-api-key"},
    ),
    "openai": _Provider("https://api.openai.com/v1", {"OPENAI_API_KEY": _BEARER}),
    "openai-responses": _Provider("https://api.openai.com/v1", {"OPENAI_API_KEY": _BEARER}),
    "openrouter": _Provider("https://openrouter.ai/api/v1", {"OPENROUTER_API_KEY": _BEARER}),
    "anthropic": _Provider(
        "https://api.anthropic.com",
        {"ANTHROPIC_API_KEY": "x-api-key", "ANTHROPIC_AUTH_TOKEN": _BEARER},
    ),
}


@dataclass(frozen=True)
class Key:
    """A key, and the header it travels in. It is not shown when this is printed."""

    value: str = field(default="", repr=False)
    header: str = ""
    hint: str = ""
    """The key's variable, and where a person sets it."""

    @property
    def headers(self) -> dict[str, str]:
        if not self.value:
            return {}
        return {self.header: f"Bearer {self.value}" if self.header == _BEARER else self.value}

    def scrub(self, text: str) -> str:
        """Words or JSON without the key: some providers quote it when they complain."""
        if not self.value:
            return text
        as_json = json.dumps(self.value)[1:-1]
        return text.replace(self.value, "[key]").replace(as_json, "[key]")


@dataclass(frozen=True)
class Choice:
    """The provider and model that an API agent asks."""

    agent: str
    provider: ProviderName
    model: str
    base_url: str
    settings: ApiSettings

    @property
    def login_hint(self) -> str:
        name = next(iter(_PROVIDER_DEFAULTS[self.provider].keys))
        return f"set `env: {{{name}: secret://{name}}}` for agent {self.agent!r} in podium.yaml"

    def key(self, env: dict[str, str], resolve_secret: ResolveSecret) -> Key:
        """The key from the agent's own variables. Raises `AgentNotLoggedIn` when there is none."""
        for name, header in _PROVIDER_DEFAULTS[self.provider].keys.items():
            if reference := env.get(name):
                value = self._checked(name, _resolved(reference, resolve_secret))
                return Key(value, header, key_hint(name, reference))
        if (
            self.base_url != _PROVIDER_DEFAULTS[self.provider].base_url
            and self.provider == "openai"
        ):
            return Key()  # servers on one's own machine want none
        raise AgentNotLoggedIn(f"agent {self.agent!r} has no key; {self.login_hint}")

    def _checked(self, name: str, value: str) -> str:
        key = value.strip()
        if not key or not key.isascii() or not key.isprintable():
            raise AgentNotLoggedIn(
                f"the key of agent {self.agent!r} in {name!r} is empty or contains invalid "
                f"characters; {self.login_hint}"
            )
        return key


def choose(options: AgentOptions) -> Choice:
    """Read the options of an API agent. Raises `BadInput` that names what is wrong."""
    settings = _settings(options)
    provider, model = _provider_and_model(options, settings)
    if not model:
        raise BadInput(f"agent {options.name!r} has no model; set `model` for it in podium.yaml")
    base_url = options.base_url.rstrip("/") or _PROVIDER_DEFAULTS[provider].base_url
    _check_url(options.name, base_url)
    return Choice(options.name, provider, model, base_url, settings)


def _settings(options: AgentOptions) -> ApiSettings:
    try:
        return ApiSettings.model_validate(options.options)
    except ValidationError as error:
        raise BadInput(
            f"the options of agent {options.name!r} are not valid: {problems_line(error)}; known options: "
            f"{', '.join(ApiSettings.model_fields)}; known providers: {', '.join(PROVIDERS)}"
        ) from None


def _provider_and_model(options: AgentOptions, settings: ApiSettings) -> tuple[ProviderName, str]:
    prefix, colon, rest = options.model.partition(":")
    named = next((name for name in PROVIDERS if colon and name == prefix), None)
    if settings.provider is not None:
        # OpenRouter's own names have colons too, as in `vendor/model:free`.
        return settings.provider, rest if named == settings.provider else options.model
    if named is None:
        raise BadInput(
            f"agent {options.name!r} has no known provider (model {options.model!r}); write "
            f"the model as `provider:model` or set `options: {{provider: …}}`; known providers: "
            f"{', '.join(PROVIDERS)}"
        )
    return named, rest


def _check_url(agent: str, base_url: str) -> None:
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.username is not None or parts.query or parts.fragment:
        raise BadInput(
            f"the base_url of agent {agent!r} is not valid; write it as https://host/path, "
            "without a user name, key or query"
        )


def _resolved(value: str, resolve_secret: ResolveSecret) -> str:
    if not value.startswith(SECRET_PREFIX):
        return value
    name = value.removeprefix(SECRET_PREFIX)
    try:
        return resolve_secret(name)
    except LookupError:
        raise AgentNotLoggedIn(
            f"the secret {name!r} is not defined; set {name} in Podium's environment"
        ) from None
