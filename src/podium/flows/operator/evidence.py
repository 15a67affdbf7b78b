"""What a tool needs, what is there for it, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podium.domain.model import Json
from podium.domain.operating import Message, Wish
from podium.domain.packs import Pack, PackTool, Skill


def with_context(wish: Wish, pack: Pack, message: Message) -> Wish:
    """The wish with what the context says under the names of its arguments. The context wins."""
    properties = _properties(pack.tool(wish.tool) or pack.skill(wish.tool))
    given = {name: message.context[name] for name in properties if name in message.context}
    if not given:
        return wish
    marks = tuple(each for each in wish.ungrounded if each.field not in given)
    return wish.model_copy(update={"arguments": {**wish.arguments, **given}, "ungrounded": marks})


def required_of(wishes: Sequence[Wish], pack: Pack) -> tuple[str, ...]:
    """Every field that the wishes need, once each, in order."""
    found: dict[str, None] = {}
    for wish in wishes:
        entry = pack.tool(wish.tool) or pack.skill(wish.tool)
        for name in _required(entry):
            found[name] = None
    return tuple(found)


def missing_of(wishes: Sequence[Wish], pack: Pack, message: Message) -> tuple[str, ...]:
    """What nobody gave: neither the words, nor the context, nor a tool that comes before."""
    tools = {wish.tool for wish in wishes}
    found: dict[str, None] = {}
    for wish in wishes:
        for name in _lacking(wish, pack, message, tools):
            found[name] = None
    return tuple(found)


def _lacking(wish: Wish, pack: Pack, message: Message, tools: set[str]) -> Iterator[str]:
    tool, skill = pack.tool(wish.tool), pack.skill(wish.tool)
    if skill is not None:
        yield from (name for name in skill.needs_context if name not in message.context)
    filled = _filled(tool, tools) if tool else set()
    for name in _required(tool or skill):
        if name not in wish.arguments and name not in filled:
            yield name
    choice = _one_of(tool or skill)
    if choice and not any(name in wish.arguments or name in filled for name in choice):
        yield " or ".join(choice)


def _filled(tool: PackTool, tools: set[str]) -> set[str]:
    """Arguments that the results of other tools of the plan will give."""
    return {name for each in tool.depends_on if each.tool in tools for name in each.fills}


def _required(entry: PackTool | Skill | None) -> tuple[str, ...]:
    return () if entry is None else tuple(entry.input_schema.get("required", ()))


def _one_of(entry: PackTool | Skill | None) -> tuple[str, ...]:
    """Fields of which the schema wants at least one: `anyOf` over single required names."""
    branches = entry.input_schema.get("anyOf", ()) if entry else ()
    found = [branch.get("required", ()) for branch in branches if isinstance(branch, dict)]
    return tuple(names[0] for names in found if len(names) == 1)


def _properties(entry: PackTool | Skill | None) -> dict[str, Json]:
    found: dict[str, Json] = {} if entry is None else entry.input_schema.get("properties", {})
    return found
