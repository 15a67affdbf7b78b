"""The suite itself: every test asserts something, and every long one runs in one part of the soak."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import budget
from tests.linear_cost import assert_linear_cost
from tests.soak_parts import PARTS, RESULTS, existing_paths, part_of, results, with_result

TESTS = Path(__file__).parents[2]
FILES = [path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")]


def test_every_file_of_tests_belongs_to_a_part_of_the_soak() -> None:
    """So does a long test that somebody adds to a file that has none yet."""
    assert [file for file in FILES if part_of(file, "soak") is None] == []
    assert [file for file in FILES if part_of(file, "property") is None] == []


def test_every_part_of_the_soak_holds_tests() -> None:
    sign = {"soak": "soak", "property": "@given", "live": "clis"}
    for part in PARTS:
        named = {path.partition("/")[2] for path in existing_paths(part)}
        assert named == set(part.paths), part
        files = [file for file in FILES if part_of(file, part.group) is part]
        assert any(sign[part.group] in (TESTS / file).read_text() for file in files), part


def test_a_file_belongs_to_the_first_part_that_names_it() -> None:
    first, rest = (
        part_of(f"integration/engine/{name}", "soak") for name in ("test_kills.py", "test_local.py")
    )
    assert (first and first.name, rest and rest.name) == ("kills", "machines")
    assert part_of("integration/engine/test_kills.py", "live") is None


def test_page_of_results_has_a_row_per_part_which_a_run_replaces() -> None:
    page = RESULTS.read_text()
    assert [name for name in results(page) if name != "part"] == [part.name for part in PARTS]
    row = ["2026-11-18", "b267730+", "5", "0", "1", "31"]
    replaced = with_result(page, "kills", row)
    assert results(replaced) == {**results(page), "kills": row}


# --- cost ----------------------------------------------------------------------------------------


def test_quadratic_cost_is_noticed_and_linear_cost_is_not() -> None:
    assert_linear_cost(lambda size: sum(range(size)), 1_000_000)
    with pytest.raises(AssertionError, match="size 3000 against a tenth"):
        assert_linear_cost(lambda size: sum(range(size * size)), 3_000)


def a_run(calibration: float, **cpu: float) -> budget.Costs:
    return budget.Costs(
        calibration, {kind: budget.Cost(seconds, 10) for kind, seconds in cpu.items()}
    )


@pytest.mark.parametrize(
    ("run", "kinds"),
    [
        (a_run(0.002, store=100.0, pure=20.0), []),
        (a_run(0.002, store=109.0, pure=22.0), []),
        (a_run(0.002, store=112.0, pure=10.0), ["store"]),
        (a_run(0.002, store=112.0, pure=24.0), ["store", "all"]),
        (a_run(0.004, store=200.0, pure=40.0), []),
        (a_run(0.001, store=100.0, pure=20.0), ["store", "pure", "all"]),
        (a_run(0.002, store=60.0, git=6.0), ["git"]),
    ],
    ids=["same", "a little", "one kind", "the sum", "slower machine", "faster machine", "new kind"],
)  # fmt: skip
def test_a_kind_that_costs_a_tenth_more_than_its_budget_is_warned_of(
    run: budget.Costs, kinds: list[str]
) -> None:
    recorded = budget.Costs.from_json(a_run(0.002, store=100.0, pure=20.0).to_json())
    assert re.findall(r"of kind '(\w+)'", " ".join(budget.growth(recorded, run))) == kinds


def test_the_speed_of_a_machine_is_measured_in_its_load() -> None:
    assert budget.calibration() > 0
    assert budget.Costs.measured({}, [0.001, 0.002, 0.009]).calibration == 0.002


# --- assertions --------------------------------------------------------------------------------

ASSERTION = re.compile(r"^ +assert\b|\b(?:AssertionError|raises|fail|retry_until\w*|assert_called\w*)\b", re.MULTILINE)  # fmt: skip
CALLS_OTHER_TESTS = {"test_a_cli_without_hands_keeps_the_promise"}
DEFINITION = re.compile(r"^ *(?:async )?(?:def|class) (\w+)", re.MULTILINE)


def _functions(text: str) -> Iterator[tuple[str, str]]:
    """Name and text of each function, nested ones with theirs. The name of a method begins with a dot.

    The formatter puts two blank lines between the definitions of a file, and one between methods.
    """
    for block in text.split("\n\n\n"):
        outer = DEFINITION.search(block)
        if outer and "class " in outer[0]:
            for method in re.split(r"\n\n(?=    [@ad])", block):
                if inner := DEFINITION.search(method, method.startswith("class ")):
                    yield f".{inner[1]}", method
        elif outer:
            yield outer[1], block


def test_every_test_asserts_something() -> None:
    """In itself, or in a helper of its file or of one that it imports. Where methods share a name, all must assert."""
    functions: list[tuple[str, str, bool, set[str]]] = []
    for path in TESTS.rglob("*.py"):
        text = path.read_text()
        own = list(_functions(text))
        imports = re.findall(r"^from tests\S* import (\([^)]*\)|.*)", text, re.MULTILINE)
        reachable = {name for name, _ in own} | set(re.findall(r"\w+", " ".join(imports)))
        for name, code in own:
            used = {
                word for word in re.findall(r"\.?\w+", code) if word[0] == "." or word in reachable
            }
            place = path.relative_to(TESTS).as_posix() if path.name.startswith("test_") else ""
            functions.append((place, name, bool(ASSERTION.search(code)), used - {name}))
    helpers: set[str] = set()
    while True:
        asserting = [direct or not used.isdisjoint(helpers) for _, _, direct, used in functions]
        pairs = [(name, yes) for (_, name, _, _), yes in zip(functions, asserting, strict=True)]
        doubtful = {name for name, yes in pairs if name[0] == "." and not yes}
        now = {name for name, yes in pairs if yes} - doubtful
        if now == helpers:
            break
        helpers = now
    silent = [
        f"{place}: {name}"
        for (place, name, _, _), yes in zip(functions, asserting, strict=True)
        if place and name.startswith("test_") and not yes and name not in CALLS_OTHER_TESTS
    ]
    assert silent == []
