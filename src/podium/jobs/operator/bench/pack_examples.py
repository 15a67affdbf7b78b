"""Examples of a registry, read as messages: each must be read as the tool and the arguments that it is an example of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from podium.core.errors import PackProblem
from podium.core.model import Json
from podium.core.packs import Pack, PackTool, Skill
from podium.jobs.operator.bench.expectation import (
    Expectation,
    ReadSentence,
    SentenceReader,
    example_expectation,
)
from podium.jobs.operator.models import Intent
from podium.tools.packs import registry_problems


class Misread:
    """An example that is read as something else, with its place in the registry."""

    def __init__(self, problem: PackProblem, sentence: ReadSentence) -> None:
        self.problem = problem
        self.sentence = sentence

    @property
    def lines(self) -> list[str]:
        """The problem at its place, then what the example says and what was read."""
        return [
            str(self.problem),
            f"  expected: {self.sentence.expectation.text}",
            f"  read:     {self.sentence.text}",
        ]

    def record(self) -> dict[str, Json]:
        read, expectation = self.sentence, self.sentence.expectation
        return {
            "pointer": self.problem.pointer,
            "line": self.problem.line,
            "say": expectation.say,
            "expected": [call.model_dump(mode="json") for call in expectation.calls],
            "read": [call.model_dump(mode="json") for call in read.calls],
            "intent": str(read.classification.intent),
            "differences": list(read.differences),
        }


def read_examples(pack: Pack) -> Iterator[tuple[str, ReadSentence]]:
    """Every example with its JSON pointer, as it is read."""
    reader = SentenceReader(pack)
    parts: dict[str, Sequence[PackTool | Skill]] = {
        "tools": pack.registry.tools,
        "skills": pack.registry.skills,
    }
    for part, subjects in parts.items():
        for number, subject in enumerate(subjects):
            for index, example in enumerate(subject.examples):
                expectation = example_expectation(subject, example)
                yield f"/{part}/{number}/examples/{index}", reader.read(expectation)


def rule_problems(pack: Pack) -> Iterator[tuple[str, ReadSentence, str]]:
    """Sentences of the pack's rules that are not treated as they say, with the difference."""
    reader = SentenceReader(pack)
    for number, rule in enumerate(pack.registry.rules):
        for index, say in enumerate(rule.refuses):
            read = reader.read(Expectation(say=say, intents=(Intent.REFUSE,)))
            conflict = read.classification.conflict
            if conflict is None or conflict.because != rule.because:
                because = f"is refused because {conflict.because}" if conflict else "is not refused"
                yield f"/rules/{number}/refuses/{index}", read, because
        for index, say in enumerate(rule.allows):
            read = reader.read(Expectation(say=say, intents=tuple(Intent)))
            if (conflict := read.classification.conflict) is not None:
                yield (
                    f"/rules/{number}/allows/{index}",
                    read,
                    f"is refused because {conflict.because}",
                )


def misreads_of(pack: Pack, folder: Path) -> list[Misread]:
    """Examples of a sound pack that are misread, and sentences of its rules that are not treated as they say. `folder` is how its files are named."""
    problems = registry_problems(folder)
    misreads = []
    for pointer, sentence in read_examples(pack):
        if sentence.right:
            continue
        text = f"{sentence.expectation.say!r} is misread: {'; '.join(sentence.differences)}"
        misreads.append(Misread(problems.problem(pointer, text), sentence))
    for pointer, sentence, difference in rule_problems(pack):
        text = f"{sentence.expectation.say!r} {difference}"
        misreads.append(Misread(problems.problem(pointer, text), sentence))
    return misreads
