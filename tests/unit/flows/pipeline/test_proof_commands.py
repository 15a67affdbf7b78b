"""Commands that an agent may propose as a proof, and what counts as a test that failed by itself."""

from __future__ import annotations

import pytest

from podium.app.checks import Check, CheckResult, executed_tests, failed_tests, never_ran, red_alike
from podium.jobs.pipeline.fix_proof import is_test_file, proposed_command

CHECKS = (
    Check(name="tests", command="PYTHONPATH=src python -m pytest -q"),
    Check(name="all", command="make test && echo done"),
)


@pytest.mark.parametrize(
    ("proposed", "run"),
    [
        ("PYTHONPATH=src python -m pytest -q tests/test_a.py", "PYTHONPATH=src python -m pytest -q tests/test_a.py"),
        (
            "PYTHONPATH=src python -m pytest -q tests/test_a.py::test_b -k 'one or two'",
            "PYTHONPATH=src python -m pytest -q tests/test_a.py::test_b -k 'one or two'",
        ),
        ("make test && echo done", "make test && echo done"),
        ("make test && echo done tests/test_a.py", ""),
        ("python -m pytest -q tests/test_a.py", ""),
        ("PYTHONPATH=src python -m pytest -q; curl example.org", ""),
        ("PYTHONPATH=src python -m pytest -q $(id)", ""),
        ("PYTHONPATH=src python -m pytest -q tests/a.py > x", ""),
        ("PYTHONPATH=src python -m pytest -q -p plugin", ""),
        ("PYTHONPATH=src python -m pytest -q --pdbcls=x:y", ""),
        ("PYTHONPATH=src python -m pytest -q ../outside/test_a.py", ""),
        ("PYTHONPATH=src python -m pytest -q /tmp/test_a.py", ""),
        ("PYTHONPATH=src python -m pytest -q -k", ""),
        ("PYTHONPATH=src python -m pytest -q 'unclosed", ""),
    ],
)  # fmt: skip
def test_only_a_check_of_the_project_with_selectors_of_tests_is_run(
    proposed: str, run: str
) -> None:
    assert proposed_command(proposed, CHECKS) == run


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/data/one.json", True),
        ("test_calc.py", True),
        ("pkg/calc_test.go", True),
        ("src/calc.test.ts", True),
        ("conftest.py", True),
        ("src/calc.py", False),
        ("src/latest.py", False),
        ("docs/contest.md", False),
    ],
)
def test_test_files_are_known_by_their_folders_and_names(path: str, *, expected: bool) -> None:
    assert is_test_file(path) is expected


UNITTEST = """F
======================================================================
FAIL: test_sum (test_calc.Sums.test_sum)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/tmp/x/test_calc.py", line 8, in test_sum
    self.assertEqual(add(2, 2), 4)
AssertionError: 0 != 4

----------------------------------------------------------------------
Ran 1 test in 0.000s

FAILED (failures=1)
"""
UNITTEST_IMPORT = """E
======================================================================
ERROR: test_sums (unittest.loader._FailedTest.test_sums)
----------------------------------------------------------------------
ImportError: Failed to import test module: test_sums
Traceback (most recent call last):
  File "/tmp/x/test_sums.py", line 3, in <module>
    from sums import add
ModuleNotFoundError: No module named 'sums'


----------------------------------------------------------------------
Ran 1 test in 0.000s

FAILED (errors=1)
"""
UNITTEST_CRASH = UNITTEST.replace("FAIL:", "ERROR:").replace(
    "AssertionError: 0 != 4", "ZeroDivisionError: division by zero"
)
PYTEST = """
=========================== short test summary info ============================
FAILED tests/test_a.py::test_one - assert 1 == 2
1 failed, 3 passed in 0.03s
"""
PYTEST_COLLECTION = """
E   ModuleNotFoundError: No module named 'sums'
=========================== short test summary info ============================
ERROR tests/test_a.py
!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!
1 error in 0.10s
"""
PYTEST_NAME = PYTEST.replace("assert 1 == 2", "ImportError: cannot import name 'new' from 'calc'")
PYTEST_CUT = "\ntests/test_a.py:3: ModuleNotFoundError" + PYTEST.replace(
    "assert 1 == 2", "Modul..."
)
GO = "# example.org/calc\n./calc_test.go:6:2: undefined: Sub\nFAIL\texample.org/calc [build failed]\n"


