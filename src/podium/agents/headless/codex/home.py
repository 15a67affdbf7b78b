"""Codex's private home: its settings, its hook and the trust in it, and who it is to its provider."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import ValidationError

from podium.agents.deps import AgentDeps, AgentOptions, problems_line
from podium.agents.headless.codex.errors import LOGS_ANSWERS
from podium.agents.headless.codex.hook import SPARED
from podium.agents.headless.codex.tools import TOOLBOX, McpOnlySetup, mcp_only_settings
from podium.agents.headless.home import CliLogin, Home, HomeFolders
from podium.agents.json_rpc import RpcError, RpcPeer
from podium.core.errors import BadInput, NotPossibleNow
from podium.core.model import FrozenModel, Json
from podium.core.turns import Turn, granted_names

CODEX_HOME = ".codex"
CONVERSATIONS = f"{CODEX_HOME}/sessions"
HOOK = Path(__file__).with_name("hook.py")
HOOK_SECONDS = 60
EVERY_TOOL = "*"
PROVIDER = "podium"
OPENAI_URL = "https://api.openai.com/v1"
MAX_SETTINGS_BYTES = 1_000_000

Sandbox = Literal["read-only", "workspace-write", "danger-full-access"]

_OFF = (
    # These reach out of the machine, or bring tools along that nobody asked for.
    "apps",
    "browser_use",
    "code_mode_host_grpc",
    "computer_use",
    "daemon_auto_start",
    "goals",
    "image_generation",
    "memories",
    "plugin_discovery_prefetch",
    "plugins",
    "remote_plugin",
    "skill_mcp_dependency_install",
    "skill_search",
    "sleep_tool",
    "tool_suggest",
    # Runs the person's shell start files to copy what they set.
    "shell_snapshot",
    # Tries for ever to reach a server that is down.
    "unbounded_connection_retries",
    # What is typed into a running terminal passes neither a hook nor an approval.
    "unified_exec_tty",
)
_SUBAGENTS = ("multi_agent", "multi_agent_v2")

_WALLS = (".agents", ".aws", ".codex", ".git")


class CodexOptions(FrozenModel):
    """The `options` of a codex agent in podium.yaml."""

    sandbox: Sandbox | None = None
    """Codex's own sandbox around commands. None: `workspace-write` where it works here, else none."""
    network: bool = False
    """Let commands inside that sandbox reach the network."""
    effort: str = ""
    """Reasoning effort of the model. Empty: its default."""
    key_variable: str = "OPENAI_API_KEY"
    """The variable of `env` that holds the provider's key."""
    hands: bool = True
    """False: it has no tools of its own, and Podium performs everything."""


def codex_options(options: AgentOptions) -> CodexOptions:
    """Raises `BadInput` for what a codex agent cannot be told."""
    try:
        return CodexOptions.model_validate(options.options)
    except ValidationError as error:
        raise BadInput(f"options of agent {options.name!r}: {problems_line(error)}") from None


def login(deps: AgentDeps) -> CliLogin:
    """The person's own login."""
    return login_in(_person_home(deps))


def login_in(person: Path) -> CliLogin:
    """The login that is kept in this folder of codex's."""
    fields = ("tokens.id_token", "tokens.access_token", "tokens.refresh_token", "last_refresh")
    return CliLogin(person / "auth.json", f"{CODEX_HOME}/auth.json", fields)


def lay_out(
    home: Home,
    deps: AgentDeps,
    options: AgentOptions,
    turn: Turn,
    sandbox: Sandbox,
    mcp_only: McpOnlySetup | None = None,
) -> Path:
    """Write settings and hook for this turn; gives the path of the hook file."""
    settings = settings_for(
        options,
        Path(turn.workspace),
        sandbox,
        _person_home(deps),
        granted=granted_names(turn.own_tools),
        zone=deps.environ.get("TZ", ""),
    )
    spared: tuple[str, ...] = ()
    if mcp_only is not None:
        models = home.write(f"{CODEX_HOME}/models.json", mcp_only.models)
        settings = mcp_only_settings(settings, mcp_only.server, models)
        spared = (f"{SPARED}{TOOLBOX}",)
    home.write(f"{CODEX_HOME}/config.toml", toml(settings))
    return lay_hook(home, hook_for((*spared, *deps.hook_command)))


