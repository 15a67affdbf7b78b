"""Comparison of the tests and checks of a branch with those of its base, from the changed files alone."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from podium.jobs.pipeline.test_integrity.check_settings import is_check_settings, settings_findings
from podium.jobs.pipeline.test_integrity.findings import (
    ANY_NUMBER,
    FileVersions,
    IntegrityFinding,
    Severity,
    make_finding,
)
from podium.jobs.pipeline.test_integrity.product_code import (
    TestValues,
    caller_findings,
    hook_findings,
    is_source,
    is_start_file,
    literal_findings,
    new_skips,
    pattern_findings,
    start_file_findings,
)
from podium.jobs.pipeline.test_integrity.python_tests import (
    EXACT,
    NOTHING,
    PARTIAL,
    Assertion,
    PythonFile,
    PythonTest,
    read_python_file,
    with_helpers,
)
from podium.jobs.pipeline.test_integrity.replacements import replacement_findings
from podium.jobs.pipeline.test_integrity.textual_tests import (
    TextFile,
    TextTest,
    is_textual_test,
    language_of,
    read_text_file,
)

_TEST_FOLDER = re.compile(r"(?:^|/)(?:tests?|testing|spec|specs)/", re.IGNORECASE)
_COLLECTED = ("test*.py", "*_test.py")
_LIKE_A_TEST = re.compile(r"(?:^|/)_*x?(?:test\w*|\w+_tests?)\.py$", re.IGNORECASE)
_MAX_FINDINGS = 100
_MAX_PAIRS = 200_000
"""Comparisons of tests that vanished with new ones."""
_SIMILAR = 0.6


def is_relevant(path: str) -> bool:
    """Tell whether a changed file has to be read."""
    return (
        is_source(path) or is_textual_test(path) or is_check_settings(path) or is_start_file(path)
    )


def is_test_path(path: str) -> bool:
    """Tell by its name and folder whether a file is part of the tests."""
    if path.endswith(".py"):
        return (
            _is_collected_name(path)
            or _TEST_FOLDER.search(path) is not None
            or PurePosixPath(path).name == "conftest.py"
        )
    return is_textual_test(path) and not path.endswith(".rs")


def compare(
    files: Sequence[FileVersions],
    tree: Collection[str] = (),
    unchanged: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> tuple[IntegrityFinding, ...]:
    """Findings about the changed files.

    `tree` holds all paths of the branch, `unchanged` texts of tests that both sides have alike, `settings` texts of settings of
    checks that they have alike, by path.
    """
    found = list(_Comparison(files, frozenset(tree), unchanged, settings or {}).findings())
    order: dict[Severity, int] = {"high": 0, "medium": 1, "low": 2}
    unique = {finding.key: finding for finding in found}
    ordered = sorted(
        unique.values(), key=lambda finding: (order[finding.severity], finding.path, finding.line)
    )
    return tuple(ordered[:_MAX_FINDINGS])


def _is_collected_name(path: str) -> bool:
    return any(fnmatchcase(PurePosixPath(path).name, pattern) for pattern in _COLLECTED)


@dataclass(frozen=True)
class _Located:
    """A test and the file that it is in."""

    path: str
    test: PythonTest


class _Comparison:
    def __init__(
        self,
        files: Sequence[FileVersions],
        tree: frozenset[str],
        unchanged: Sequence[str],
        settings: Mapping[str, str],
    ) -> None:
        self._unchanged = unchanged
        self._settings = settings
        self._files = files
        self._tree = tree
        self._before: dict[str, PythonFile] = {}
        self._after: dict[str, PythonFile] = {}
        self._by_name: dict[str, PythonTest | None] = {}
        """Functions of unchanged tests that were looked up."""

    def findings(self) -> Iterator[IntegrityFinding]:
        for file in self._files:
            yield from self._read(file)
        tests = frozenset(
            path for path in self._tree if is_test_path(path) and _is_test_module(path)
        )
        for file in self._files:
            if is_check_settings(file.path):
                yield from settings_findings(file, tests, self._settings)
            if is_start_file(file.path):
                yield from start_file_findings(file)
        yield from self._python()
        yield from self._textual()
        yield from self._patterns()

    def _read(self, file: FileVersions) -> Iterator[IntegrityFinding]:
        if not file.path.endswith(".py"):
            return
        may_test = is_test_path(file.path) or _LIKE_A_TEST.search(file.path) is not None
        if file.before is not None:
            parsed = read_python_file(file.before)
            if parsed is not None and (may_test or parsed.tests):
                self._before[file.path] = parsed
        if file.after is not None:
            parsed = read_python_file(file.after)
            if parsed is not None and (may_test or parsed.tests):
                self._after[file.path] = parsed
            elif parsed is None and self._tests_of(file.path):
                yield make_finding(
                    "unreadable_test",
                    file.path,
                    0,
                    "",
                    "the test file can no longer be parsed",
                    severity="high",
                )
        elif file.problem and self._tests_of(file.path):
            yield make_finding(
                "unreadable_test",
                file.path,
                0,
                "",
                f"the test file {file.problem}",
                severity="high",
            )

    def _tests_of(self, path: str) -> dict[str, PythonTest]:
        parsed = self._before.get(path)
        return parsed.tests if parsed is not None and _is_collected_name(path) else {}

    # -- Python

    def _python(self) -> Iterator[IntegrityFinding]:
        unreadable = {
            file.path
            for file in self._files
            if file.path.endswith(".py")
            and file.path not in self._after
            and (file.problem or file.after is not None)
        }
        before = [
            _Located(path, test)
            for path in self._before
            if path not in unreadable
            for test in self._tests_of(path).values()
        ]
        runs = {path: _is_collected_name(path) for path in self._after}
        after = [
            _Located(path, test)
            for path, parsed in self._after.items()
            if runs[path]
            for test in parsed.tests.values()
            if not test.never_runs
        ]
        pairs, lost, new = _matched(before, after)
        helper_before, helper_after = _helpers(self._before), _helpers(self._after)
        changed_helpers = _new_helpers(helper_before, helper_after)
        # An assertion of a test that was split is in another one.
        moved = {
            (assertion.text, assertion.strength)
            for other in new
            for assertion in other.test.assertions
        }
        reached: set[str] = set()
        for old, now in pairs:
            reached |= now.test.calls
            if old.test.source == now.test.source and not (
                changed_helpers and now.test.calls & changed_helpers
            ):
                continue
            before_all = with_helpers(old.test, self._helper_in(helper_before))
            after_all = with_helpers(now.test, self._helper_in(helper_after))
            before_all = tuple(
                a for a in before_all if a in after_all or (a.text, a.strength) not in moved
            )
            yield from _weaker(
                old, now, before_all, after_all, changed_helpers, self._helper_in(helper_after)
            )
        yield from self._support(reached)
        yield from self._lost(lost, new, [now for _, now in pairs], unreadable)
        known = {now.test.name for _, now in pairs} | {old.test.leaf for old in before}
        yield from self._new(new, helper_after)
        yield from self._skips(known, {located.test.name for located in new})
        paths = [path for path in self._tree if path.endswith(".py")]
        tests = [path for path in paths if is_test_path(path)]
        product = sorted({*paths} - {*tests})
        packages = {path.removeprefix("src/").split("/")[0].removesuffix(".py") for path in product}
        for file in self._files:
            name = PurePosixPath(file.path).name
            after_file = self._after.get(file.path)
            if after_file is not None and (
                name == "conftest.py" or "plugin" in name or is_test_path(file.path)
            ):
                old_file = self._before.get(file.path)
                yield from hook_findings(file, old_file, after_file, product)
                yield from replacement_findings(file.path, old_file, after_file, tests, packages)

    def _helper_in(self, changed: Mapping[str, PythonTest]) -> Callable[[str], PythonTest | None]:
        """Look a helper up in the changed files, else in the tests that both sides have alike."""

        def helper_named(name: str) -> PythonTest | None:
            return changed.get(name) or self._unchanged_function(name)

        return helper_named

    def _unchanged_function(self, name: str) -> PythonTest | None:
        if name not in self._by_name:
            header = f"def {name}("
            texts = (text for text in self._unchanged if name and header in text)
            files = (parsed for text in texts if (parsed := read_python_file(text)) is not None)
            self._by_name[name] = next(
                (parsed.functions[name] for parsed in files if name in parsed.functions), None
            )
        return self._by_name[name]

    def _support(self, reached: Collection[str]) -> Iterator[IntegrityFinding]:
        """Functions that assert for tests of other files, which this branch leaves as they are."""
        for path, parsed in self._after.items():
            old_functions = self._before[path].functions if path in self._before else {}
            for name, function in parsed.functions.items() if is_test_path(path) else ():
                old = old_functions.get(name)
                if (
                    old is None
                    or name in reached
                    or name.startswith("test")
                    or old.source == function.source
                ):
                    continue
                yield from _weaker(
                    _Located(path, old),
                    _Located(path, function),
                    old.assertions,
                    function.assertions,
                    frozenset(),
                    self._unchanged_function,
                )

    def _lost(
        self,
        lost: Sequence[_Located],
        new: Sequence[_Located],
        matched: Sequence[_Located],
        unreadable: Collection[str],
    ) -> Iterator[IntegrityFinding]:
        """Tests of the base that the branch does not run."""
        gone_files = {file.path for file in self._files if file.after is None and not file.problem}
        by_file: dict[str, list[PythonTest]] = defaultdict(list)
        for located in lost:
            if reason := self._why_not_run(located):
                yield reason
            elif cover := _covering(located.test, [now.test for now in (*new, *matched)]):
                yield make_finding(
                    "merged_test",
                    located.path,
                    located.test.line,
                    located.test.name,
                    f"test `{located.test.name}` is gone; `{cover.name}` has its calls and values",
                    severity="low",
                    tests=_number_of(located.test),
                )
            else:
                by_file[located.path].append(located.test)
        for path, tests in by_file.items():
            if path in gone_files and len(tests) > 1:
                listed = ", ".join(test.name for test in tests[:5])
                more = f" and {len(tests) - 5} more" if len(tests) > 5 else ""
                yield make_finding(
                    "deleted_test",
                    path,
                    0,
                    path,
                    f"the test file was deleted with {len(tests)} tests ({listed}{more})",
                    severity="high",
                    tests=sum(map(_number_of, tests)),
                )
                continue
            for test in tests:
                first = test.assertions[0].text if test.assertions else test.text.split("\n")[0]
                yield make_finding(
                    "deleted_test",
                    path,
                    test.line,
                    test.name,
                    f"test `{test.name}` was deleted",
                    before=first,
                    severity="high",
                    tests=_number_of(test),
                )

    def _why_not_run(self, located: _Located) -> IntegrityFinding | None:
        """The finding about a test that is still there in a form that no runner collects."""
        leaf = located.test.leaf
        best: tuple[float, str, PythonTest, str] | None = None
        for path, parsed in self._after.items():
            same_place = path == located.path
            candidates = [(test, test.never_runs) for test in parsed.functions.values()]
            candidates += [
                (
                    test,
                    test.never_runs
                    or ("" if _is_collected_name(path) else f"no runner collects the file {path}"),
                )
                for test in parsed.tests.values()
            ]
            for test, reason in candidates:
                if not reason:
                    continue
                score = similarity(located.test, test) + (
                    0.5 if test.leaf == leaf and same_place else 0.0
                )
                if (score >= _SIMILAR or (test.leaf == leaf and same_place)) and (
                    best is None or score > best[0]
                ):
                    best = (score, path, test, reason)
        if best is None:
            return None
        _, path, test, reason = best
        text = f"test `{located.test.name}` is no longer collected: {reason}"
        return make_finding(
            "uncollected_test",
            path,
            test.line,
            located.test.name,
            text,
            before=located.test.text.split("\n")[0],
            after=test.text.split("\n")[0],
            severity="high",
            tests=_number_of(located.test),
        )

    def _new(
        self, new: Sequence[_Located], helpers: dict[str, PythonTest]
    ) -> Iterator[IntegrityFinding]:
        """New tests that cannot fail, or that no runner collects."""
        for located in new:
            test = located.test
            assertions = with_helpers(test, helpers.get)
            if assertions and all(assertion.strength == NOTHING for assertion in assertions):
                first = assertions[0]
                yield make_finding(
                    "test_without_effect",
                    located.path,
                    test.line,
                    test.name,
                    f"new test `{test.name}` cannot fail: {first.without_effect or 'its assertions always hold'}",
                    after=first.text,
                    severity="medium",
                )
            elif test.cases == 0:
                yield make_finding(
                    "test_without_effect",
                    located.path,
                    test.line,
                    test.name,
                    f"new test `{test.name}` has no cases",
                    severity="medium",
                )
        for path, parsed in self._after.items():
            old = self._before.get(path)
            for test in parsed.functions.values() if is_test_path(path) else ():
                fresh = old is None or (
                    test.leaf not in old.functions and test.name not in old.tests
                )
                if (
                    fresh
                    and test.leaf.startswith("test")
                    and test.never_runs
                    and test.assertions
                    and "fixture" not in test.never_runs
                ):
                    yield make_finding(
                        "uncollected_test",
                        path,
                        test.line,
                        test.name,
                        f"new test `{test.name}` never runs: {test.never_runs}",
                        severity="medium",
                    )
            if (
                not _is_collected_name(path)
                and old is None
                and _TEST_FOLDER.search(path)
                and not _looks_like_support(path)
            ):
                for test in list(parsed.tests.values())[:1]:
                    if test.assertions:
                        yield make_finding(
                            "uncollected_test",
                            path,
                            test.line,
                            test.name,
                            f"new test `{test.name}` never runs: no runner collects the file {path}",
                            severity="medium",
                        )

    def _skips(self, known: Collection[str], new: Collection[str]) -> Iterator[IntegrityFinding]:
        before = [skip for path, parsed in self._before.items() for skip in parsed.skips]
        located = [(path, skip) for path, parsed in self._after.items() for skip in parsed.skips]
        fresh = Counter(new_skips(before, [skip for _, skip in located]))
        for path, skip in located:
            if not fresh[skip]:
                continue
            fresh[skip] -= 1
            only_new = _is_scope_of(skip.scope, new) or (
                not skip.scope and path not in self._before
            )
            severity: Severity = (
                "low"
                if only_new and skip.names_environment
                else "medium"
                if only_new or skip.names_platform
                else "high"
            )
            subject = skip.scope or path
            yield make_finding(
                "new_skip",
                path,
                skip.line,
                subject,
                f"`{subject}` has a new mark that keeps tests from running or from counting",
                after=skip.text,
                severity=severity,
                tests=0 if only_new else 1 if skip.scope in known else ANY_NUMBER,
            )

    # -- other languages

    def _textual(self) -> Iterator[IntegrityFinding]:
        before: dict[str, TextFile] = {}
        after: dict[str, TextFile] = {}
        for file in self._files:
            if not is_textual_test(file.path):
                continue
            if file.before is not None:
                before[file.path] = read_text_file(file.path, file.before)
            if file.after is not None:
                after[file.path] = read_text_file(file.path, file.after)
            elif file.problem and before.get(file.path) and before[file.path].tests:
                yield make_finding(
                    "unreadable_test",
                    file.path,
                    0,
                    "",
                    f"the test file {file.problem}",
                    severity="high",
                )
        for path in before.keys() & after.keys():
            # `add.test.js` that mocks `../add` tests nothing.
            subject = PurePosixPath(path).name.partition(".")[0]
            for module in after[path].mocked - before[path].mocked:
                if PurePosixPath(module).name.partition(".")[0] == subject:
                    yield make_finding(
                        "replaced",
                        path,
                        0,
                        module,
                        f"the tests now mock what they are about: `{module}`",
                        severity="medium",
                    )
        yield from _text_tests(before, after)
        yield from _text_marks(before, after)

    # -- product code

    def _patterns(self) -> Iterator[IntegrityFinding]:
        values = self._test_values()
        known = {
            line.strip()
            for file in self._files
            if file.before is not None and not is_test_path(file.path)
            for line in file.before.split("\n")
        }
        for file in self._files:
            if file.after is None or not (is_source(file.path) or language_of(file.path)):
                continue
            is_test = is_test_path(file.path)
            yield from pattern_findings(file, known, is_test=is_test)
            if file.path.endswith(".py"):
                yield from caller_findings(file, is_test=is_test)
            if not is_test:
                yield from literal_findings(file, values)

    def _test_values(self) -> TestValues:
        """Literals of tests that are new or differ from the base."""
        values: set[str] = set()
        for path, parsed in self._after.items():
            if not is_test_path(path):
                continue
            old = self._before.get(path)
            for test in parsed.tests.values():
                before = old.tests.get(test.name) if old is not None else None
                values |= (
                    test.constants if before is None or before.source != test.source else set()
                )
        return TestValues(frozenset(values), tuple(self._unchanged))


def _is_scope_of(scope: str, tests: Collection[str]) -> bool:
    """True for a new test, and for a class of new tests alone."""
    return scope in tests or (bool(scope) and any(name.startswith(f"{scope}.") for name in tests))


def _number_of(test: PythonTest) -> int:
    """Number of tests that a runner makes of it."""
    return ANY_NUMBER if test.cases is None else test.cases


def _is_test_module(path: str) -> bool:
    return _is_collected_name(path) if path.endswith(".py") else True


def _looks_like_support(path: str) -> bool:
    name = PurePosixPath(path).name
    return (
        name.startswith(
            (
                "conftest",
                "__init__",
                "helper",
                "util",
                "common",
                "fixture",
                "base",
                "typing_",
                "bench",
            )
        )
        or "/typing/" in path
        or "/data/" in path
        or "/fixtures/" in path
    )


def _helpers(files: dict[str, PythonFile]) -> dict[str, PythonTest]:
    return {
        name: function for parsed in files.values() for name, function in parsed.functions.items()
    }


def _new_helpers(before: dict[str, PythonTest], after: dict[str, PythonTest]) -> frozenset[str]:
    return frozenset(
        name
        for name, function in after.items()
        if name not in before or before[name].source != function.source
    )


def similarity(one: PythonTest, other: PythonTest) -> float:
    """Share of names and constants that two tests have in common."""
    both = (one.tokens & other.tokens).total()
    either = (one.tokens | other.tokens).total()
    return both / either if either else float(one.leaf == other.leaf)


def _matched(
    before: Sequence[_Located], after: Sequence[_Located]
) -> tuple[list[tuple[_Located, _Located]], list[_Located], list[_Located]]:
    """Pairs of the same test, tests of the base without one, and new tests."""
    by_key = {(now.path, now.test.name): now for now in after}
    pairs, left = [], []
    for old in before:
        now = by_key.pop((old.path, old.test.name), None)
        if now is not None:
            pairs.append((old, now))
        else:
            left.append(old)
    new = list(by_key.values())
    by_leaf: dict[str, list[_Located]] = defaultdict(list)
    for now in new:
        by_leaf[now.test.leaf].append(now)
    taken: set[tuple[str, str]] = set()
    waiting = []
    for old in left:
        named = [now for now in by_leaf[old.test.leaf] if (now.path, now.test.name) not in taken]
        best = max(named, key=lambda now: similarity(old.test, now.test), default=None)
        if best is not None and similarity(old.test, best.test) >= 0.3:
            taken.add((best.path, best.test.name))
            pairs.append((old, best))
        else:
            waiting.append(old)
    lost = []
    free = [now for now in new if (now.path, now.test.name) not in taken]
    budget = _MAX_PAIRS
    for old in waiting:
        budget -= len(free)
        scored = (
            [
                (similarity(old.test, now.test), now)
                for now in free
                if (now.path, now.test.name) not in taken
            ]
            if budget > 0
            else []
        )
        score, best = max(scored, key=lambda item: item[0], default=(0.0, None))
        if best is not None and score >= _SIMILAR:
            taken.add((best.path, best.test.name))
            pairs.append((old, best))
        else:
            lost.append(old)
    return pairs, lost, [now for now in new if (now.path, now.test.name) not in taken]


def _covering(lost: PythonTest, tests: Sequence[PythonTest]) -> PythonTest | None:
    """A test that now has the calls and constants of one that is gone, as after parametrising."""
    own = _own_constants(lost)
    strongest = max((assertion.strength for assertion in lost.assertions), default=NOTHING)
    for test in tests:
        strength = max((assertion.strength for assertion in test.assertions), default=NOTHING)
        shared = lost.calls & test.calls
        if (
            own
            and own <= test.constants
            and strength >= strongest
            and len(shared) * 2 >= len(lost.calls)
        ):
            return test
    return None


def _own_constants(test: PythonTest) -> frozenset[str]:
    return frozenset(value for value in test.constants if not value.startswith(("'''", '"""')))


