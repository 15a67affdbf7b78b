"""What agents have of their own beyond files and shell, by the words that roles grant it with."""

from __future__ import annotations

from collections.abc import Iterable

WORDS: dict[str, tuple[str, ...]] = {
    "web_search": ("google_web_search", "WebSearch", "websearch"),
    "web_fetch": ("WebFetch", "webfetch"),
    "subagents": ("codebase_investigator", "generalist", "invoke_agent", "Task", "Agent", "task"),
}
"""The word that means the same for every agent → what single ones call it."""

GRANTED_AS = {
    "web_search": "web_search",
    "web_fetch": "web_fetch",
    "ask_subagent": "subagents",
    "own_tool": "own_tool",
}
"""Registered tools that a role must grant → the word for it."""

_WORD_OF = {name: word for word, names in WORDS.items() for name in names}


def granted_words(own_tools: Iterable[str] | None) -> frozenset[str]:
    """What a role grants: the names as it has them, and the common word for each."""
    names = tuple(own_tools or ())
    return frozenset((*names, *(_WORD_OF.get(name, name) for name in names)))


def unknown_words(own_tools: Iterable[str] | None, known: Iterable[str]) -> tuple[str, ...]:
    """Names of a role that mean nothing to an agent that knows only these, by whatever word."""
    there = frozenset((*known, *(_WORD_OF.get(name, name) for name in known)))
    return tuple(name for name in own_tools or () if not granted_words((name,)) & there)