def hook_for(hook_command: Iterable[str]) -> dict[str, Json]:
    """Our hook, as codex is told of it. It asks the hook command."""
    command = shlex.join((sys.executable, "-IS", str(HOOK), *hook_command))
    return {"type": "command", "command": command, "timeout": HOOK_SECONDS}


def lay_hook(home: HomeFolders, hook: dict[str, Json]) -> Path:
    """Write the file that puts a hook before every use of a tool; gives its path."""
    hooks: Json = {"hooks": {"PreToolUse": [{"matcher": EVERY_TOOL, "hooks": [hook]}]}}
    return home.write_json(f"{CODEX_HOME}/hooks.json", hooks)


def environment(home: Home, options: AgentOptions, door: Mapping[str, str]) -> dict[str, str]:
    own = {
        "CODEX_HOME": str(home.path / CODEX_HOME),
        "NO_COLOR": "1",
        "RUST_LOG": f"error,{LOGS_ANSWERS}=debug",
        "TZ": "UTC",  # the end of a limit is told in it, without naming it
    }
    return {**options.env, **home.env, **own, **door}


def settings_for(
    options: AgentOptions,
    workspace: Path,
    sandbox: Sandbox,
    person: Path,
    *,
    granted: Collection[str] = (),
    zone: str = "",
) -> dict[str, Any]:
    """Return codex's settings for its model, its own sandbox and everything that it may not do.

    `person` is the folder of the person's own codex, `granted` what of its own tools it may use, `zone` the time zone of
    its commands.
    """
    own = codex_options(options)
    return {
        **_brain(person, options, own),
        **({"model_reasoning_effort": own.effort} if own.effort else {}),
        "approval_policy": "on-request",
        "sandbox_mode": sandbox,
        "web_search": "live" if "web_search" in granted else "disabled",
        "allow_login_shell": False,  # it would run start files and lose the PATH
        "check_for_update_on_startup": False,
        "cli_auth_credentials_store": "file",
        "analytics": {"enabled": False},
        "features": {
            **dict.fromkeys(_OFF, False),
            **dict.fromkeys(_SUBAGENTS, "subagents" in granted),
        },
        # Those of the workspace are read all the same; so nothing is said of any.
        "skills": {"bundled": {"enabled": False}, "include_instructions": False},
        "sandbox_workspace_write": {
            "network_access": own.network,
            "writable_roots": _git_folders(workspace),
            "exclude_slash_tmp": True,  # commands have a TMPDIR of their own
        },
        "shell_environment_policy": _command_environment(zone, options, own),
        # An agent may plant settings in its workspace; those of a trusted folder would count.
        "projects": trust_in(workspace, "untrusted"),
    }


def trust_in(workspace: Path, level: Literal["trusted", "untrusted"]) -> dict[str, Any]:
    """The trust of codex in a workspace, by every name under which it may know it."""
    return {folder: {"trust_level": level} for folder in _roots(workspace)}


def _brain(person: Path, options: AgentOptions, own: CodexOptions) -> dict[str, Any]:
    """Return the settings for model and provider: the one named, else the person's own."""
    model = {"model": options.model} if options.model else {}
    if not options.base_url and own.key_variable not in options.env:
        return {**_person_brain(person), **model}
    provider = {
        "name": PROVIDER,
        "base_url": _with_path(options.base_url) or OPENAI_URL,
        "wire_api": "responses",
        "request_max_retries": 0,  # it would wait without a word
        "stream_max_retries": 2,
        **({"env_key": own.key_variable} if own.key_variable in options.env else {}),
    }
    return {**model, "model_provider": PROVIDER, "model_providers": {PROVIDER: provider}}


def _with_path(url: str) -> str:
    """Add `/v1` to the address of an OpenAI server, unless another path is named."""
    return f"{url.rstrip('/')}/v1" if url and not urlsplit(url).path.strip("/") else url


