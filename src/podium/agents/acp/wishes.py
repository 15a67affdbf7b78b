"""What an ACP agent asks permission for, as calls that the gate knows how to judge."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from podium.agents.headless.changes import change_in_words
from podium.agents.headless.edits import whole_edit
from podium.domain.model import Json

ACTING = frozenset({"execute", "edit", "delete", "move"})
"""Kinds of tool calls that change something."""

_NAMING_FILES = ("glob", "include", "include_pattern")


class Wish(NamedTuple):
    """A registered tool and its arguments."""

    tool: str
    arguments: dict[str, Json]


def wishes_of(call: Mapping[str, Json]) -> list[Wish]:
    """Everything that saying yes to this tool call would allow. Never empty."""
    kind, title = call.get("kind"), title_of(call)
    given = _mapping(call.get("rawInput"))
    places = list(_places(call))
    if kind == "execute":
        return [Wish("run_command", _command(given, title))]
    if kind == "edit" and (changes := [*_changes(call)] or _edits(places, title, given)):
        return changes
    if kind == "delete" and places:
        return [Wish("delete_file", {"path": place}) for place in places]
    if kind == "read" and places:
        return [Wish("read_file", {"path": place}) for place in places]
    if kind == "search":
        return [_search(given, title, place) for place in places or ["."]]
    if kind == "fetch":
        return [Wish("web_fetch", {"url": str(given.get("url") or title)})]
    if kind == "think":
        return [Wish("keep_notes", {"text": title})]
    return [Wish("own_tool", {"name": title or str(kind), "arguments": dict(given)})]


def title_of(call: Mapping[str, Json]) -> str:
    title = call.get("title")
    return title if isinstance(title, str) else ""


def changed_paths(call: Mapping[str, Json]) -> set[str]:
    """The files that a call says it changes."""
    return {str(wish.arguments["path"]) for wish in _changes(call)}


def _command(given: Mapping[str, Json], title: str) -> dict[str, Json]:
    """The command itself where it is told apart from its title, which may be set in backticks."""
    found = given.get("command")
    words = isinstance(found, list) and found and all(isinstance(word, str) for word in found)
    command = found if words or (isinstance(found, str) and found) else _unquoted(title)
    cwd = given.get("cwd")
    return {"command": command, **({"cwd": cwd} if isinstance(cwd, str) and cwd else {})}


def _search(given: Mapping[str, Json], title: str, place: str) -> Wish:
    """The protocol has no place for the files that a search names; agents have words for it."""
    named = next((given[name] for name in _NAMING_FILES if isinstance(given.get(name), str)), "")
    wish: dict[str, Json] = {"pattern": title, "path": place}
    return Wish("search_text", {**wish, "glob": named} if named else wish)


def _unquoted(title: str) -> str:
    quoted = len(title) > 2 and title[0] == title[-1] == "`" and "`" not in title[1:-1]
    return title[1:-1] if quoted else title


def _changes(call: Mapping[str, Json]) -> Iterator[Wish]:
    content = call.get("content")
    for item in content if isinstance(content, list) else []:
        if isinstance(item, dict) and item.get("type") == "diff":
            change = change_in_words(item.get("oldText"), item.get("newText"))
            yield Wish("edit_file", {"path": str(item.get("path") or ""), "change": change})


def _edits(places: list[str], title: str, given: Mapping[str, Json]) -> list[Wish]:
    """Without a diff: what is called the edit, and all that it was told."""
    told = [title, json.dumps(given, sort_keys=True)] if given else [title]
    change = whole_edit("\n".join(told))
    return [Wish("edit_file", {"path": place, "change": change}) for place in places]


def _places(call: Mapping[str, Json]) -> Iterator[str]:
    locations = call.get("locations")
    for location in locations if isinstance(locations, list) else []:
        path = _mapping(location).get("path")
        if isinstance(path, str) and path:
            yield path


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}