_SWALLOWS = re.compile(r"\bexcept(?:\s*:|\s+(?:Base)?Exception\b|\s+AssertionError\b)|\bsuppress\(")


def _weaker(
    old: _Located,
    now: _Located,
    before: Sequence[Assertion],
    after: Sequence[Assertion],
    new_helpers: frozenset[str],
    helper_in: Callable[[str], PythonTest | None],
) -> Iterator[IntegrityFinding]:
    """Findings about one test that both sides have."""
    path, name = now.path, now.test.name

    def found(
        kind: str, line: int, text: str, was: str = "", is_: str = "", severity: Severity = "high"
    ) -> IntegrityFinding:
        return make_finding(
            kind,
            path,
            line,
            name,
            f"{'test' if now.test.leaf.startswith('test') else 'helper'} `{name}`: {text}",
            before=was,
            after=is_,
            severity=severity,
        )

    if now.test.early_return and not old.test.early_return:
        yield found("early_return", now.test.early_return, "returns before its assertions")
    if (
        old.test.cases is not None
        and now.test.cases is not None
        and now.test.cases < old.test.cases
    ):
        fewer = found(
            "fewer_cases", now.test.line, f"has {now.test.cases} cases instead of {old.test.cases}"
        )
        yield fewer.model_copy(update={"tests": old.test.cases - now.test.cases})
    for wrapper in now.test.contexts - old.test.contexts:
        helper = helper_in(wrapper)
        if wrapper in new_helpers and helper is not None and _SWALLOWS.search(helper.text):
            text = f"runs inside `{wrapper}`, which this branch adds or changes and which catches failures"
            yield found("weaker_assertion", now.test.line, text, is_=helper.text)
    for decorator in now.test.decorators:
        called = re.split(r"[.(]", decorator)[-1 if "(" not in decorator else 0]
        if decorator not in old.test.decorators and called in new_helpers:
            yield found(
                "weaker_assertion",
                now.test.line,
                f"is wrapped by `@{decorator}`, which this branch adds or changes",
                severity="medium",
            )
    if _is_async(now.test) and not _is_async(old.test) and not _runs_async(now.test):
        yield found(
            "uncollected_test",
            now.test.line,
            "is now `async` without a mark that runs it",
            severity="medium",
        )
    yield from _weaker_assertions(found, before, after, now.test.line)


