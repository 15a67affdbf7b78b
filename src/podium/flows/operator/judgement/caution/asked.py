"""Whether the words of a message ask for each act that would need an approval."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from podium.domain.gating import Tier
from podium.domain.operating import Wish
from podium.domain.packs import PackTool, Skill
from podium.domain.packs_table import most_specific
from podium.flows.operator.judgement.caution.roots import names_one, roots_of, words_in
from podium.flows.operator.judgement.caution.said import Said
from podium.flows.operator.judgement.tiers import tools_of

_EDGES = " .!?"
_NAMED_PARTS = 2
"""So many steps of a skill, asked for one by one, are asked for instead of the whole."""


def not_asked_for(said: Said) -> str:
    """Asks about an act that needs an approval and of which no word of the message speaks.

    A T2 act that is all a message is read as is left to the approval: its verb may be one that only
    the classifier knows.
    """
    if question := _nothing_but_text(said):
        return question
    for wish in said.wishes:
        single = len(said.wishes) == 1 and isinstance(said.entry(wish), PackTool)
        checked = said.tier_of(wish) >= (Tier.T3 if single else Tier.T2)
        if checked and (unasked := next(_unasked(said, wish), None)):
            what = unasked.description.split(". ")[0].split(":")[0].rstrip(".")
            return f"No word asks for it plainly: should {unasked.name} be done ({what})?"
    return ""


def _nothing_but_text(said: Said) -> str:
    """`I want to make a note`: the words that ask are the text themselves."""
    for given in said.all_given:
        text = given.value if given.kind == "text" and said.changes else None
        if isinstance(text, str) and text.strip(_EDGES).lower() == said.lower.strip(_EDGES):
            return f"What is the {given.name.replace('_', ' ')}?"
    return ""


def _unasked(said: Said, wish: Wish) -> Iterator[PackTool | Skill]:
    entry = said.entry(wish)
    if isinstance(entry, PackTool):
        if entry.name not in said.text and not _speaks_of(said, entry):
            yield entry
        return
    steps = tools_of(wish, said.pack)
    named = [tool.name for tool in steps if _speaks_of(said, tool)]
    if len(named) >= _NAMED_PARTS:
        rest = (tool for tool in steps if tool.name not in named)
        yield from (tool for tool in rest if said.tier_of_tool(tool) >= Tier.T2)


def _speaks_of(said: Said, tool: PackTool) -> bool:
    return names_one(said.spoken_roots, acts_of(said, tool)) or any(
        words and words <= said.spoken_words for words in map(words_in, _phrases(tool))
    )


def act_words(said: Said, wish: Wish) -> frozenset[str]:
    """Roots of the words that ask for what a wish does."""
    entry = said.entry(wish)
    return acts_of(said, entry) if entry else frozenset()


def phrases_of(said: Said, wish: Wish) -> tuple[str, ...]:
    """All that the registry gives as ways to ask for it, in lower case."""
    entry = said.entry(wish)
    return _phrases(entry) if entry else ()


def acts_of(said: Said, entry: PackTool | Skill) -> frozenset[str]:
    """Roots of the registry's own words for it, without those for the things it is done to."""
    taken = _things_taken(entry)
    return _acts(entry.name, _phrases(entry), taken, _other_things(said, entry, taken))


@lru_cache(maxsize=2048)
def _acts(
    name: str, phrases: tuple[str, ...], taken: tuple[str, ...], things: tuple[str, ...]
) -> frozenset[str]:
    verb = roots_of(name.replace(".", " ").replace("_", " "))
    own = frozenset().union(*map(roots_of, phrases))
    return ((own - frozenset().union(*map(roots_of, things))) | verb) - roots_of(" ".join(taken))


def _phrases(entry: PackTool | Skill) -> tuple[str, ...]:
    said = (*entry.synonyms, *(example.say for example in entry.examples))
    return tuple(each.lower() for each in said)


def _things_taken(entry: PackTool | Skill) -> tuple[str, ...]:
    properties = entry.input_schema.get("properties", {}).values()
    kinds = (str(each.get("x-kind", "")) for each in properties)
    return tuple(kind.removeprefix("id:") for kind in kinds if kind.startswith("id:"))


def _other_things(said: Said, entry: PackTool | Skill, taken: tuple[str, ...]) -> tuple[str, ...]:
    """Words for the things of all domains; of its own only when it is done to one: `invoice job 12`."""
    row = most_specific(said.pack.registry, entry.name)
    own = entry.domain or (row.name if row else "")
    rows = (each for each in said.pack.registry.domains if each.name != own or own in taken)
    return tuple(word for each in rows for word in (each.name, *each.words))
