"""opencode's private home (settings and our plugin), its tools, and what it would obey in a workspace all the same.

OPENCODE_DISABLE_PROJECT_CONFIG keeps its settings, agents and MCP servers out. A second reader of
the same files does not know that switch: it loads plugins and clones references from them before
the first word of a turn. So a turn does not begin in a workspace that has any.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, ValidationError

from podium.agents.deps import AgentDeps, AgentOptions, option_problems
from podium.agents.headless.home import CliLogin, Home
from podium.agents.headless.own_tools import change_text, whole_edit
from podium.core.errors import BadInput, ConfigInvalid, NotPossibleNow
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.turns import Turn, granted_names

Arguments = dict[str, Json]
Translated = tuple[str, Arguments]

GRANTS = {
    "webfetch": ("web_fetch",),
    "websearch": ("web_search",),
    "codesearch": ("web_search", "codesearch"),
    "task": ("subagents", "ask_subagent"),
    "skill": ("skill",),
    "lsp": (),
}
"""opencode's name of a permission → the words by which a role's `own_tools` grants it."""

SEARCHES = (
    "OPENCODE_ENABLE_EXA",
    "OPENCODE_EXPERIMENTAL_EXA",
    "OPENCODE_ENABLE_PARALLEL",
    "OPENCODE_EXPERIMENTAL_PARALLEL",
    "OPENCODE_EXPERIMENTAL",
)
"""Variables that let it search the web. Without them it does so for its maker's own models alone."""


def permission_for(turn: Turn) -> Arguments:
    """Return what opencode itself lets through to the door: files and shell, and the role's grants."""
    granted = granted_names(turn.own_tools)
    own = {name: "allow" if granted & set(grants) else "deny" for name, grants in GRANTS.items()}
    # Nobody is there to be asked, and paths outside the workspace are the gate's to judge.
    return {
        "*": "allow",
        "external_directory": "allow",
        "doom_loop": "allow",
        "question": "deny",
        "plan_enter": "deny",
        "plan_exit": "deny",
        **own,
    }


def grantable_tools(options: AgentOptions) -> tuple[str, ...]:
    """Return what a role can be granted with these settings."""
    its_own = options.model.startswith("opencode/") and not options.base_url
    searches = its_own or any(options.env.get(name) for name in SEARCHES)
    search = ("web_search", "codesearch") if searches else ()
    return (*GRANTS["webfetch"], *GRANTS["task"], *GRANTS["skill"], *search)


def translate(tool: str, arguments: Arguments) -> Translated:
    """Return a call of opencode as a registered tool. An unknown one is an `own_tool`."""
    translation = _TRANSLATIONS.get(tool)
    if translation is None:
        return "own_tool", {"name": tool, "arguments": arguments}
    return translation(arguments)


def _bash(arguments: Arguments) -> Translated:
    command: Arguments = {"command": arguments.get("command")}
    if arguments.get("workdir"):
        command["cwd"] = arguments["workdir"]
    return "run_command", command


def _edit(arguments: Arguments) -> Translated:
    judged = ("filePath", "oldString", "newString")
    more = {name: value for name, value in arguments.items() if name not in judged}
    change = change_text(arguments.get("oldString"), arguments.get("newString"), more)
    return "edit_file", {"path": arguments.get("filePath"), "change": change}


def _patch(arguments: Arguments) -> Translated:
    if arguments.get("kind") == "delete":
        return "delete_file", {"path": arguments.get("path")}
    change = whole_edit(str(arguments.get("change", "")))
    return "edit_file", {"path": arguments.get("path"), "change": change}


def _search(arguments: Arguments) -> Translated:
    query = {"pattern": arguments.get("pattern"), "path": _folder(arguments)}
    named = arguments.get("include")
    return "search_text", {**query, "glob": named} if named else query


def _task(arguments: Arguments) -> Translated:
    name, task = arguments.get("subagent_type"), arguments.get("prompt")
    return "ask_subagent", {"name": name, "task": task}


def _notes(arguments: Arguments) -> Translated:
    return "keep_notes", {"text": whole_edit(json.dumps(arguments))}


def _listing(arguments: Arguments) -> Translated:
    return "list_files", {"path": _folder(arguments)}


def _folder(arguments: Arguments) -> Json:
    return arguments.get("path") or "."


