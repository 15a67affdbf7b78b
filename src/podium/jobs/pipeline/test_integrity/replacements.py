"""Tests of which something is replaced: the product by mocks, assertions and modules by others, the process by its end."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterator, Mapping

from podium.jobs.pipeline.test_integrity.findings import (
    IntegrityFinding,
    Severity,
    make_finding,
    quote,
)
from podium.jobs.pipeline.test_integrity.python_tests import (
    ASSERTIONS,
    PythonFile,
    PythonTest,
    is_constant_if,
)

_MOCK = re.compile(r"\b(?:Magic|Async|NonCallable)?Mock\(|\bcreate_autospec\(|\bSimpleNamespace\(")
_ASSERTS = re.compile(r"assert|approx|raises|expect")
_SET_UP = frozenset(
    (
        "setUp",
        "setUpClass",
        "setUpModule",
        "asyncSetUp",
        "setup_method",
        "setup_module",
        "setup_class",
        "setup_function",
    )
)
_ENDS = frozenset(("sys.exit", "exit", "quit", "os._exit", "os.abort"))


def replacement_findings(
    path: str,
    before: PythonFile | None,
    after: PythonFile,
    tests: Collection[str],
    packages: Collection[str],
) -> Iterator[IntegrityFinding]:
    """Findings about what a test file, or a conftest, now replaces.

    `tests` are the paths of all files of tests, `packages` the names of the product's packages and modules.
    """
    module = after.tree or ast.Module([], [])
    own = {name for name, source in _sources(module).items() if source in packages} | {*packages}
    yield from _rebound(path, before, module, tests)
    yield from _at_import(path, before, module, own)
    fixtures = {} if before is None else {**before.functions, **before.tests}
    for name, function in (*after.functions.items(), *after.tests.items()):
        old = fixtures.get(name)
        if old is not None and old.source == function.source:
            continue
        if old is None and _is_of_test_case(function, after):
            yield _finding(path, function, f"replaces `{name}` of the test class", None)
        is_test = name in after.tests
        if is_test and old is not None:
            replaced = (_patched(function) - _patched(old)) & function.calls
        elif _is_automatic(function):
            replaced = _patched(function, own) - (_patched(old) if old else set())
        else:
            replaced = set()
        if replaced:
            what = f"replaces what it is about: `{'`, `'.join(sorted(replaced))}`"
            yield _finding(path, function, f"`{function.leaf}` now {what}", old)
        elif old and not is_test and _is_set_up(function) and _mocks(function) > _mocks(old):
            yield _finding(path, function, f"`{function.leaf}` now gives tests a mock", old)


def _is_of_test_case(function: PythonTest, file: PythonFile) -> bool:
    """Tell whether it takes the place of a method that every test case has. A helper may have such a name too."""
    scope, arguments = function.name.rpartition(".")[0], function.node.args.args
    if function.leaf not in ASSERTIONS or not arguments or arguments[0].arg != "self":
        return False
    return function.leaf.startswith("assert") or any(
        name.startswith(f"{scope}.") for name in file.tests
    )


def _patched(function: PythonTest, own: Collection[str] = ()) -> set[str]:
    """Last names of what it patches by mock or monkeypatch, but for the standard library.

    With names of the product's `own` modules: only code of these that is patched by other code.
    """
    names = set()
    for call in ast.walk(function.node):
        if not isinstance(call, ast.Call):
            continue
        called, values = ast.unparse(call.func), call.args
        if re.search(r"(?:^|\.)patch(?:\.object)?$", called) or called.endswith("patch.setattr"):
            is_named = bool(values) and isinstance(values[0], ast.Constant)
            target = ".".join(
                str(part.value) if isinstance(part, ast.Constant) else ast.unparse(part)
                for part in values[: 1 if is_named else 2]
            )
            value = values[1 if is_named else 2 :][:1]
            root, _, rest = target.partition(".")
            name = rest.rpartition(".")[2]
            if own and (
                root not in own
                or name.isupper()
                or (value and not isinstance(value[0], ast.Lambda | ast.Name | ast.Call))
            ):
                continue
            if rest and root not in sys.stdlib_module_names:
                names.add(name)
    return names


def _mocks(function: PythonTest) -> int:
    return len(_MOCK.findall(function.text))


def _is_automatic(function: PythonTest) -> bool:
    return any("fixture" in item and "autouse=True" in item for item in function.decorators)


def _is_set_up(function: PythonTest) -> bool:
    return function.leaf in _SET_UP or any("fixture" in item for item in function.decorators)


def _rebound(
    path: str, before: PythonFile | None, module: ast.Module, tests: Collection[str]
) -> Iterator[IntegrityFinding]:
    """Names that the base's tests import, and that the branch's define themselves or import from other tests."""
    if before is None or before.tree is None:
        return
    imported, now = _imported(before.tree), _imported(module)
    for name in imported.keys() & now.keys():
        source, origin = now[name], imported[name]
        if source == origin:
            continue
        file = f"{source.strip('.').replace('.', '/')}.py"
        is_tests = any(path == file or path.endswith(f"/{file}") for path in tests)
        if is_tests or _ASSERTS.match(name):
            text = f"`{name}` is imported from `{source}` and no longer from `{origin}`"
            yield _at(path, module.body[0], name, text)
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names = [name]
            case ast.Assign(targets=targets):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case _:
                continue
        for name in names:
            if name in imported and ast.dump(node) not in {
                ast.dump(old) for old in before.tree.body
            }:
                text = f"`{name}`, which the tests imported from `{imported[name]}`, is now defined here"
                yield _at(path, node, name, text)


def _imported(tree: ast.Module) -> Mapping[str, str]:
    return {
        alias.asname or alias.name: node.module or "."
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _sources(tree: ast.Module) -> Mapping[str, str]:
    """First part of the module that each imported name is from."""
    return {
        (alias.asname or alias.name).partition(".")[0]: (
            node.module or "" if isinstance(node, ast.ImportFrom) else alias.name
        ).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def _at_import(
    path: str, before: PythonFile | None, tree: ast.Module, own: Collection[str]
) -> Iterator[IntegrityFinding]:
    """Findings about code that runs when the file is imported, and was not there before."""
    old = {ast.dump(node) for node in _top(before.tree)} if before and before.tree else set()
    for node in _top(tree):
        if ast.dump(node) in old:
            continue
        if isinstance(node, ast.ClassDef):
            for item in node.body:
                targets = item.targets if isinstance(item, ast.Assign) else []
                for name in ASSERTIONS.intersection(map(ast.unparse, targets)):
                    yield _at(path, item, name, f"replaces `{name}` of the test class")
        text = ast.unparse(node)
        match node:
            case ast.Expr(value=ast.Call(func=called)) if ast.unparse(called) in _ENDS:
                yield _at(path, node, "exit", "ends the process when it is imported", "high")
            case ast.Raise(exc=ast.expr() as raised) if "SystemExit" in ast.unparse(raised):
                yield _at(path, node, "exit", "ends the process when it is imported", "high")
            case ast.Expr(value=ast.Call(func=ast.Name(id="exec" | "eval" | "setattr" as name))):
                yield _at(path, node, name, f"calls `{name}` when it is imported")
            case ast.Assign(targets=[ast.Subscript() as target]) if re.match(
                r"(?:sys\.modules|globals\(\)|vars\(\)|\w+\.__dict__)", ast.unparse(target)
            ):
                yield _at(path, node, ast.unparse(target), "replaces a module or a name")
            case ast.Assign(targets=[ast.Attribute() as target]):
                root = ast.unparse(target).partition(".")[0]
                if root in own and not isinstance(node.value, ast.Constant):
                    replaced = ast.unparse(target)
                    yield _at(path, node, replaced, f"replaces `{replaced}` for all tests")
            case ast.ImportFrom(module=str(module)) if module.startswith("_pytest.assertion"):
                yield _at(path, node, text, "reaches into how pytest handles assertions")
            case ast.Import(names=names) if any("_pytest.assertion" in a.name for a in names):
                yield _at(path, node, text, "reaches into how pytest handles assertions")


def _top(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that run on import, in conditions too, but for those of a main program."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if isinstance(node, ast.If) and "__main__" not in ast.unparse(node.test):
            waiting += [*([] if is_constant_if(node, False) else node.body), *node.orelse]
        elif isinstance(node, ast.Try | ast.With):
            waiting += node.body


def _finding(
    path: str, function: PythonTest, text: str, old: PythonTest | None
) -> IntegrityFinding:
    finding = _at(path, function.node, function.name, text)
    return finding.model_copy(update={"before": quote(old.text) if old else ""})


def _at(
    path: str, node: ast.stmt, subject: str, text: str, severity: Severity = "medium"
) -> IntegrityFinding:
    after = ast.unparse(node)
    return make_finding(
        "replaced", path, node.lineno, subject, text, after=after, severity=severity
    )
