"""Configuration of one project: files and environment read once, checked, with trust applied."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from podium.config.folders import Folders, find_folders
from podium.config.layers import Layer, LayerName, Origins, leaves_of, merge
from podium.config.located import Located, dotted
from podium.config.os_user import os_user_name
from podium.config.settings import (
    AgentSettings,
    BudgetSettings,
    SandboxSettings,
    Settings,
    SettingsFile,
    WorkspacesSettings,
    own_tree_limits,
    with_nulls_off,
)
from podium.config.trust import TrustBook
from podium.core.errors import BadInput, ConfigInvalid, ConfigProblem, NotPossibleNow
from podium.core.model import Json
from podium.core.work import RunSettings

ENVIRONMENT_KEYS: Mapping[str, str] = {
    "PODIUM_MODE": "mode",
    "PODIUM_SANDBOX": "sandbox",
    "PODIUM_USER": "user",
}
"""Variable → the key it sets."""

VARIABLES: Mapping[str, str] = {
    "PODIUM_MODE": "Sets `mode` and overrides both files.",
    "PODIUM_SANDBOX": "Sets `sandbox` and overrides both files: `kernel` or `none`.",
    "PODIUM_USER": "Sets `user`.",
    "PODIUM_PROJECT": "The project's folder, as `--project`.",
    "PODIUM_HOME": "Folder for your settings and state, in place of `~/.config/podium` and `~/.local/state/podium`.",
    "PODIUM_DEBUG": "`1` shows tracebacks, as `--debug`.",
    "PODIUM_DATABASE_URL": "URL of the PostgreSQL database that holds the record.",
    "PODIUM_RECEIPT_KEY": "File with the key that seals receipts, shared by all machines.",
    "PODIUM_TRACES": "`on` exports traces with OpenTelemetry.",
    "PODIUM_MCP_TOKEN": "Token that clients of `podium mcp --http` must send.",
    "PODIUM_MODELSERVER_KEY": "Key that clients of `podium modelserver` must send.",
    "PODIUM_SENSE_SCHEDULED": "`1` in a scheduled tick: it plans only if something changed.",
    "PODIUM_DOOR": "Set by Podium for agents: the socket where they ask for calls.",
    "PODIUM_DOOR_TOKEN": "Set by Podium for agents: the token for that socket.",
    "PODIUM_DOOR_DEADLINE": "Set by Podium for agents: seconds after which an unanswered question is denied.",
}
"""Every `PODIUM_*` variable, with its meaning."""

ENVIRONMENT_VARIABLES = frozenset(VARIABLES)
"""Every `PODIUM_*` that means something to some part of Podium."""


@dataclass(frozen=True)
class Configuration:
    """Settings of all sources in force, and where each came from."""

    folders: Folders
    settings: Settings
    origins: Origins = field(default_factory=dict)
    layers: tuple[Layer, ...] = ()
    """From the weakest to the strongest; the gate takes the policies from here."""

    def origin_of(self, key: str) -> str:
        """Origin of the value of a dotted key: a file and line, a variable, a flag, or `default`."""
        return self.origins.get(key, "default")

    def command_of(self, agent: str) -> tuple[str, ...]:
        """An agent's own command line; empty when it has none.

        Raises `NotPossibleNow` when a project brought it and nobody has trusted that file yet.
        """
        command = self._agent(agent).command
        if command:
            self._refuse_untrusted(agent, "a command")
        return command

    def env_of(self, agent: str) -> dict[str, str]:
        """The variables set for an agent's processes; secrets only as `secret://NAME`.

        A variable can make a program run other code, or hand it a secret. Raises `NotPossibleNow`
        when a project brought them and nobody has trusted that file yet.
        """
        env = self._agent(agent).env
        if env:
            self._refuse_untrusted(agent, "variables")
        return dict(env)

    def base_url_of(self, agent: str) -> str:
        """URL of an agent's model; empty when at its provider.

        Whoever serves it gets the key and every word. Raises as `env_of` does.
        """
        address = self._agent(agent).base_url
        if address:
            self._refuse_untrusted(agent, "an address")
        return address

    def options_of(self, agent: str) -> dict[str, Json]:
        """Options that only the agent's medium knows. Raises as `env_of` does."""
        options = self._agent(agent).options
        if options:
            self._refuse_untrusted(agent, "options")
        return dict(options)

    @property
    def sandbox(self) -> SandboxSettings:
        """Confinement of what agents start, with the hosts of a project that is trusted."""
        held, wished = self.settings.sandbox, self.project_hosts()
        if not wished or not self.project_is_trusted():
            return held
        return held.model_copy(update={"network": "listed", "hosts": wished})

    @property
    def workspaces(self) -> WorkspacesSettings:
        """Settings for workspaces. Raises `NotPossibleNow` when a project says what nobody has trusted yet."""
        if self.project_set_up() and not self.project_is_trusted():
            raise NotPossibleNow(
                f"{str(self.folders.project_file)!r} has workspace settings and is not trusted as it is now; "
                "review it, then run `podium trust`"
            )
        return self.settings.workspaces

    def project_set_up(self) -> dict[str, Json]:
        """The project file's set-up of new workspaces, as far as it needs trust."""
        project_settings = [
            layer.settings.workspaces for layer in self.layers if layer.name == "project"
        ]
        if not project_settings or not project_settings[0].needs_trust:
            return {}
        return project_settings[0].model_dump(mode="json", exclude_defaults=True)

    def project_hosts(self) -> tuple[str, ...]:
        """Hosts that the project's file wants to reach where the user's has no wish of its own."""
        sections = {layer.name: layer.settings.sandbox for layer in self.layers}
        user, project = sections.get("user"), sections.get("project")
        if project is None or project.network != "listed" or (user and user.network):
            return ()
        return project.hosts

    def ignored_settings(self) -> dict[str, str]:
        """Sandbox settings of the project's file that have no effect, each with where it would have one."""
        requested = {layer.name: layer.settings.sandbox for layer in self.layers}.get("project")
        if requested is None:
            return {}
        held, own = self.sandbox, "in your own file"
        ignored: dict[str, str] = {}
        if requested.kind == "none" and held.kind != "none":
            ignored["`none`"] = f"{own} or as PODIUM_SANDBOX"
        if requested.network == "open" and held.network != "open":
            ignored["`network: open`"] = own
        if self.project_hosts() and not self.project_is_trusted():
            ignored[f"`hosts: {', '.join(self.project_hosts())}`"] = "after `podium trust`"
        if requested.read:
            ignored["`read`"] = own
        return ignored

    def unheeded_limits(self) -> list[str]:
        """Limits that the project's file wants raised or switched off, and only your own file can."""
        requested = {layer.name: layer.settings for layer in self.layers}.get("project")
        if requested is None:
            return []
        sections = [
            ("sandbox", requested.sandbox, self.settings.sandbox, tuple(own_tree_limits())),
            *(
                (
                    f"budgets: {scope}",
                    getattr(requested.budgets, scope),
                    held,
                    BudgetSettings.model_fields,
                )
                for scope, held in self.settings.budgets
            ),
        ]
        return [
            f"`{section}: {name}: {limit}`"
            for section, wished, held, names in sections
            for name in names
            if (limit := getattr(wished, name)) is not None
            and (most := getattr(held, name))
            and not 0 < limit <= most
        ]

    @property
    def project_digest(self) -> str:
        """Digest of the project's file as it was read; empty when there is none."""
        digests = [layer.located.digest for layer in self.layers if layer.name == "project"]
        return digests[0] if digests else ""

    def project_is_trusted(self) -> bool:
        """Tell whether a person trusted the project's file with the content that was read."""
        book = TrustBook(self.folders.user_state)
        return bool(self.project_digest) and book.trusts(
            self.folders.project_file, self.project_digest
        )

    def project_commands(self) -> dict[str, tuple[str, ...]]:
        """The command lines that the project's file brings, by agent."""
        agents = self.settings.agents.items()
        return {name: a.command for name, a in agents if a.command and self._from_project(name)}

    def project_addresses(self) -> dict[str, str]:
        """URLs of agents' models in the project's file, by agent."""
        agents = self.settings.agents.items()
        return {name: a.base_url for name, a in agents if a.base_url and self._from_project(name)}

    def project_options(self) -> dict[str, dict[str, Json]]:
        """The options of agents that the project's file brings, by agent."""
        agents = self.settings.agents.items()
        return {name: a.options for name, a in agents if a.options and self._from_project(name)}

    def project_variables(self) -> dict[str, tuple[str, ...]]:
        """The variables, as `NAME=value`, that the project's file sets, by agent."""
        agents = self.settings.agents.items()
        return {
            name: tuple(f"{key}={value}" for key, value in a.env.items())
            for name, a in agents
            if a.env and self._from_project(name)
        }

    def run_settings(self) -> dict[str, Json]:
        """The settings that a run records when it is started."""
        run_settings = RunSettings(mode=self.settings.mode, budgets=self.settings.budgets.budgets())
        return run_settings.model_dump(mode="json")

    def record(self) -> dict[str, Json]:
        """All settings, as plain data."""
        return self.settings.model_dump(mode="json")

    @property
    def has_policy(self) -> bool:
        """Tell whether a file says anything of a policy, usable or not."""
        return any("policy" in layer.located.data for layer in self.layers)

    def listing(self) -> list[tuple[str, Json, str]]:
        """Every value in force: dotted key, value, origin."""
        rows = [(dotted(path), value) for path, value in leaves_of(self.settings)]
        return [(key, value, self.origin_of(key)) for key, value in rows]

    def _agent(self, name: str) -> AgentSettings:
        if name not in self.settings.agents:
            names = ", ".join(sorted(self.settings.agents)) or "none"
            raise BadInput(f"no agent {name!r} is configured; known agents: {names}")
        return self.settings.agents[name]

    def _refuse_untrusted(self, agent: str, what: str) -> None:
        if self._from_project(agent) and not self.project_is_trusted():
            raise NotPossibleNow(
                f"agent {agent!r} has {what} in {str(self.folders.project_file)!r}, which is not "
                "trusted as it is now; review it, then run `podium trust`"
            )

    def _from_project(self, agent: str) -> bool:
        owners = [layer.name for layer in self.layers if agent in layer.settings.agents]
        return owners[-1:] == ["project"]


