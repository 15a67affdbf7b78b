"""Codex's trust in our hook, and what of a workspace would let its commands write outside of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from podium.agents.json_rpc import RpcError, RpcPeer
from podium.core.errors import NotPossibleNow
from podium.core.model import Json


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
        raise _useless(agent, "codex does not know the hook")
    if hook.get("trustStatus") != "trusted" or hook.get("enabled") is not True:
        raise _useless(agent, f"codex calls the hook {hook.get('trustStatus')!r}")


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
        f"agent {agent!r} was not asked: its tool calls would not come before the gate ({why}); "
        "use the version of codex that Podium was tried with"
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
        f"agent {agent!r} cannot work in {str(workspace)!r}: its .git leads to {str(target)!r}, "
        "which is no worktree of it, and codex could write there; `git worktree repair` mends a "
        "worktree that was moved, and else let another agent do it"
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