_TRANSLATIONS: dict[str, Callable[[Arguments], Translated]] = {
    "bash": _bash,
    "read": lambda arguments: ("read_file", {"path": arguments.get("filePath")}),
    "write": lambda arguments: (
        "write_file",
        {"path": arguments.get("filePath"), "content": arguments.get("content")},
    ),
    "edit": _edit,
    "apply_patch": _patch,
    "glob": _listing,
    "list": _listing,
    "grep": _search,
    "webfetch": lambda arguments: ("web_fetch", {"url": arguments.get("url")}),
    "websearch": lambda arguments: ("web_search", {"query": arguments.get("query")}),
    "codesearch": lambda arguments: ("web_search", {"query": arguments.get("query")}),
    "task": _task,
    "todowrite": _notes,
    "todoread": _notes,
    # Where a call of the model that fits no tool ends up; it only says so.
    "invalid": _notes,
}


CONVERSATIONS = "conversations"
"""Folder of its database: the one thing that outlives a turn."""
CONFIG = ".config/opencode"
PROVIDER = "podium"
"""Its name for a model server that `base_url` names."""
AUTH = ".local/share/opencode/auth.json"
REFRESHED = tuple(
    f"{provider}.{token}"
    for provider in ("anthropic", "github-copilot", "openai")
    for token in ("access", "refresh", "expires")
)
PLUGIN_SOURCE = Path(__file__).with_name("door.js")
PLUGIN_PACKAGE = "@opencode-ai/plugin"
ANSWER_SECONDS = 35.0
"""The hook client's own deadline; the door answers within 30."""

SWITCHES = {
    # Without this a workspace's opencode.json, .opencode/ and plugins in it would be obeyed.
    "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
    "OPENCODE_DISABLE_CLAUDE_CODE": "1",
    "OPENCODE_DISABLE_EXTERNAL_SKILLS": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_SHARE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
}


class OpencodeOptions(FrozenModel):
    """Options of an opencode agent in podium.yaml."""

    key_variable: NonEmpty = "OPENAI_API_KEY"
    """With `base_url`: the variable of `env` that holds the key of that server."""
    retries: int = Field(default=2, ge=0, le=100)
    """Times it may try a request again. By itself it never stops."""
    longest_wait_seconds: float = Field(default=15.0, gt=0, allow_inf_nan=False)
    """A longer wait for the next try ends the turn."""
    silence_seconds: float = Field(default=300.0, gt=0, allow_inf_nan=False)
    """Seconds the model may say nothing while no tool is at work."""


def own_options(options: AgentOptions) -> OpencodeOptions:
    """Checked. Raises `ConfigInvalid`, and `BadInput` for a server without a model."""
    if options.base_url and not options.model:
        raise BadInput(f"agent {options.name!r} has a base_url but no model; set `model` for it")
    try:
        return OpencodeOptions.model_validate(options.options)
    except ValidationError as error:
        raise ConfigInvalid(f"options of agent {options.name!r}", option_problems(error)) from None


def login_of(options: AgentOptions, deps: AgentDeps) -> tuple[CliLogin, ...]:
    """The person's own login, where the model is not one of a server that was named."""
    if options.base_url:
        return ()
    data = deps.environ.get("XDG_DATA_HOME") or str(deps.user_home / ".local/share")
    return (CliLogin(Path(data) / "opencode/auth.json", AUTH, REFRESHED),)


def lay_out(
    home: Home,
    turn: Turn,
    options: AgentOptions,
    own: OpencodeOptions,
    deps: AgentDeps,
    door: Mapping[str, str],
    version: str,
) -> None:
    """Write settings and plugin of this turn. Nothing older is left."""
    plugin = home.write("door.js", PLUGIN_SOURCE.read_text())
    home.write_json("door.json", _door_settings(turn, options, own, deps, door))
    home.write_json(f"{CONFIG}/opencode.json", settings_for(turn, options, own, plugin))
    # It would install this package from npm before it loads a plugin; so it takes it for installed.
    needs = {"dependencies": {PLUGIN_PACKAGE: version}}
    home.write_json(f"{CONFIG}/package.json", needs)
    home.write_json(f"{CONFIG}/package-lock.json", {"packages": {"": needs}})
    (home.path / CONFIG / "node_modules").mkdir(exist_ok=True)
    (home.path / CONVERSATIONS).mkdir(mode=0o700, exist_ok=True)


def settings_for(turn: Turn, options: AgentOptions, own: OpencodeOptions, plugin: Path) -> Json:
    settings: dict[str, Json] = {
        # Lifted by the plugin: without it there are no tools.
        "permission": {"*": "deny"},
        "plugin": [plugin.as_uri()],
        "share": "disabled",
        "autoupdate": False,
        "snapshot": False,
        # Both would run programs of the workspace without asking.
        "formatter": False,
        "lsp": False,
        "instructions": _instructions(turn.workspace),
    }
    if options.base_url:
        settings["enabled_providers"] = [PROVIDER]
        settings["provider"] = {PROVIDER: _provider(options, own)}
    if model := model_of(options):
        settings.update({"model": model, "small_model": model})
    return settings


