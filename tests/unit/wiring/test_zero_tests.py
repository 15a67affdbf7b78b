"""Output of test runners that found nothing to run, and of those that did."""

from __future__ import annotations

import pytest

from podium.app.checks import ran_no_tests
from tests.linear_cost import assert_linear_cost

NONE = {
    "unittest": "\n----------------------------------------------------------------------\n"
    "Ran 0 tests in 0.000s\n\nOK\n",
    "unittest since 3.12": "\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n",
    "pytest -q": "\nno tests ran in 0.01s\n",
    "pytest": "============ test session starts ============\ncollected 0 items\n\n"
    "=========== \x1b[33mno tests ran\x1b[0m in 0.01s ===========\n",
    "pytest, all deselected": "\n3 deselected in 0.01s\n",
    "tox around pytest": "py311: commands[0]> pytest\ncollected 0 items\n\n"
    "==== no tests ran in 0.00s ====\n  py311: OK (0.61 seconds)\n  congratulations :) (0.70 seconds)\n",
    "mocha": "\n\n  0 passing (1ms)\n\n",
    "jest --passWithNoTests": "No tests found, exiting with code 0\n",
    "vitest --passWithNoTests": "\n RUN  v1.6.0 /p\n\nNo test files found, exiting with code 0\n",
    "node --test": "TAP version 13\n1..0\n# tests 0\n# suites 0\n# pass 0\n# fail 0\n",
    "go": "?   \texample.org/a\t[no test files]\nok  \texample.org/b\t0.002s [no tests to run]\n",
    "cargo": "\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured\n\n"
    "   Doc-tests lib\n\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed\n",
    "gradle": "> Task :compileTestJava NO-SOURCE\n> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL in 1s\n",
    "maven": "[INFO] --- surefire:3.2.5:test (default-test) @ app ---\n[INFO] No tests to run.\n",
    "rspec": "No examples found.\n\nFinished in 0.00028 seconds\n0 examples, 0 failures\n",
    "ctest": "Test project /p/build\nNo tests were found!!!\n",
}
SOME = {
    "unittest": "..\nRan 2 tests in 0.000s\n\nOK\n",
    "pytest -q": "..   [100%]\n2 passed in 0.01s\n",
    "pytest": "collected 3 items\n\n======= 1 failed, 2 passed, 1 warning in 0.12s =======\n",
    "pytest, an error while collecting": "collected 0 items / 1 error\n\n=== 1 error in 0.08s ===\n",
    "pytest, skipped": "s\n1 skipped in 0.01s\n",
    "two runs": "Ran 0 tests in 0.000s\n\nOK\n====== 5 passed in 0.12s ======\n",
    "mocha": "\n  2 passing (3ms)\n",
    "jest": "Test Suites: 1 passed, 1 total\nTests:       1 failed, 2 passed, 3 total\n",
    "vitest": " Test Files  1 passed (1)\n      Tests  3 passed (3)\n",
    "node --test": "ℹ tests 3\nℹ pass 3\n",
    "go": "?   \texample.org/a\t[no test files]\nok  \texample.org/b\t(cached)\n",
    "cargo": "running 4 tests\n....\ntest result: ok. 4 passed\n\nrunning 0 tests\n\ntest result: ok.\n",
    "gradle": "> Task :a:test NO-SOURCE\n> Task :b:test\n\nBUILD SUCCESSFUL in 1s\n",
    "maven": "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0\n",
    "a linter": "All checks passed!\n",
    "a type checker": "Success: no issues found in 0 source files\n",
    "a build": "   Compiling app v0.1.0\n    Finished dev profile\nok\n",
    "nothing": "",
}


@pytest.mark.parametrize("runner", NONE)
def test_a_run_without_a_test_is_known_by_its_summary(runner: str) -> None:
    assert ran_no_tests(NONE[runner])
    assert ran_no_tests(NONE[runner].replace("\n", "\r\n"))


@pytest.mark.parametrize("what", SOME)
def test_runs_with_tests_and_everything_that_is_no_test_run_are_left_alone(what: str) -> None:
    assert not ran_no_tests(SOME[what])


@pytest.mark.sample(8)
@pytest.mark.parametrize("unit", ["=", " ", "1 passed ", "Tests: 1", "\x1b[0;", "9", "\n", "ok\n"])
@pytest.mark.parametrize("first", ["", "Tests: ", "Passed! "])
def test_hostile_output_is_read_in_linear_time(first: str, unit: str) -> None:
    assert_linear_cost(lambda size: ran_no_tests(first + unit * (size // len(unit))), 200_000)