def _is_async(test: PythonTest) -> bool:
    return re.search(r"^async def ", test.text, re.MULTILINE) is not None


def _runs_async(test: PythonTest) -> bool:
    return any(re.search(r"asyncio|anyio|trio|gen_test", item) for item in test.decorators)


def _weaker_assertions(
    make: Callable[..., IntegrityFinding],
    before: Sequence[Assertion],
    after: Sequence[Assertion],
    line: int,
) -> Iterator[IntegrityFinding]:
    left = [assertion for assertion in before if assertion.strength > NOTHING]
    there = list(after)
    removed: list[Assertion] = []
    for old in left:
        same = next(
            (now for now in there if now.text == old.text and now.strength >= old.strength), None
        )
        if same is None:
            removed.append(old)
            continue
        there.remove(same)
        if same.is_conditional and not old.is_conditional:
            yield make(
                "weaker_assertion",
                same.line,
                "an assertion now runs only under a condition",
                old.text,
                same.text,
                "medium",
            )
    missing: list[Assertion] = []
    for old in sorted(removed, key=lambda assertion: -assertion.strength):
        best = max(there, key=lambda now: _fit(old, now), default=None)
        if best is None:
            missing.append(old)
            continue
        there.remove(best)
        if best.strength == NOTHING:
            yield make(
                "weaker_assertion",
                best.line,
                f"an assertion can no longer fail: {best.without_effect or 'it always holds'}",
                old.text,
                best.text,
            )
        elif best.strength < old.strength:
            yield make("weaker_assertion", best.line, "an assertion says less", old.text, best.text)
        elif best.tolerance > old.tolerance * 1.0000001 and best.strength == old.strength:
            yield make(
                "weaker_assertion",
                best.line,
                f"a tolerance is wider ({old.tolerance:g}, now {best.tolerance:g})",
                old.text,
                best.text,
                "high" if old.tolerance else "medium",
            )
        elif best.is_conditional and not old.is_conditional:
            yield make(
                "weaker_assertion",
                best.line,
                "an assertion now runs only under a condition",
                old.text,
                best.text,
                "medium",
            )
        elif best.strength >= EXACT and best.text != old.text:
            yield make(
                "changed_expectation",
                best.line,
                "what is expected was changed",
                old.text,
                best.text,
                "low",
            )
    added = [now for now in after if now.text not in {old.text for old in before}]
    for old in missing:
        if old.strength <= PARTIAL and any(_contains(now, old) for now in added):
            continue
        yield make("removed_assertion", line, "an assertion was removed", old.text)