def model_of(options: AgentOptions) -> str:
    return f"{PROVIDER}/{options.model}" if options.base_url else options.model


def environment_for(
    options: AgentOptions, home: Home, identity: Mapping[str, str]
) -> dict[str, str]:
    return {
        **options.env,
        **identity,
        **home.env,
        **SWITCHES,
        "OPENCODE_DB": str(home.path / CONVERSATIONS / "opencode.db"),
    }


def _provider(options: AgentOptions, own: OpencodeOptions) -> Json:
    has_key = own.key_variable in options.env
    return {
        "npm": "@ai-sdk/openai-compatible",
        "name": PROVIDER,
        "options": {
            "baseURL": _with_path(options.base_url),
            "apiKey": f"{{env:{own.key_variable}}}" if has_key else "none",
        },
        "models": {options.model: {"name": options.model}},
    }


def _with_path(url: str) -> str:
    """Servers that speak OpenAI's protocol do so below `/v1` unless told otherwise."""
    plain = url.rstrip("/")
    return plain if urlsplit(plain).path else f"{plain}/v1"


def _door_settings(
    turn: Turn,
    options: AgentOptions,
    own: OpencodeOptions,
    deps: AgentDeps,
    door: Mapping[str, str],
) -> Json:
    return {
        "command": list(deps.hook_command),
        "env": {**door, "PODIUM_DOOR_DEADLINE": str(ANSWER_SECONDS)},
        "seconds": ANSWER_SECONDS + 5,
        "permission": permission_for(turn),
        "hidden": _hidden(options, own),
    }


def _hidden(options: AgentOptions, own: OpencodeOptions) -> list[str]:
    """Variables that commands do not see: secrets, once the settings have taken over the key.

    Without `base_url` nobody can tell which of them opencode will want, and when.
    """
    if not options.base_url:
        return []
    secret = {name for name, value in options.env.items() if value.startswith("secret://")}
    return sorted(secret | {own.key_variable})


def _instructions(workspace: str) -> list[str]:
    """Return a project's instructions for agents: text, and the one thing of it that is still read."""
    file = Path(workspace) / "AGENTS.md"
    return [str(file)] if file.is_file() and not file.is_symlink() else []


DOCUMENTS = (
    "opencode.json",
    "opencode.jsonc",
    ".opencode/opencode.json",
    ".opencode/opencode.jsonc",
)
CODE = (".opencode/plugin", ".opencode/plugins")
MAX_BYTES = 1_000_000

HARMLESS = frozenset(
    {
        "$schema", "agent", "autoshare", "autoupdate", "command", "compaction", "default_agent",
        "disabled_providers", "enabled_providers", "formatter", "instructions", "keybinds",
        "layout", "logLevel", "lsp", "mcp", "mode", "model", "permission", "provider", "server",
        "share", "small_model", "snapshot", "theme", "tools", "tui", "username", "watcher",
    }
)  # fmt: skip
"""Keys that the switch takes all effect from."""


def refuse_what_it_would_obey(agent: str, workspace: Path) -> None:
    """Raise `NotPossibleNow` when opencode would run something of the workspace unasked."""
    # It looks upwards as far as the repository's root, and without a repository as far as it goes.
    for folder in (workspace.resolve(), *workspace.resolve().parents):
        for path, problem in _obeyed_files(folder):
            raise NotPossibleNow(
                f"agent {agent!r} cannot work in {str(workspace)!r}: opencode would apply "
                f"{str(path)!r} before it asks Podium ({problem}); remove it, or use another agent"
            )


def _obeyed_files(folder: Path) -> Iterator[tuple[Path, str]]:
    for name in CODE:
        path = folder / name
        if _has_entries(path):
            yield path, "it holds plugins"
    for name in DOCUMENTS:
        path = folder / name
        if problem := _problem_of(path):
            yield path, problem


def _has_entries(folder: Path) -> bool:
    try:
        return next(folder.iterdir(), None) is not None
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _problem_of(document: Path) -> str:
    """Return what in it would have an effect; empty when nothing has, or it is not there."""
    try:
        # Looked at before it is opened: opening a pipe would wait for whoever writes to it.
        if not stat.S_ISREG(document.stat().st_mode):
            return "it is not a regular file"
        with document.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if len(content) > MAX_BYTES:
        return "it is too large to be checked"
    try:
        settings = json.loads(content)
    except (ValueError, RecursionError):
        return "it is not plain JSON and cannot be checked"
    if not isinstance(settings, dict):
        return ""
    others = sorted(set(settings) - HARMLESS)
    return f"it sets {', '.join(map(repr, others[:5]))}" if others else ""