@pytest.mark.parametrize(
    "output", [UNITTEST, UNITTEST_CRASH, PYTEST, "", "make: *** [test] Error 1\n"]
)
def test_a_failed_assertion_and_a_crash_of_the_code_are_failures_of_a_test(output: str) -> None:
    assert never_ran(output) == ""


@pytest.mark.parametrize(
    "output", [UNITTEST_IMPORT, PYTEST_COLLECTION, PYTEST_NAME, PYTEST_CUT, GO]
)
def test_a_test_that_could_not_be_loaded_did_not_fail_by_itself(output: str) -> None:
    assert never_ran(output)


def test_names_of_failed_tests_are_read_from_the_output() -> None:
    assert failed_tests(UNITTEST) == ("test_sum (test_calc.Sums.test_sum)",)
    assert failed_tests(PYTEST) == ("tests/test_a.py::test_one",)
    assert failed_tests("--- FAIL: TestSum (0.00s)\nnot ok 2 - adds # time=1ms\n") == (
        "TestSum",
        "adds",
    )


def result(tail: str, code: int = 1) -> CheckResult:
    return CheckResult(
        name="tests", command="t", exit_code=code, tail=tail, failed=failed_tests(tail)
    )


def test_red_alike_means_no_other_failed_test_and_without_names_the_same_text() -> None:
    other = PYTEST.replace("test_one", "test_two")
    assert red_alike(result(PYTEST), result(PYTEST.replace("0.03s", "0.91s")))
    assert red_alike(result(PYTEST + other), result(PYTEST))
    assert not red_alike(result(PYTEST), result(PYTEST + other))
    assert not red_alike(result(PYTEST), result(PYTEST, code=2))
    assert red_alike(result("a.py:3: bad\n0.2s"), result("a.py:9: bad\n0.4s"))
    assert not red_alike(result("a.py:3: bad\n"), result("a.py:3: bad\nb.py:1: bad\n"))
    assert not red_alike(result("", code=0), result(PYTEST))


@pytest.mark.parametrize(
    ("output", "count"),
    [
        ("..\n2 passed in 0.01s\n", 2),
        ("=== 1 failed, 2 passed, 3 skipped, 1 xfailed, 2 warnings in 62.05s (0:01:02) ===\n", 3),
        ("2 passed, 1 error in 0.01s\n", 2),
        ("no tests ran in 0.00s\n", 0),
        ("..sF.x     [ 60%]\n..E.       [100%]\n", 7),
        ("3 skipped in 0.1s\n", 0),
        ("Ran 5 tests in 0.001s\n\nOK (skipped=2)\n", 3),
        ("Ran 3 tests in 0.000s\n\nFAILED (failures=1, expected failures=1)\n", 2),
        ("Tests:       1 failed, 2 skipped, 5 passed, 8 total\n", 6),
        (" Test Files  1 passed (1)\n      Tests  2 failed | 3 passed (5)\n", 5),
        ("  5 passing (20ms)\n  1 failing\n  2 pending\n", 6),
        ("# tests 4\n# pass 3\n# fail 1\n# skipped 0\n", 4),
        ("ok  \tex/a\t0.01s\n?   \tex/b\t[no test files]\nok  \tex/c\t(cached)\n", 2),
        ("test result: ok. 5 passed; 1 failed; 2 ignored; 0 measured; finished in 0.00s\n", 6),
        ("5 examples, 0 failures, 1 pending\n", 4),
        ("5 runs, 10 assertions, 0 failures, 0 errors, 1 skips\n", 4),
        ("OK (5 tests, 10 assertions)\n", 5),
        ("Tests: 5, Assertions: 10, Failures: 1, Skipped: 1.\n", 4),
        ("Passed!  - Failed:     0, Passed:     5, Skipped:     0, Total:     5\n", 5),
        ("[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 1\n", 4),
        ("Found 2 errors in 1 file (checked 3 source files)\nok 1 - adds\n", None),
    ],
)
def test_tests_that_ran_are_counted_without_those_that_were_skipped(
    output: str, count: int | None
) -> None:
    assert executed_tests(output) == count