_WORDS = re.compile(r"\w+")


_SPECIFIC_NAME = re.compile(r"'[^']{4,}'|\b[A-Z]\w{3,}")
"""Literals, and names of classes."""


def _contains(now: Assertion, old: Assertion) -> bool:
    """True when a stronger new assertion names all that a weaker one was about, as `pytest.warns(X, match=…)` does."""
    names = _SPECIFIC_NAME.findall(old.text.removeprefix("self."))
    return bool(names) and now.strength > old.strength and all(name in now.text for name in names)


def _fit(old: Assertion, now: Assertion) -> tuple[bool, float, int]:
    """Rank an assertion as a replacement of one that is gone."""
    one, other = set(_WORDS.findall(old.text)), set(_WORDS.findall(now.text))
    overlap = len(one & other) / (len(one | other) or 1)
    return (now.strength >= old.strength and overlap >= 0.25, overlap, now.strength)


def _text_tests(
    before: dict[str, TextFile], after: dict[str, TextFile]
) -> Iterator[IntegrityFinding]:
    old_tests = [(path, test) for path, parsed in before.items() for test in parsed.tests]
    by_key: dict[tuple[str, str], list[TextTest]] = defaultdict(list)
    for path, parsed in after.items():
        for test in parsed.tests:
            by_key[path, test.name].append(test)
    waiting: list[tuple[str, TextTest]] = []
    for path, old in old_tests:
        same = by_key.get((path, old.name))
        if same:
            yield from _weaker_text(path, old, same.pop(0))
        else:
            waiting.append((path, old))
    free = [(path, test) for (path, _), tests in by_key.items() for test in tests]
    budget = _MAX_PAIRS
    gone: dict[str, list[TextTest]] = defaultdict(list)
    for path, old in waiting:
        budget -= len(free)
        named = [item for item in free if item[1].name == old.name]
        candidates = named or (free if budget > 0 else [])
        best = max(candidates, key=lambda item: _alike(old, item[1]), default=None)
        if best is not None and (named or _alike(old, best[1]) >= _SIMILAR):
            free.remove(best)
            yield from _weaker_text(best[0], old, best[1])
        else:
            gone[path].append(old)
    for path, tests in gone.items():
        if path not in after and len(tests) > 1:
            yield make_finding(
                "deleted_test",
                path,
                0,
                path,
                f"the test file was deleted with {len(tests)} tests",
                severity="high",
                tests=ANY_NUMBER,
            )
            continue
        for test in tests:
            yield make_finding(
                "deleted_test",
                path,
                test.line,
                test.name,
                f"test `{test.name}` was deleted",
                severity="high",
                tests=ANY_NUMBER,
            )


