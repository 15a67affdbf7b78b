"""Feedback that reports a failure, and feedback that does not."""

from __future__ import annotations

import pytest

from podium.jobs.pipeline.reported_failure import reported_failure
from tests.linear_cost import assert_linear_cost

FAILURES: list[object] = [
    "Not all tests pass.",
    "Only 3 of 5 tests pass.",
    "tests: 5 passed, 1 failed",
    "The CLI crashes with a KeyError if no file is given; I left it for later.",
    "Known issue: the process segfaults on exit.",
    "I implemented everything, however one of the tests is currently failing due to an unrelated bug.",
    "The verification could not be completed because the test runner crashed.",
    "AssertionError: assert 3 == 4",
    "test_foo FAILED",
    "FAILED tests/test_a.py::test_b - AssertionError",
    "The feature does not work yet.",
    "Build error in module foo that I cannot resolve.",
    "There is one remaining test failure.",
    "Some tests are skipped because they crash the interpreter.",
    "Tests pass locally but fail in CI.",
    "The linter still complains and the type checker fails.",
    "There were crashes during the run.",
    "I disabled the failing test.",
    "A test was failing so I marked it xfail.",
    "The program throws a NullPointerException at startup.",
    "Unfortunately the database migration failed.",
    "It crashed once during testing.",
    "The app crashes on start-up.",
    "Everything is implemented, but the settings page crashes when it is opened twice.",
    "Segmentation fault in the renderer.",
    "The process was killed by signal 9 during the run.",
    "The worker deadlocks under load.",
    "The second test hangs.",
    "pytest ends with a traceback in conftest.py",
    "There is an unhandled exception in the event loop at shutdown.",
    "3 tests fail.",
    "2 failed, 40 passed",
    "1 of 12 tests is failing",
    "12 errors, 0 warnings",
    "All tests pass except test_login, which fails.",
    "test_login still fails on my machine.",
    "The integration tests are failing because the database is missing.",
    "The build is broken.",
    "The build fails with a linker error.",
    "mypy reports 4 errors.",
    "Lint fails.",
    "Two failing tests remain.",
    "The tests do not pass yet.",
    "Tests don't pass on Windows.",
    "It does not compile.",
    "The code doesn't work with Python 3.11.",
    "The toggle is not working.",
    "I could not get the tests to pass.",
    "I couldn't fix the race condition.",
    "Could not run the tests: pytest is missing.",
    "I was not able to run the tests.",
    "I was unable to resolve the import error.",
    "I was not able to fix the crash.",
    "The server failed to start.",
    "npm failed to install the dependencies.",
    "An unresolved error is left in the parser.",
    "The bug remains.",
    "The exception persists after my change.",
    "It still crashes on empty input.",
    "It keeps failing.",
    "I got a TypeError when I ran it.",
    "I ran into an import error that I worked on for long.",
    "ModuleNotFoundError: No module named 'yaml'",
    "Error: cannot find module 'left-pad'",
    "An error occurred during the migration.",
    "The command exited with code 1.",
    "make test returned non-zero.",
    "I gave up on the flaky test.",
    "The crash is not fixed.",
    "The crash should be fixed in a later task.",
    "I tried to fix the crash.",
    "The crash needs to be fixed.",
    "panicked at 'index out of bounds'",
    "fatal error: foo.h: No such file or directory",
    "npm ERR! code ELIFECYCLE",
    "The suite timed out.",
    "CI is red.",
    "If the configuration is missing, the app crashes.",
    "Some checks are broken.",
    {"note": "done", "details": ["all good", "the app crashes at exit"]},
    {"failed_tests": 3},
    {"tests_failed": ["test_login"]},
    {"crash": "in the renderer"},
    {"errors": ["the index is out of range"]},
    {"status": "failed"},
    {"testStatus": "red"},
    {"crashed": True},
    ["fine", {"deep": [{"words": "two tests fail"}]}],
]

