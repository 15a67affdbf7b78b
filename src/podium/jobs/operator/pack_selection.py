"""Several packs at once: a message goes to the one whose tools fit it best, and to none where two fit alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from podium.core.approval_steps import approval_named_in
from podium.core.model import Json
from podium.core.packs import Pack, PackTool, Skill
from podium.jobs.operator.answers import Answers
from podium.jobs.operator.judgement.embedded.tokens import plain_tokens
from podium.jobs.operator.judgement.judge import SURE_ENOUGH
from podium.jobs.operator.models import Intent, Message, OperatorAnswer, OperatorMode, Reading
from podium.jobs.operator.operator import Operator, Started, input_problems, no_listener

NEAR = 0.12
"""Readings whose confidence differs by at most this much fit about equally."""
EXACT = 2.0
"""The fit of a message that a registry has word for word: better than any confidence."""
_POLITE = frozenset({"please", "pls"})


@dataclass(frozen=True)
class PackReader:
    """A pack, and Podium's own reading of a message against it. No model is asked."""

    pack: Pack
    read: Callable[[Message], Reading]
    now: Callable[[], datetime]
    """Local time of the pack, for words such as `tomorrow`."""

    def fit(self, text: str, context: Mapping[str, Json]) -> tuple[float, str]:
        """Score the best tool, 0 for none, and name it."""
        reading = self.read(Message(text=text, context=dict(context), now=self.now()))
        if reading.intent is Intent.REFUSE or not reading.candidates:
            return 0.0, ""
        exact = _spoken(text) in _ways(self.pack)
        return EXACT if exact else reading.confidence, reading.candidates[0]

    def sentence(self, tool: str) -> str:
        """`system.status of pack podium (Say how Podium stands here)`."""
        entry = self.pack.tool(tool) or self.pack.skill(tool)
        about = entry.description.split(". ")[0].split(":")[0].rstrip(".") if entry else ""
        return f"{tool} of pack {self.pack.name} ({about})"


class PackSelection:
    """Answers messages with the tools of one or several packs; see `Operator.process`."""

    def __init__(
        self,
        operators: Sequence[Operator],
        readers: Sequence[PackReader],
        *,
        first_wins: bool = False,
        others: Callable[[], Iterable[PackReader]] = tuple,
    ) -> None:
        """`readers` go with `operators`; one alone needs none. `first_wins`: of packs that fit alike the first is taken, and nobody is asked.

        `others` are packs that a refusal may point to; they are loaded when there is one.
        """
        self._operators = operators
        self._readers = readers
        self._first_wins = first_wins
        self._others = others

    async def process(
        self,
        message: str,
        mode: str = OperatorMode.ANALYZE,
        context: Mapping[str, Json] | None = None,
        explicit_approval: bool = False,
        *,
        provenance: tuple[str, ...] = (),
        started: Started = no_listener,
        mode_explicit: bool = True,
    ) -> OperatorAnswer:
        """The answer of the pack that the message is for, or the question which one it is for."""
        readable = not input_problems(message, mode, context) and approval_named_in(message) is None
        fits = self._fits(message, context or {}) if readable and len(self._operators) > 1 else []
        if len(alike := _alike(fits)) > 1 and not self._first_wins:
            ways = {reader.pack.name: reader.sentence(tool) for reader, (_, tool) in alike}
            confidence = min(1.0, max(fit for _, (fit, _) in alike))
            return Answers().which_pack(message, OperatorMode(mode), ways, confidence)

        async def answered(operator: Operator) -> OperatorAnswer:
            return await operator.process(
                message, mode, context, explicit_approval,
                provenance=provenance, started=started, mode_explicit=mode_explicit,
            )  # fmt: skip

        first, *rest = self._order(alike) if readable else self._operators[:1]
        answer = await answered(first)
        for operator in rest:
            if answer.status == "refused":
                other = await answered(operator)
                answer = answer if other.status == "refused" else other
        return self._with_hint(answer, message, context or {}) if readable else answer

    def _fits(
        self, message: str, context: Mapping[str, Json]
    ) -> list[tuple[PackReader, tuple[float, str]]]:
        return [(reader, reader.fit(message, context)) for reader in self._readers]

    def _order(self, alike: Sequence[tuple[PackReader, tuple[float, str]]]) -> Sequence[Operator]:
        """The operator of the pack that fits; all of them, one after the other, where Podium sees none that does.

        A model may see more than Podium does.
        """
        if not alike:
            return self._operators
        at = next(
            position for position, reader in enumerate(self._readers) if reader is alike[0][0]
        )
        return self._operators[at : at + 1]

    def _with_hint(
        self, answer: OperatorAnswer, message: str, context: Mapping[str, Json]
    ) -> OperatorAnswer:
        """A refusal for want of a tool, with the pack that has one."""
        classification = answer.classification
        if (
            answer.status != "refused"
            or answer.run_id
            or classification is None
            or classification.conflict is not None
        ):
            return answer
        for reader in self._others():
            fit, tool = reader.fit(message, context)
            if fit >= SURE_ENOUGH:
                return Answers().with_other_pack(answer, message, reader.pack.name, tool)
        return answer


def _alike(
    fits: Sequence[tuple[PackReader, tuple[float, str]]],
) -> list[tuple[PackReader, tuple[float, str]]]:
    """The packs that fit best, about equally; none where no tool fits."""
    best = max((fit for _, (fit, _) in fits), default=0.0)
    return [(reader, (fit, tool)) for reader, (fit, tool) in fits if fit and fit >= best - NEAR]


def _ways(pack: Pack) -> set[tuple[str, ...]]:
    """All that the registry gives as ways to ask for its tools."""
    subjects: list[PackTool | Skill] = [*pack.registry.tools, *pack.registry.skills]
    phrases = (
        way
        for subject in subjects
        for way in (*subject.synonyms, *(one.say for one in subject.examples))
    )
    return set(map(_spoken, phrases))


def _spoken(text: str) -> tuple[str, ...]:
    return tuple(token for token in plain_tokens(text) if token not in _POLITE)
