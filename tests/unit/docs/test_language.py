"""Names are those of the field, and docstrings begin with what a thing is or does; see `docs/testing.md`, Language."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "podium"
AROUND = ("tests", "benchmarks", "examples", "packs", "scripts")
"""Code outside the package, which speaks the same language."""

RETIRED = frozenset(
    [
        "aside",
        "beat",
        "beats",
        "beneath",
        "desk",
        "desks",
        "each",
        "enclosures",
        "handless",
        "heard",
        "kit",
        "kits",
        "letter",
        "letters",
        "moment",
        "moments",
        "noun",
        "papers",
        "passage",
        "passages",
        "player",
        "players",
        "purse",
        "purses",
        "said",
        "standing",
        "stands",
        "stood",
        "tell",
        "teller",
        "telling",
        "tells",
        "told",
        "trip",
        "trips",
        "wish",
        "wishes",
        "zoo",
        "theatre",
        "nursery",
        "rig",
        "yard",
        "warden",
    ]
)
"""Words that are no names any more, alone or as a part of one."""

WIRE_NAMES = {
    "MARKS_FIELD": "JSON key `marks` of a tool's result",
    "MARKS_FIELD_FALLBACK": "JSON key `podium_marks`",
    "MessageHeard": "class of the event `message_heard`, in the API's description",
    "Standing": "schema of the API: how an agent stands",
    "ascii_letters": "of the standard library",
    "beat": "field of a worker in the API",
    "beat_at": "column and field of a worker",
    "beat_seconds": "setting, and key of the bus",
    "each": "key of a step in a pack's registry",
    "each_time": "key of the model server's rules",
    "for_each": "key of planning rules",
    "said": "field of approvals, habits, criteria and events",
    "standing": "field of candidates in the API",
    "stood_seconds": "field of a hold on a keyboard",
    "tell": "method of files",
    "telling": "field of the stored position of a notice",
    "told": "field of the stored position of a notice, and of a merge",
    "trips": "field of the measured costs in docs/sizing.md's data",
    "wishes": "field of a classification in recorded runs",
}
"""Names that are stored or sent, and stay: name → where."""

RETIRED_BEGINNINGS = ("MOST_", "LONGEST_", "LARGEST_", "DEEPEST_")
QUESTION_WORDS = frozenset(("What", "Whether", "Who", "Whoever", "Where", "How", "Which"))
ACTIVITIES = {
    "jobs/operator/judgement/embedded/clause_meaning.py": "meaning",
    "jobs/operator/testing.py": "shipped fakes",
    "jobs/playbook/replay/recording.py": "recording",
    "jobs/sense/testing.py": "shipped fakes",
}
"""Files whose names end in -ing and are nouns: path → the noun."""

SHARED_CLASSES = {
    "Answer": "to an approval (app); reply contract of a stage (pipeline) and of the corpus of replies (testing)",
    "Finding": "problem of a chain of receipts, in the API; problem that a reviewer reports, a reply contract",
    "Intent": "contract in the corpus of replies, named after the operator's",
    "Plan": "answer of the MCP tool; reply contract of a stage; contract in the corpus of replies",
    "PlanItem": "contract in the corpus of replies, named after sense's",
    "Proof": "schema of the MCP tool and of the API, which clients read",
    "Verdict": "on receipts, in the API; reply contract in the corpus of replies",
    "WorkOrder": "contract in the corpus of replies, named after sense's",
}
"""Names of classes in two or more packages: name → how they differ."""

ROUND_TRIP = re.compile("round_trips?", re.IGNORECASE)
"""The field's word for a request and its answer."""
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@cache
def _trees(root: Path = SOURCE) -> dict[str, ast.Module]:
    return {
        path.relative_to(root).as_posix(): ast.parse(path.read_text())
        for path in sorted(root.rglob("*.py"))
        if "generated" not in path.parts and "sample" not in path.parts
    }


def _all_code() -> dict[str, ast.Module]:
    around = (
        (f"{folder}/{path}", tree)
        for folder in AROUND
        for path, tree in _trees(ROOT / folder).items()
    )
    return {**_trees(), **dict(around)}


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield node.lineno, name
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield node.lineno, name


def _is_retired(name: str) -> bool:
    return name.startswith(RETIRED_BEGINNINGS) or any(
        part.lower() in RETIRED for part in _PART.findall(ROUND_TRIP.sub("", name))
    )


def test_no_name_has_a_retired_word() -> None:
    retired = {
        f"{path}:{line} {name}"
        for path, tree in _all_code().items()
        for line, name in _names(tree)
        if name not in WIRE_NAMES and _is_retired(name)
    }
    assert sorted(retired) == []


def test_docstrings_begin_with_no_question_word() -> None:
    questions = [
        f"{path}:{getattr(node, 'lineno', 1)} {text.splitlines()[0][:60]}"
        for path, tree in _all_code().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (text := ast.get_docstring(node))
        and text.split()[0].strip("`'\",.:") in QUESTION_WORDS
    ]
    assert questions == []


def test_files_are_named_after_what_they_hold() -> None:
    activities = [
        path for path in _trees() if Path(path).stem.endswith("ing") and path not in ACTIVITIES
    ]
    assert activities == []


def test_a_class_name_means_one_class() -> None:
    packages: dict[str, set[str]] = defaultdict(set)
    for path, tree in _trees().items():
        parts = path.split("/")
        package = "/".join(parts[:2] if parts[0] == "jobs" else parts[:1])
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                packages[node.name].add(package)
    shared = {name: sorted(where) for name, where in packages.items() if len(where) > 1}
    assert {name: where for name, where in shared.items() if name not in SHARED_CLASSES} == {}