def _alike(one: TextTest, other: TextTest) -> float:
    either = (one.words | other.words).total()
    return (one.words & other.words).total() / either if either else 0.0


def _weaker_text(path: str, old: TextTest, now: TextTest) -> Iterator[IntegrityFinding]:
    if old.words == now.words and old.assertions == now.assertions:
        return
    subject = f"test `{now.name}`"
    if now.returns_early and not old.returns_early:
        yield make_finding(
            "early_return",
            path,
            now.line,
            now.name,
            f"{subject}: returns before its assertions",
            severity="high",
        )
    if now.assertions < old.assertions:
        yield make_finding(
            "removed_assertion",
            path,
            now.line,
            now.name,
            f"{subject}: has {now.assertions} assertions instead of {old.assertions}",
            severity="high",
        )
    elif now.empty > old.empty:
        yield make_finding(
            "weaker_assertion",
            path,
            now.line,
            now.name,
            f"{subject}: an assertion always holds",
            severity="high",
        )
    elif now.strong < old.strong:
        yield make_finding(
            "weaker_assertion",
            path,
            now.line,
            now.name,
            f"{subject}: an assertion says less (only that there is a value)",
            severity="high",
        )


def _text_marks(
    before: dict[str, TextFile], after: dict[str, TextFile]
) -> Iterator[IntegrityFinding]:
    left = Counter(text for parsed in before.values() for _, text in parsed.marks)
    for path, parsed in after.items():
        for line, text in parsed.marks:
            if left[text]:
                left[text] -= 1
                continue
            yield make_finding(
                "new_skip",
                path,
                line,
                text,
                "a new mark keeps tests from running or from counting",
                after=text,
                severity="high",
                tests=ANY_NUMBER,
            )


def stopping(findings: Iterable[IntegrityFinding]) -> tuple[IntegrityFinding, ...]:
    """Findings that a developer or a person has to answer for."""
    return tuple(finding for finding in findings if finding.severity != "low")