def _person_brain(person: Path) -> dict[str, Any]:
    """Model and provider of the person's own settings; the rest of them stays at home."""
    try:
        with (person / "config.toml").open("rb") as file:
            theirs = tomllib.loads(file.read(MAX_SETTINGS_BYTES).decode(errors="replace"))
    except (OSError, ValueError):
        return {}
    names = (
        "model",
        "model_provider",
        "model_providers",
        "model_reasoning_effort",
        "openai_base_url",
    )
    return {name: theirs[name] for name in names if name in theirs}


def _person_home(deps: AgentDeps) -> Path:
    configured = deps.environ.get("CODEX_HOME")
    return Path(configured) if configured else deps.user_home / CODEX_HOME


def _command_environment(zone: str, options: AgentOptions, own: CodexOptions) -> dict[str, Any]:
    """Return the policy for the variables of commands: neither keys nor the way to the tool door."""
    secret = [name for name, value in options.env.items() if value.startswith("secret://")]
    return {
        "inherit": "all",
        "ignore_default_excludes": False,
        "exclude": ["PODIUM_*", "CODEX_HOME", "RUST_LOG", "TZ", own.key_variable, *secret],
        "set": {"TZ": zone} if zone else {},
    }


def _git_folders(workspace: Path) -> list[str]:
    """Return the folders that a commit writes to. Codex holds `.git` read-only otherwise, and every commit fails."""
    git = workspace / ".git"
    if git.is_dir():
        return [str(git)]
    linked = _linked_folder(git)
    return [str(linked), str(linked.parent.parent)] if linked is not None else []


@contextmanager
def without_leftovers(workspace: Path) -> Iterator[None]:
    """Remove the empty folders that codex's sandbox puts up as walls and leaves when it is killed."""
    roots = [workspace, *map(Path, _git_folders(workspace))]
    walls = [root / name for root in roots for name in _WALLS]
    new = [wall for wall in walls if not os.path.lexists(wall)]
    try:
        yield
    finally:
        for wall in new:
            with suppress(OSError):
                wall.rmdir()


def _roots(workspace: Path) -> list[str]:
    """The folders by which codex may know the project: the workspace, and the repository it belongs to."""
    real = workspace.resolve()
    folders = {str(workspace), str(real), *(str(parent) for parent in _repositories(real))}
    linked = _linked_folder(real / ".git")
    if linked is not None:
        folders.add(str(linked.parent.parent.parent))
    return sorted(folders)


def _repositories(folder: Path) -> list[Path]:
    # Not `Path.exists`: it raises for a folder that may not be looked into.
    return [parent for parent in folder.parents if os.path.exists(parent / ".git")]  # noqa: PTH110 — as above


def _linked_folder(git: Path) -> Path | None:
    """The folder of a linked worktree, such as `…/.git/worktrees/name`; None when it is none."""
    try:
        text = git.read_text(errors="replace")[:4096] if git.is_file() else ""
    except OSError:
        return None
    target = text.removeprefix("gitdir:").strip()
    if not text.startswith("gitdir:") or not target:
        return None
    folder = (git.parent / target).resolve()
    return folder if folder.parent.name == "worktrees" else None


def toml(table: Mapping[str, Any]) -> str:
    """A table as TOML: plain values first, then one inline table a line."""
    return "".join(f"{_text(name)} = {_value(value)}\n" for name, value in table.items())


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return _text(str(value))


