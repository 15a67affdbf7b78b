"""Product code that behaves in another way under test, and files that change how tests run."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from podium.jobs.pipeline.test_integrity.findings import (
    FileVersions,
    IntegrityFinding,
    Severity,
    added_lines,
    make_finding,
    quote,
)
from podium.jobs.pipeline.test_integrity.python_tests import PythonFile, SkipMark, parse_python

_SOURCES = frozenset(
    [
        ".py",
        ".pyi",
        ".js",
        ".jsx",
        ".mjs",
        ".cjs",
        ".ts",
        ".tsx",
        ".mts",
        ".cts",
        ".go",
        ".rs",
        ".java",
        ".kt",
        ".scala",
        ".groovy",
        ".cs",
        ".rb",
        ".php",
        ".c",
        ".cc",
        ".cpp",
        ".h",
        ".sh",
        ".bash",
    ]
)
_UNDER_TEST = re.compile(
    r"""["']pytest["']\s*(?:not\s+)?in\s+(?:sys\.)?modules|["']unittest["']\s*(?:not\s+)?in\s+(?:sys\.)?modules|modules\.get\(\s*["'](?:pytest|unittest)["']
    |PYTEST_CURRENT_TEST|PYTEST_VERSION|PYTEST_XDIST_WORKER|\b_called_from_test\b
    |NODE_ENV['"\]]*\s*(?:===?|!==?)\s*['"]test['"]|['"]test['"]\s*(?:===?|!==?)\s*process\.env\.NODE_ENV|JEST_WORKER_ID|process\.env\.(?:VITEST|JEST|MOCHA)\w*|import\.meta\.vitest
    |flag\.Lookup\(\s*"test\.|testing\.Testing\(\)|strings\.HasSuffix\(os\.Args\[0\],\s*"\.test"
    |\bcfg!\(\s*test\s*\)|Rails\.env\.test\?|RAILS_ENV['"\]]*\s*==\s*['"]test['"]|RACK_ENV['"\]]*\s*==\s*['"]test['"]
    |(?:APP_ENV|ENVIRONMENT)['"\])]*\s*===?\s*['"]test(?:ing)?['"]
    |sys\.argv[^\n]{0,60}(?:pytest|unittest|py\.test)|inspect\.(?:stack|currentframe)\([^\n]{0,120}test|sys\._getframe\([^\n]{0,120}test
    |isRunningTests?\b|\bclassIsLoaded\(["']org\.junit|Class\.forName\(\s*"org\.junit""",
    re.VERBOSE,
)
_EXITS = re.compile(
    r"\bos\._exit\s*\(|^from\s+os\s+import\b[^\n]*\b_exit\b|\bos\.exec[lv]\w*\s*\(|\bos\.abort\s*\(|\bprocess\.exit\(\s*0|\bSystem\.exit\(\s*0|\bos\.Exit\(\s*0|std::process::exit\(\s*0|\bprocess\.exitCode\s*=\s*0"
)
_PATCHES = re.compile(
    r"(?:TestCase|unittest\.\w+|builtins|_pytest[\w.]*|pytest|pluggy)\.(?:assert\w*|fail|failUnless|run|main|raises|fixture|AssertionError|\w*[Rr]eport\w*|call_runtest_hook)\s*=(?!=)"
    r"|\bself\.(?:assert\w+|fail)\s*=(?!=)|\b(?:node|item|pyfuncitem)\.(?:_?obj|runtest)\s*=(?!=)|\bself\._outcome\b|\bpluginmanager\.(?:register|unregister|set_blocked|import_plugin)\(|setattr\(\s*(?:\w+\.)*(?:TestCase|unittest|builtins|pytest|_pytest|TestResult)\b|TestResult\.\w+\s*=(?!=)|\bAssertionError\s*=(?!=)|\b(?:expect|assert|global(?:This)?\.(?:expect|it|test|describe))\s*=\s*(?!=)(?:\(|function|async|\w+\s*=>)"
)
_HOOKS = frozenset(
    (
        "pytest_collection_modifyitems", "pytest_runtest_makereport", "pytest_runtest_call", "pytest_runtest_protocol",
        "pytest_sessionfinish", "pytest_ignore_collect", "pytest_collect_file", "pytest_pyfunc_call", "pytest_itemcollected",
        "pytest_report_teststatus", "pytest_runtest_setup", "pytest_runtestloop", "pytest_pycollect_makeitem", "pytest_make_collect_report",
        "pytest_collectreport", "pytest_deselected", "pytest_collection", "pytest_collection_finish", "pytest_runtest_logreport", "pytest_unconfigure",
        "pytest_cmdline_main", "pytest_cmdline_parse", "pytest_cmdline_preparse", "pytest_load_initial_conftests", "pytest_exception_interact",
        "pytest_plugins", "pytest_sessionstart", "pytest_configure", "pytest_generate_tests", "load_tests", "pytest_collect_directory", "pytest_pycollect_makemodule",
    )
)  # fmt: skip
_HARMLESS_HOOK = re.compile(
    r"^\s*(?:def |async def |\"|'|config\.addinivalue_line|config\.option\b|parser\.|pass\b|import |from |os\.environ\[|return\s*$|return None$)"
)
_SHADOWS = re.compile(
    r"^(?:src/|lib/)?(?:pytest|unittest|_pytest|pluggy|sitecustomize|usercustomize|doctest|nose|coverage|jest|mocha|chai|vitest)(?:\.py$|/__init__\.py$|\.pth$)"
)
_START_FILES = ("sitecustomize.py", "usercustomize.py")


@dataclass(frozen=True)
class TestValues:
    """Literals of tests that are new or were changed, and texts of tests that were not."""

    __test__ = False
    values: frozenset[str]
    texts: tuple[str, ...] = ()

    def have(self, literals: Collection[str]) -> bool:
        """Tell whether the literals are in changed tests, or on one line of an unchanged one."""
        if all(literal in self.values for literal in literals):
            return True
        patterns = [_literal_pattern(literal) for literal in set(literals)]
        return any(
            all(pattern.search(line) for pattern in patterns)
            for text in self.texts
            if all(pattern.search(text) for pattern in patterns)
            for line in text.split("\n")
        )


def _literal_pattern(literal: str) -> re.Pattern[str]:
    if literal[:1] in "'\"b":
        return re.compile(re.escape(literal.lstrip("b").strip("'\"")))
    return re.compile(rf"(?<![\w.]){re.escape(literal)}(?![\w.])")


def is_source(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in _SOURCES


def is_start_file(path: str) -> bool:
    """Tell whether Python runs it by itself, or it takes the place of a test runner."""
    name = PurePosixPath(path).name
    return name in _START_FILES or name.endswith(".pth") or _SHADOWS.match(path) is not None


def start_file_findings(file: FileVersions) -> Iterator[IntegrityFinding]:
    if file.after is None and not file.problem:
        return
    how = "was added" if file.before is None else "was changed"
    text = f"{how}; it runs before the tests or in place of the test runner"
    yield IntegrityFinding(kind="hidden_hook", path=file.path, line=1, text=text)


def pattern_findings(
    file: FileVersions, known: Collection[str], *, is_test: bool
) -> Iterator[IntegrityFinding]:
    """Added lines that ask whether tests run (in product code), end the process, or replace assertions.

    `known` lines of the product were in another file before.
    """
    for number, line in added_lines(file):
        is_moved = not is_test and line in known
        line = line[:2_000]
        if is_moved or line.startswith(("#", "//", "*", "/*")):
            continue
        if not is_test and (match := _UNDER_TEST.search(line)):
            text = f"product code asks whether tests are running (`{quote(match[0])}`)"
            yield _at(file, number, "special_case", match[0], text, line, "high")
        if (match := _EXITS.search(line)) and (
            is_test or "_exit" in match[0] or "abort" in match[0]
        ):
            text = "ends the process, which can hide the result of tests"
            yield _at(
                file, number, "hidden_hook", match[0], text, line, "high" if is_test else "medium"
            )
        if match := _PATCHES.search(line):
            text = "replaces an assertion or a part of the test runner"
            yield _at(file, number, "hidden_hook", match[0], text, line, "high")


def hook_findings(
    file: FileVersions, before: PythonFile | None, after: PythonFile, product: Collection[str]
) -> Iterator[IntegrityFinding]:
    """Hooks of a conftest or plugin that are new or changed. A plugin counts if it is a file of the product."""
    for name, (line, text) in after.hooks.items():
        old = before.hooks.get(name) if before is not None else None
        if name not in _HOOKS or (old is not None and old[1] == text):
            continue
        body = [row for row in text.split("\n") if row.strip()]
        if all(_HARMLESS_HOOK.match(row) for row in body):
            continue
        if name == "pytest_plugins" and not _names_file(text, product):
            continue
        how = "new" if old is None else "changed"
        severity: Severity = (
            "medium"
            if name
            in (
                "pytest_configure",
                "pytest_sessionstart",
                "pytest_generate_tests",
                "pytest_runtest_setup",
            )
            else "high"
        )
        finding = _at(
            file,
            line,
            "hidden_hook",
            name,
            f"hook `{name}` is {how}; it can change which tests run and how they end",
            "",
            severity,
        )
        yield finding.model_copy(
            update={"before": quote(old[1]) if old else "", "after": quote(text)}
        )


def _names_file(text: str, tree: Collection[str]) -> bool:
    modules = [f"{name.replace('.', '/')}.py" for name in re.findall(r"['\"]([\w.]+)['\"]", text)]
    return any(path == module or path.endswith(f"/{module}") for module in modules for path in tree)


_LOOKS_AROUND = re.compile(
    r"\binspect\.(?:stack|currentframe|trace)\b|\b_getframe\b|\btraceback\.(?:extract|format|walk)_stack\b|\bsys\.(?:orig_)?argv\b"
    r"|\bsys\.modules\b"
)
_ABOUT_TESTS = re.compile(
    r"(?<![a-z])(?:py\.?test|unittest|nose|tests?)(?![a-z])|(?<![a-z])test_", re.IGNORECASE
)
_TESTS_OWN = re.compile(
    r"^\s*(?:from|import) (?:tests?|conftest)\b|(?:Path|open|read_text|glob)\('[^'\s]*(?:\btests?/|\btest_\w+\.py|\bconftest\.py)",
    re.MULTILINE,
)
_BESIDE = re.compile(
    r"(?:bench\w*|scripts?|docs?|tools?|examples?|bin|\.?ci)/|(?:setup|noxfile|tasks|fabfile)\.py$"
)
"""Files that are neither the product nor its tests."""
_RUNNERS_NAME = re.compile(r"pytest|unittest", re.IGNORECASE)


def caller_findings(file: FileVersions, *, is_test: bool) -> Iterator[IntegrityFinding]:
    """New code of the product that looks at who runs it and knows the names of tests, and comparisons that always hold."""
    tree = parse_python(file.after) if file.after is not None else None
    old_tree = parse_python(file.before) if file.before is not None else None
    if tree is None:
        return
    old = {ast.dump(node) for node in _units(old_tree)} if old_tree is not None else set()
    for node in _units(tree):
        if ast.dump(node) in old:
            continue
        text = ast.unparse(node)
        literals = [
            part.value
            for part in ast.walk(node)
            if isinstance(part, ast.Constant)
            and isinstance(part.value, str)
            and part.value != _docstring(node)
        ]
        looks = _LOOKS_AROUND.search(text)
        about = _ABOUT_TESTS if looks else _RUNNERS_NAME if "environ" in text else None
        names = (value for value in literals if not re.search(r"^-|\s", value))
        named = next((value for value in names if about and about.search(value)), "")
        if named and not is_test:
            where = looks[0] if looks else "os.environ"
            what = f"product code asks who runs it: `{where}` with {named!r}"
            yield _at(file, node.lineno, "special_case", named, what, text, "high")
        is_product = not is_test and not _BESIDE.match(file.path)
        if is_product and (match := _TESTS_OWN.search(text)):
            what = f"product code reads or imports tests (`{quote(match[0])}`)"
            yield _at(file, node.lineno, "special_case", match[0], what, text, "high")
        for inner in ast.walk(node):
            if _equals_always(inner):
                what = "equality always holds"
                yield _at(
                    file, node.lineno, "special_case", "__eq__", what, ast.unparse(inner), "high"
                )


def _units(tree: ast.Module) -> Iterator[ast.stmt]:
    """Functions and methods one by one, and the other statements of the module."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from node.body
        else:
            yield node


def _docstring(node: ast.stmt) -> str | None:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return ast.get_docstring(node, clean=False)
    return None


def _equals_always(node: ast.AST) -> bool:
    """Tell whether it defines an equality of which the answer is always yes."""
    match node:
        case ast.FunctionDef(name="__eq__", body=[*before, ast.Return(ast.Constant(True))]):
            return all(isinstance(item, ast.Expr) for item in before)
        case ast.Assign([ast.Name("__eq__")], ast.Lambda(body=ast.Constant(True))):
            return True
    return False


def literal_findings(file: FileVersions, expected: TestValues) -> Iterator[IntegrityFinding]:
    """Conditions of product code that name literals of tests and give the literal that the test expects."""
    if not file.path.endswith(".py") or file.after is None:
        return
    tree = parse_python(file.after)
    old_tree = parse_python(file.before) if file.before is not None else None
    if tree is None:
        return
    old = {ast.unparse(node) for node in _branches(old_tree)} if old_tree is not None else set()
    for node in _branches(tree):
        text = ast.unparse(node)
        if text in old:
            continue
        for compared, results in _cases_of(node):
            if (
                not compared
                or not results
                or not (any(map(_is_data, compared)) or len(compared) > 1)
            ):
                continue
            if not any(map(_is_data, (*compared, *results))):
                continue
            answers = [value for value in results if expected.have([*compared, value])]
            if answers:
                listed = quote(", ".join(dict.fromkeys((*compared, *answers))))
                what = f"product code has the literals of a test in a condition ({listed})"
                yield _at(file, node.lineno, "special_case", text[:200], what, text, "high")
                break
    yield from _constant_functions(file, tree, old_tree, expected)


def _branches(tree: ast.AST) -> Iterator[ast.If | ast.IfExp | ast.Dict | ast.Match]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp | ast.Match) or (
            isinstance(node, ast.Dict) and 0 < len(node.keys) <= 50
        ):
            yield node


_Case = tuple[list[str], list[str]]


def _cases_of(node: ast.If | ast.IfExp | ast.Dict | ast.Match) -> Iterator[_Case]:
    """Literals that are compared, and literals that are then the result."""
    match node:
        case ast.If():
            yield _compared(node.test), [value for item in node.body for value in _results(item)]
        case ast.IfExp():
            yield _compared(node.test), _literals(node.body)
        case ast.Match():
            for case in node.cases:
                values = [
                    part.value
                    for part in ast.walk(case.pattern)
                    if isinstance(part, ast.MatchValue)
                ]
                compared = [literal for value in values for literal in _literals(value)]
                yield compared, [value for item in case.body for value in _results(item)]
        case ast.Dict():
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Tuple) or _is_number(key):
                    yield _literals(key), _literals(value)


def _is_number(node: ast.expr | None) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    )


def _compared(test: ast.expr) -> list[str]:
    found: list[str] = []
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.In | ast.Is):
            found += [value for part in (node.left, *node.comparators) for value in _literals(part)]
    return found


def _results(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.Return | ast.Assign | ast.Expr) and statement.value is not None:
        return _literals(statement.value) if not isinstance(statement.value, ast.Call) else []
    return []


def _literals(node: ast.expr | None) -> list[str]:
    """Literals in an expression, but for indexes and parts of texts."""
    literals: list[str] = []
    waiting: list[ast.AST] = [node] if node is not None else []
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, ast.Constant) and not (
            isinstance(part.value, bool) or part.value is None
        ):
            literals.append(repr(part.value)[:200])
        elif isinstance(part, ast.Subscript):
            waiting.append(part.value)
        elif not isinstance(part, ast.JoinedStr):
            waiting += ast.iter_child_nodes(part)
    return literals


def _is_data(value: str) -> bool:
    """Tell a value that only a test would name from a keyword or a common border."""
    if value in ("0", "1", "-1", "''", "b''", "2", "10", "100", "0.0", "1.0"):
        return False
    if value[:1] in "'\"b":
        text = value.lstrip("b").strip("'\"")
        return bool(re.search(r"[\s\d]", text)) and len(text) > 2
    return True


def _constant_functions(
    file: FileVersions, tree: ast.Module, old_tree: ast.Module | None, expected: TestValues
) -> Iterator[IntegrityFinding]:
    """Functions that computed before and only return what a test expects now."""
    if old_tree is None:
        return
    before = {node.name: node for node in ast.walk(old_tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or node.name not in before or not node.args.args:
            continue
        value, old = _only_constant(node), _only_constant(before[node.name])
        if value and not old and _is_data(value) and expected.have([value]):
            yield _at(
                file,
                node.lineno,
                "special_case",
                node.name,
                f"function `{node.name}` no longer computes: it returns {value}, which a test expects",
                ast.unparse(node),
                "high",
            )


def _only_constant(node: ast.FunctionDef) -> str:
    body = [
        item
        for item in node.body
        if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))
    ]
    if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
        values = _literals(body[0].value)
        return values[0] if isinstance(body[0].value, ast.Constant) and values else ""
    return ""


def new_skips(before: Collection[SkipMark], after: Collection[SkipMark]) -> Iterator[SkipMark]:
    """Marks of the branch that the base does not have, counted by their text."""
    left: dict[str, int] = {}
    for skip in before:
        left[skip.text] = left.get(skip.text, 0) + 1
    for skip in after:
        if left.get(skip.text):
            left[skip.text] -= 1
        else:
            yield skip


def _at(
    file: FileVersions,
    line: int,
    kind: str,
    subject: str,
    text: str,
    after: str,
    severity: Severity,
) -> IntegrityFinding:
    return make_finding(kind, file.path, line, subject, text, after=after, severity=severity)
