"""The classifier that needs no model: it reads messages with what the registry says of its tools."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

from podium.domain.gating import Usage
from podium.domain.operating import Intent, Message, Reading, Wish
from podium.domain.packs import Pack
from podium.flows.operator.judgement.caution import look_again
from podium.flows.operator.judgement.embedded.clauses import MOST_CLAUSES, clauses_of
from podium.flows.operator.judgement.embedded.confidence import FAINTEST, OPEN
from podium.flows.operator.judgement.embedded.courtesy import without_courtesy
from podium.flows.operator.judgement.embedded.extractor import Extractor
from podium.flows.operator.judgement.embedded.index import Index, index_of
from podium.flows.operator.judgement.embedded.lexicon import VAGUE
from podium.flows.operator.judgement.embedded.marking import marked
from podium.flows.operator.judgement.embedded.moods import COURTESY, commanded
from podium.flows.operator.judgement.embedded.scoring import Fit
from podium.flows.operator.judgement.embedded.tails import with_tails
from podium.flows.operator.judgement.embedded.understanding import DOTTED, Reader, Understood
from podium.flows.operator.judgement.embedded.urgency import urgency_of
from podium.flows.operator.judgement.embedded.wishing import Wisher
from podium.flows.operator.judgement.embedded.words import FUNCTION_WORDS, clean, word_set, words_of

BY_VERB = 0.6
"""As sure as one is of a tool of which only the verb of a command speaks: enough for a plan that people look at."""
NEAR = 0.12
"""Tools whose score is at most so much below the best one's may have been meant as well."""
_NO_TOOL_ENDINGS = word_set(
    "com au org net io jpg jpeg png pdf txt csv json md html docx xlsx heic"
)
"""Last parts of addresses and files, which are written like names of tools."""
_CALLS = word_set("run call use execute invoke tool perform")


class EmbeddedClassifier:
    """Reads messages against one pack, the same words always in the same way."""

    name = "embedded"
    usage = Usage()
    """It asks nobody, so it costs nothing."""

    def __init__(self, pack: Pack, extract: Extractor) -> None:
        self._pack = pack
        self._extract = extract

    async def read(self, message: Message) -> Reading:
        return self.reading(message)

    def reading(self, message: Message) -> Reading:
        text = clean(message.text)
        reading = self._read(text, message)
        return reading.model_copy(update={"urgency": urgency_of(text)})

    @cached_property
    def _index(self) -> Index:
        return index_of(self._pack)

    def _read(self, text: str, message: Message) -> Reading:
        index = self._index
        if unknown := self._unknown_tool(text):
            return _refused(f"No tool is called {unknown!r} in pack {self._pack.name!r}")
        entities = self._extract.entities(text, message.now)
        plain = COURTESY.sub(
            lambda found: "please".ljust(len(found.group())), without_courtesy(text, self._tells)
        )
        words = marked(text, words_of(plain), entities, index)
        reader = Reader(text, entities, index, frozenset(message.context))
        clauses = with_tails(clauses_of(plain, words, index), text, index)
        if len(clauses) > MOST_CLAUSES:
            return _refused(
                f"The message has more than {MOST_CLAUSES} parts; say it in several messages"
            )
        understood = reader.all_of(clauses)
        if not understood:
            return _refused("The message has no words that could be read")
        wisher = Wisher(self._pack, index, reader, self._extract, message)
        cleaned = message.model_copy(update={"text": text})
        decided = self._opened(_decided(understood, wisher), understood)
        return look_again(decided, cleaned, self._pack, entities)

    def _opened(self, reading: Reading, understood: Sequence[Understood]) -> Reading:
        """The reading; of a plain command that no tool fits, the tool that takes commands with such a verb."""
        if reading.intent is Intent.EXECUTE or any(each.mood.is_no_command for each in understood):
            return reading
        verb, *rest = [*commanded(understood[0].clause.texts), ""]
        told = [word for word in rest if word and word not in FUNCTION_WORDS | VAGUE]
        tools = [tool for tool in self._pack.registry.tools if verb in tool.opening_verbs]
        if not told or not tools or any(each.sure for each in understood):
            return reading
        return Reading(
            intent=Intent.EXECUTE,
            domain=self._index.by_name[tools[0].name].domain or "system",
            wishes=(Wish(tool=tools[0].name),),
            confidence=BY_VERB,
            reasoning=f"{verb!r} begins a command that only {tools[0].name} takes",
            candidates=(tools[0].name,),
        )

    def _tells(self, word: str) -> bool:
        return word in self._index.objects or word in self._index.domain_words

    def _unknown_tool(self, text: str) -> str:
        """A name that only a tool could have and that none has; empty when there is none."""
        for found in DOTTED.finditer(text):
            name = found.group()
            head, *_, last = name.split(".")
            called = text[: found.start()].split()[-1:] or [""]
            meant = (
                head in self._index.heads or called[0].casefold() in _CALLS or found.start() == 0
            )
            if name not in self._index.by_name and last not in _NO_TOOL_ENDINGS and meant:
                return name
        return ""


