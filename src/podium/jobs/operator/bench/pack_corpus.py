"""A pack's own corpus: sentences of its users with the right reading, and the score of how they are read."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from podium.core.errors import BadInput, PackInvalid, PackProblem
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.packs import Pack
from podium.jobs.operator.bench.expectation import (
    Expectation,
    ExpectedCall,
    ReadSentence,
    SentenceReader,
)
from podium.jobs.operator.models import Intent
from podium.tools.packs import CORPUS_FILE

MAX_CORPUS_BYTES = 5_000_000


class CorpusLine(FrozenModel):
    """One line of a corpus, as it is written."""

    say: NonEmpty
    kind: NonEmpty = Field(default="plain", alias="class")
    """Sentences of one class are counted together."""
    tool: str = ""
    arguments: dict[str, Json] = Field(default_factory=dict)
    calls: tuple[ExpectedCall, ...] = ()
    """Instead of `tool`, when the sentence asks for several."""
    intent: Intent | tuple[Intent, ...] | None = None
    """Without it, `clarify` where something is missing, else `execute`."""
    missing: tuple[str, ...] = ()
    context: dict[str, Json] = Field(default_factory=dict)

    def expectation(self) -> Expectation:
        """Raises `ValueError` for a line that contradicts itself."""
        if self.tool and self.calls:
            raise ValueError("give `tool` or `calls`, not both")
        if self.arguments and not self.tool:
            raise ValueError("`arguments` need a `tool`")
        first = ExpectedCall(tool=self.tool, arguments=self.arguments) if self.tool else None
        calls = (first,) if first else self.calls
        intent = self.intent or (Intent.CLARIFY if self.missing else Intent.EXECUTE)
        intents = intent if isinstance(intent, tuple) else (intent,)
        if Intent.EXECUTE in intents and not calls:
            raise ValueError("a sentence that is to be executed needs `tool` or `calls`")
        return Expectation(
            say=self.say,
            intents=intents,
            calls=calls,
            missing=self.missing,
            context=self.context,
        )


class CorpusSentence(FrozenModel):
    """A sentence of a corpus, by class."""

    kind: str
    line: int
    expectation: Expectation


def corpus_of(pack: Pack, folder: Path) -> list[CorpusSentence]:
    """Sentences of the pack's corpus.

    Raises `BadInput` when it has none, and `PackInvalid` with every line that cannot be used.
    """
    file = folder / CORPUS_FILE
    if not file.is_file():
        raise BadInput(
            f"pack {pack.name!r} has no {CORPUS_FILE}; write one sentence per line, such as "
            '{"say": "…", "tool": "…", "arguments": {…}}, or let `podium pack paraphrase` begin it'
        )
    problems: list[PackProblem] = []
    sentences = list(_sentences(pack, file, problems))
    if problems:
        raise PackInvalid(problems)
    if not sentences:
        raise BadInput(f"{file} has no sentences; add one per line")
    return sentences


def _sentences(pack: Pack, file: Path, problems: list[PackProblem]) -> Iterator[CorpusSentence]:
    for number, text in corpus_lines(file):
        try:
            line = CorpusLine.model_validate(json.loads(text))
            expectation = line.expectation()
            _must_be_known(pack, expectation)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                where = "/".join(map(str, detail["loc"]))
                problems.append(PackProblem(str(file), f"/{where}", detail["msg"], number))
        except (ValueError, RecursionError) as error:
            problems.append(PackProblem(str(file), "", str(error), number))
        else:
            yield CorpusSentence(kind=line.kind, line=number, expectation=expectation)


def corpus_lines(file: Path) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, without empty ones and comments, which begin with `#`."""
    with file.open("rb") as stream:
        content = stream.read(MAX_CORPUS_BYTES + 1)
    if len(content) > MAX_CORPUS_BYTES:
        raise BadInput(f"{file} is larger than {MAX_CORPUS_BYTES} bytes; make it smaller")
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise BadInput(f"{file} is not valid UTF-8; save it as UTF-8") from None
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line


def _must_be_known(pack: Pack, expectation: Expectation) -> None:
    for call in expectation.calls:
        subject = pack.tool(call.tool) or pack.skill(call.tool)
        if subject is None:
            raise ValueError(f"this pack has no tool {call.tool!r}")
        unknown = set(call.arguments) - set(subject.input_schema.get("properties", {}))
        if unknown:
            raise ValueError(f"{call.tool} has no argument {min(unknown)!r}")


class ClassCount(FrozenModel):
    """Readings of the sentences of one class, counted."""

    name: str
    sentences: int
    right: int
    asked: int
    """A question where something was to be done."""
    refused: int
    """A refusal where something was to be done."""
    wrong: int
    """Something else would be done, or anything at all where nothing was to be."""
    wrong_at_once: int
    """Of these, what would change records without anybody being asked."""

    @property
    def share(self) -> float:
        return self.right / self.sentences if self.sentences else 1.0


class CorpusScore(FrozenModel):
    """Score of the readings of a corpus."""

    classes: tuple[ClassCount, ...]
    total: ClassCount
    p50: float
    """Seconds that half of the sentences took at most."""
    misread: tuple[tuple[CorpusSentence, ReadSentence], ...]


def score_corpus(pack: Pack, sentences: Sequence[CorpusSentence]) -> CorpusScore:
    reader = SentenceReader(pack)
    read, seconds = list[ReadSentence](), list[float]()
    for sentence in sentences:
        began = time.perf_counter()
        read.append(reader.read(sentence.expectation))
        seconds.append(time.perf_counter() - began)
    kinds = dict.fromkeys(sentence.kind for sentence in sentences)
    pairs = tuple(zip(sentences, read, strict=True))
    return CorpusScore(
        classes=tuple(
            _count(kind, [one for sentence, one in pairs if sentence.kind == kind])
            for kind in kinds
        ),
        total=_count("all", read),
        p50=sorted(seconds)[len(seconds) // 2],
        misread=tuple((sentence, one) for sentence, one in pairs if not one.right),
    )


def _count(name: str, read: Sequence[ReadSentence]) -> ClassCount:
    misread = [one for one in read if not one.right]
    wrong = [one for one in misread if one.is_executed]
    # Of a sentence that is not to be executed, another answer than the right one does no more harm than a question.
    asked = [one for one in misread if one.classification.intent is Intent.CLARIFY]
    return ClassCount(
        name=name,
        sentences=len(read),
        right=len(read) - len(misread),
        asked=len(asked),
        refused=len(misread) - len(wrong) - len(asked),
        wrong=len(wrong),
        wrong_at_once=sum(one.changes_at_once for one in wrong),
    )