def load_configuration(
    environ: Mapping[str, str],
    *,
    project: Path | None = None,
    start: Path | None = None,
    flags: Mapping[str, Json] | None = None,
) -> Configuration:
    """Read everything there is to read. Raises `ConfigInvalid` with all faults of a file at once."""
    _check_database_url(environ)
    folders = find_folders(environ, project=project, start=start)
    spoken = {key: environ[name] for name, key in ENVIRONMENT_KEYS.items() if environ.get(name)}
    layers = tuple(
        layer
        for layer in (
            _file_layer("user", folders.user_file),
            _file_layer("project", folders.project_file),
            _layer("environment", Located("environment", dict(spoken))) if spoken else None,
            _layer("flag", Located("command line", dict(flags))) if flags else None,
        )
        if layer is not None
    )
    settings, origins = merge(layers)
    _check_roles(settings, layers)
    if not settings.user:
        settings = settings.model_copy(update={"user": os_user_name()})
    return Configuration(folders, settings, origins, layers)


def load_readable(
    environ: Mapping[str, str], *, project: Path | None = None
) -> tuple[Configuration, ConfigInvalid | None]:
    """The configuration, or what is left of it without a file that cannot be used, and its faults.

    For what must work all the same: looking, and stopping what runs. A file with faults counts for
    nothing then, so nothing that needs a policy may be done with this.
    """
    try:
        return load_configuration(environ, project=project), None
    except ConfigInvalid as invalid:
        folders = find_folders(environ, project=project)
        with suppress(ConfigInvalid):
            layer = _file_layer("user", folders.user_file)
            settings = merge((layer,) if layer else ())[0]
            return Configuration(folders, _with_user(settings, environ)), invalid
        return Configuration(folders, _with_user(merge(())[0], environ)), invalid