def _decided(understood: Sequence[Understood], wisher: Wisher) -> Reading:
    """One unclear or forbidden part holds up the whole: half of what was asked for is not what was asked for."""
    banned = [each for each in understood if each.banned]
    wanted = [each for each in understood if not each.banned]
    off_limits = frozenset(each.entry.name for each in banned if each.entry)
    if not wanted or any(not each.sure and not each.names_a_thing(wisher.index) for each in banned):
        return _unclear(banned[0], f"Nothing is done: {banned[0].mood.forbids(False)}")
    for each in wanted:
        if reason := _against(each, off_limits):
            return _unclear(each, reason)
        if each.confidence < FAINTEST:
            return _lost(each, wisher.reader.text, alone=len(wanted) == 1)
        if not each.sure:
            return _unclear(each, "More than one tool may be meant")
    return _granted(wanted, wisher, off_limits)


def _against(each: Understood, off_limits: frozenset[str]) -> str:
    """Why a part that is well understood is not done; empty when nothing is against it."""
    if each.entry is None or each.confidence < FAINTEST:
        return ""
    if each.sure and each.entry.name in off_limits:
        return "The message both asks for it and says not to do it"
    return f"Nothing is done: {each.forbidden}" if each.forbidden else ""


def _lost(each: Understood, text: str, alone: bool) -> Reading:
    if alone:
        return _refused("No registered tool does this", each)
    part = text[each.clause.start : each.clause.end].strip()
    return _unclear(each, f"One part of the message fits no tool: {part[:60]!r}")


def _granted(wanted: Sequence[Understood], wisher: Wisher, off_limits: frozenset[str]) -> Reading:
    wishes = wisher.wishes_of(wanted, off_limits)
    first = wisher.index.by_name[wishes[0].tool]
    names = ", ".join(wish.tool for wish in wishes)
    return Reading(
        intent=Intent.EXECUTE,
        domain=first.domain or "system",
        wishes=wishes,
        confidence=min(each.confidence for each in wanted),
        reasoning=f"The words fit {names}",
        candidates=tuple(dict.fromkeys(wish.tool for wish in wishes)),
    )


def _refused(reasoning: str, each: Understood | None = None) -> Reading:
    entry = each.entry if each else None
    return Reading(
        intent=Intent.REFUSE,
        domain=entry.domain if entry and entry.domain else "system",
        confidence=1 - each.confidence if each else 0.9,
        reasoning=reasoning,
        candidates=tuple(fit.entry.name for fit in _near(each.fits)) if each else (),
    )


def _unclear(each: Understood, reasoning: str) -> Reading:
    things = {thing for thing, _ in each.query.things}
    near = _near(each.fits, things, NEAR if each.confidence > OPEN else 2 * NEAR)
    return Reading(
        intent=Intent.CLARIFY,
        domain=(near[0].entry.domain if near else "") or "system",
        confidence=each.confidence,
        reasoning=reasoning,
        question=_question(near),
        candidates=tuple(fit.entry.name for fit in near),
    )


def _near(
    fits: Sequence[Fit], things: Collection[str] = (), distance: float = NEAR
) -> Sequence[Fit]:
    """At most three tools that may be meant; those of a domain that was named come first."""
    near = [fit for fit in fits if fit.score >= fits[0].score - distance]
    return sorted(near, key=lambda fit: fit.entry.domain_stems.isdisjoint(things))[:3]


def _question(near: Sequence[Fit]) -> str:
    if not near:
        return "What should be done, and to which thing?"
    ways = [f"{fit.entry.name} ({_first_sentence(fit.entry.subject.description)})" for fit in near]
    if len(ways) == 1:
        return f"Say it as a plain request with all that it needs: is {ways[0]} meant?"
    return f"Which is meant: {', '.join(ways[:-1])} or {ways[-1]}?"


def _first_sentence(text: str) -> str:
    return text.split(". ")[0].split(":")[0].rstrip(".")