ORDINARY: list[object] = [
    "The docs should say what happens if the worker crashes.",
    "The plan's wording on error handling was vague; I log and continue.",
    "Please rename `FailedJob` to `JobFailure`.",
    "The retry logic for failed requests is duplicated in three places.",
    "Tests run in 3 s. 120 passed.",
    "I assumed that errors are shown in a toast.",
    "We might want a circuit breaker so that failures do not cascade.",
    "The existing tests did not cover the error path, I added two.",
    "The error is now handled gracefully.",
    "The API returns 404 errors for unknown users, this should be documented.",
    "The test fixture simulates a crash.",
    "I had to pin the dependency as version 3 fails to build; with 2.9 all tests pass.",
    "VERSION was missing so I created it.",
    "There's no test for failing uploads.",
    "CHANGELOG format differs from Keep a Changelog.",
    "The spec says a failed build is retried twice; I kept this.",
    "Crash-safety of the journal is only documented in code.",
    "Error budget is unclear.",
    "The code does not handle Windows paths.",
    "Please add a note about broken links.",
    "The old parser hangs on deep input, the new one does not.",
    "Type errors in legacy code were left as they are.",
    "When tests fail the report now names them.",
    "It would be good to fail early when the token is missing.",
    "I noticed that error strings are not translated.",
    None,
    "",
    {},
    [],
    42,
    "Fixed the crash.",
    "The crash was fixed.",
    "The crash on start-up is fixed now.",
    "No errors.",
    "No crashes were seen.",
    "All tests pass without errors.",
    "0 failed, 40 passed",
    "40 passed, 0 errors",
    "There are no failing tests.",
    "Zero failures.",
    "It could crash if misused later.",
    "This might fail on Windows, which nobody uses.",
    "The parser may raise an error for very deep input; a limit would help.",
    "The plan for 'UserAuth' was ambiguous; I assumed JWT.",
    "The plan did not say which colour to use.",
    "Error handling in the client is inconsistent.",
    "The error message could be clearer.",
    "I added tests for failed logins.",
    "Added a test that fails without the change and passes now.",
    "The test for the crash covers both paths.",
    "It no longer crashes.",
    "It does not crash any more.",
    "The app previously crashed on empty input.",
    "It used to fail on empty input.",
    "Resolved the failing test by waiting for the event.",
    "The failing tests were fixed.",
    "The error page has no documentation.",
    "Error codes are undocumented.",
    "parse() raises ValueError when the text is empty, as the plan wants.",
    "The function returns an error for unknown names.",
    "Failure modes of the cache deserve a page.",
    "The crash reporter lacks tests.",
    "Handles crashes of the worker by starting it anew.",
    "The retry prevents deadlocks.",
    "Recovers from a crash at any point.",
    "I first wrote a failing test, then the code.",
    "The README does not mention the new flag.",
    "The settings module is long and should be split.",
    "One unresolved question: should the toggle be remembered?",
    "There is technical debt in the module for payments.",
    "Tests are slow; running them in parallel would help.",
    "The name check_failed is misleading.",
    "Consider a retry in case the request fails.",
    "There is a risk that the cache fails under load.",
    "The fail-fast option is not documented.",
    "Failover is out of scope.",
    "Could not reproduce the reported bug on Linux.",
    "The build is slow but green.",
    "We should document what happens when a job fails.",
    "I logged every error with its cause.",
    "DeprecationWarning in the test output of an old library.",
    "The test suite covers failures of the network.",
    "Verified that the server rejects bad input with an error.",
    "Documentation of the crash recovery is missing.",
    "humanfriendly/tests.py was not run: docutils is missing.",
    "I did not run the slow suite, which is not among the checks.",
    {"errors": []},
    {"errors": "none"},
    {"failed_tests": 0},
    {"crashed": False},
    {"status": "success"},
    {"error_handling": "inconsistent between modules"},
    {"fixed_errors": ["the index was out of range"]},
    {"technical_debt": "the renderer is one long function", "severity": "low"},
]


@pytest.mark.parametrize("feedback", FAILURES, ids=str)
def test_reported_failure_is_extracted(feedback: object) -> None:
    output = reported_failure(feedback)
    assert output
    assert len(output) <= 400


@pytest.mark.parametrize("feedback", ORDINARY, ids=str)
def test_ordinary_feedback_reports_no_failure(feedback: object) -> None:
    assert reported_failure(feedback) is None


def test_words_reporting_a_failure_are_given() -> None:
    text = "The plan was fine. The build fails on the second run. The rest is done."
    assert reported_failure(text) == "The build fails on the second run."


def test_a_failure_deep_in_an_object_is_found() -> None:
    nested: object = "the app crashes"
    for _ in range(5_000):
        nested = {"more": [nested]}
    assert reported_failure(nested) == "the app crashes"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "piece", ["test ", "tests fail ", "no ", "error: ", "3 ", "could not ", "a"]
)
def test_endless_feedback_is_answered(piece: str) -> None:
    assert_linear_cost(lambda size: reported_failure({"note": piece * size}), 200_000)
    fails = piece in {"tests fail ", "error: "}
    assert bool(reported_failure({"note": piece * 200_000})) is fails