def _with_user(settings: Settings, environ: Mapping[str, str]) -> Settings:
    user = environ.get("PODIUM_USER") or settings.user or os_user_name()
    return settings.model_copy(update={"user": user})


def _file_layer(name: LayerName, file: Path) -> Layer | None:
    if not (file.exists() or file.is_symlink()):
        return None
    # Late: where nobody wrote settings, nothing has to read YAML.
    from podium.config.located_yaml import read_located

    return _layer(name, read_located(file))


def _layer(name: LayerName, located: Located) -> Layer:
    settings = with_nulls_off(located.validated(SettingsFile), located.data)
    if name == "project" and settings.user:
        problem = located.problem(("user",), "a project cannot set this; set it in your own file")
        raise ConfigInvalid(located.file, [problem])
    return Layer(name, located, settings)


def _check_roles(settings: Settings, layers: tuple[Layer, ...]) -> None:
    """Every role's agent must be there, in whichever file."""
    for layer in reversed(layers):
        problems: list[ConfigProblem] = []
        for role in layer.settings.roles:
            for agent in settings.roles[role].agents:
                if agent not in settings.agents:
                    names = ", ".join(sorted(settings.agents)) or "none"
                    problem = f"unknown agent {agent!r}; known agents: {names}"
                    problems.append(layer.located.problem(("roles", role, "agent"), problem))
        if problems:
            raise ConfigInvalid(layer.located.file, problems)


def _check_database_url(environ: Mapping[str, str]) -> None:
    # Going on with SQLite would silently put the work somewhere else than was asked for.
    url = environ.get("PODIUM_DATABASE_URL", "")
    if url and not url.startswith(("postgresql://", "postgres://")):
        scheme = url.partition("://")[0] if "://" in url else "no scheme"
        raise BadInput(
            f"PODIUM_DATABASE_URL starts with {scheme!r}; set it to "
            "postgresql://USER:PASSWORD@HOST/DATABASE, or unset it to keep the record in .podium/"
        )


def trusted_settings(configuration: Configuration, key: str) -> Settings:
    """The settings of the strongest file whose `key` counts; the defaults where none does."""
    for layer in reversed(configuration.layers):
        mine = layer.name != "project" or configuration.project_is_trusted()
        if key in layer.located.data and mine:
            return layer.settings
    return Settings()


def project_steering(configuration: Configuration) -> dict[str, Json]:
    """The settings of the project's file for notices and chats, by key, as far as they need trust."""
    steering: dict[str, Json] = {}
    for layer in configuration.layers:
        if layer.name == "project":
            wished = layer.settings.model_dump(mode="json", exclude_defaults=True)
            steering = {key: wished[key] for key in ("notices", "chat") if key in wished}
    return steering


def untrusted_notice(configuration: Configuration, key: str) -> str:
    """The reason why a project's `key` has no effect; empty when it has one or there is none."""
    wished = any(
        layer.name == "project" and key in layer.located.data for layer in configuration.layers
    )
    if not wished or configuration.project_is_trusted():
        return ""
    return (
        f"`{key}` in {str(configuration.folders.project_file)!r} is ignored, because the file is not trusted as it "
        "is now; review it, then run `podium trust`"
    )