def _text(text: str) -> str:
    """A TOML string: JSON's, but without its pairs of surrogates, and with DEL escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


async def trust_hook(peer: RpcPeer, workspace: str, hooks: str, agent: str) -> None:
    """Make the very process that is about to work trust our hook, and see that it does.

    Raises `NotPossibleNow` when it does not: nothing would come before the gate then.
    """
    try:
        hook = await _our_hook(peer, workspace, hooks)
        if hook is not None and hook.get("trustStatus") != "trusted":
            await peer.call("config/batchWrite", _trusting(hook))
            hook = await _our_hook(peer, workspace, hooks)
    except RpcError as error:
        raise _useless(agent, str(error)) from None
    if hook is None:
        raise _useless(agent, "codex did not load the hook")
    if hook.get("trustStatus") != "trusted" or hook.get("enabled") is not True:
        raise _useless(agent, f"codex reports the hook as {hook.get('trustStatus')!r}")


def trusting_hook(hooks: Path, matcher: str, hook: Mapping[str, Json]) -> dict[str, Any]:
    """Settings by which codex trusts the one hook of this file from its start on.

    For where nobody can ask it first. Codex knows a hook by a digest of what it is. On a terminal it asks what to do
    about one that it knows otherwise, so a codex that reckons in another way does not go on without the hook.
    """
    identity = {
        "event_name": "pre_tool_use",
        "matcher": matcher,
        "hooks": [{**hook, "async": False}],
    }
    serialized = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    trusted = {"trusted_hash": f"sha256:{hashlib.sha256(serialized.encode()).hexdigest()}"}
    names = dict.fromkeys((hooks, hooks.resolve()))
    return {"state": {f"{name}:pre_tool_use:0:0": trusted for name in names}}


async def _our_hook(peer: RpcPeer, workspace: str, hooks: str) -> dict[str, Any] | None:
    """The hook before the use of tools, as codex has read it; None when that is not as we wrote it."""
    listed: Any = await peer.call("hooks/list", {"cwds": [workspace]})
    entries = listed.get("data") if isinstance(listed, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        listed_here = entry.get("hooks") if isinstance(entry, dict) else None
        for hook in listed_here if isinstance(listed_here, list) else []:
            if isinstance(hook, dict) and _is_ours(hook, hooks):
                return hook
    return None


def _is_ours(hook: dict[str, Any], hooks: str) -> bool:
    return (
        hook.get("sourcePath") == hooks
        and hook.get("eventName") == "preToolUse"
        and hook.get("handlerType") == "command"
        and hook.get("matcher") == "*"
        and not hook.get("async")
    )


def _trusting(hook: dict[str, Any]) -> dict[str, Any]:
    trusted = {str(hook.get("key")): {"trusted_hash": hook.get("currentHash")}}
    edit = {"keyPath": "hooks.state", "value": trusted, "mergeStrategy": "upsert"}
    return {"edits": [edit], "reloadUserConfig": True}


def _useless(agent: str, why: str) -> NotPossibleNow:
    return NotPossibleNow(
        f"agent {agent!r} was not asked: its tool calls would bypass the gate ({why}); "
        "use the version of codex that Podium was tested with"
    )


MAX_POINTER = 4096


def refuse_foreign_git(agent: str, workspace: Path) -> None:
    """Raise `NotPossibleNow` when `.git` leads to a repository that does not know this workspace.

    Commits need `.git` to be writable inside of codex's sandbox. An agent may plant a file there that
    names any other repository, whose hooks and settings could then be written.
    """
    git = workspace / ".git"
    if not git.is_symlink() and not git.is_file():
        return
    target = _target(git)
    if target is None or _is_inside(target, workspace) or _is_linked_worktree(target, git):
        return
    raise NotPossibleNow(
        f"agent {agent!r} cannot work in {str(workspace)!r}: its .git points to {str(target)!r}, "
        "which does not know it as a worktree, and codex could write there; if the worktree was moved, "
        "run `git worktree repair`, otherwise use another agent"
    )


def _target(git: Path) -> Path | None:
    """Return where it leads; None for a file that says nothing of the kind, which nobody follows."""
    try:
        if git.is_symlink():
            return git.resolve()
        text = _read(git)
        if not text.startswith("gitdir:"):
            return None
        return (git.parent / text.removeprefix("gitdir:").strip()).resolve()
    except (OSError, ValueError, RuntimeError):  # the last for links in a circle
        return git


def _is_inside(target: Path, workspace: Path) -> bool:
    return target.is_relative_to(workspace.resolve())


def _is_linked_worktree(folder: Path, git: Path) -> bool:
    """Return whether the repository there names this very workspace as one of its own."""
    if folder.parent.name != "worktrees":
        return False
    try:
        named = _read(folder / "gitdir").strip()
        return bool(named) and (folder / named).resolve() == git.parent.resolve() / ".git"
    except (OSError, ValueError, RuntimeError):
        return False


def _read(file: Path) -> str:
    with file.open(errors="replace") as opened:
        return opened.read(MAX_POINTER)
