"""Examples of a registry, read as messages: each must be read as the tool and the arguments that it is an example of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from podium.core.errors import PackProblem
from podium.core.model import Json
from podium.core.packs import Pack, PackTool, Skill
from podium.jobs.operator.bench.expectation import (
    ReadSentence,
    SentenceReader,
    example_expectation,
)
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


def misreads_of(pack: Pack, folder: Path) -> list[Misread]:
    """Examples of a sound pack that are misread, in the order of its registry. `folder` is how its files are named."""
    problems = registry_problems(folder)
    misreads = []
    for pointer, sentence in read_examples(pack):
        if sentence.right:
            continue
        text = f"{sentence.expectation.say!r} is misread: {'; '.join(sentence.differences)}"
        misreads.append(Misread(problems.problem(pointer, text), sentence))
    return misreads
