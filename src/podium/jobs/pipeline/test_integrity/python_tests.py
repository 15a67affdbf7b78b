"""Tests of a Python file, read from its syntax tree: which there are, what they assert, and what keeps them from running."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

EXACT, PARTIAL, WEAK, NOTHING = 3, 2, 1, 0
"""Strength of an assertion: it fixes a value, restricts it, only says that there is one, or always holds."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_MAX_CHARACTERS = 800_000
_BROAD = frozenset({"Exception", "BaseException", "AssertionError"})
_UNITTEST = {
    **dict.fromkeys(
        (
            "assertEqual", "assertEquals", "assertIs", "assertIsNone", "assertDictEqual", "assertListEqual", "assertTupleEqual",
            "assertSetEqual", "assertSequenceEqual", "assertMultiLineEqual", "assertCountEqual", "assertItemsEqual",
            "assertAlmostEqual", "assertAlmostEquals", "fail", "assertQuerysetEqual", "assertContains", "assertRedirects",
        ),
        EXACT,
    ),
    **dict.fromkeys(
        (
            "assertIn", "assertNotIn", "assertGreater", "assertGreaterEqual", "assertLess", "assertLessEqual", "assertRegex",
            "assertNotRegex", "assertLogs", "assertWarns", "assertWarnsRegex", "assertNotContains", "assertNoLogs",
        ),
        PARTIAL,
    ),
    **dict.fromkeys(
        ("assertIsNotNone", "assertNotEqual", "assertIsInstance", "assertNotIsInstance", "assertIsNot", "assertNotAlmostEqual"),
        WEAK,
    ),
}  # fmt: skip
ASSERTIONS = frozenset((*_UNITTEST, "assertTrue", "assertFalse", "assertRaises", "run"))
"""Methods of a test case that no project has to define."""
_MOCK = {
    "assert_called_once_with": EXACT, "assert_called_with": EXACT, "assert_has_calls": EXACT, "assert_any_call": PARTIAL,
    "assert_not_called": EXACT, "assert_called_once": PARTIAL, "assert_called": WEAK, "assert_awaited_once_with": EXACT,
    "assert_awaited_with": EXACT, "assert_awaited_once": PARTIAL, "assert_awaited": WEAK, "assert_not_awaited": EXACT,
}  # fmt: skip
_ARRAYS = re.compile(
    r"assert_(?:allclose|array_\w+|almost_equal|approx_equal|equal|frame_equal|series_equal|index_equal|\w*equal)$"
)
_HELPER = re.compile(r"_?(?:assert|expect|should|verify|check|ensure)(?:_|[A-Z]|$)\w*")
_SKIP_DECORATOR = re.compile(
    r"(?:^|\.)(?:skip|skipif|skipIf|skipUnless|xfail|expectedFailure|skip_\w+|requires_\w+)\b"
)
_SKIP_CALL = re.compile(
    r"(?:^|\.)(?:skipTest|SkipTest|importorskip)$|(?:^|\.)pytest\.(?:skip|xfail|exit)$|^(?:skip|xfail)$"
)
_MAY_SKIP = re.compile(
    r"[sS]kip|pytest\.exit|xfail|expectedFailure|__test__|collect_ignore|requires_"
)
_PLATFORM = re.compile(
    r"sys\.(?:platform|version_info|implementation)|os\.name|platform\.|\bWIN\w*|\bPY\d*\b|is_windows|IS_WIN",
    re.IGNORECASE,
)
_ENVIRONMENT = re.compile(
    r"(?:skipif|skipIf|skipUnless)\(.*(?:shutil\.which|find_spec|\bHAS_\w+|\bHAVE_\w+|_available\b|_installed\b|is None)|importorskip\("
)


@dataclass(frozen=True)
class Assertion:
    text: str
    line: int
    strength: int
    tolerance: float = 0.0
    is_conditional: bool = False
    without_effect: str = ""
    """Reason why it can never fail: unreachable, or its failure is swallowed."""


@dataclass(frozen=True)
class SkipMark:
    """A mark that keeps tests from running or from counting."""

    scope: str
    line: int
    text: str

    @property
    def names_platform(self) -> bool:
        return _PLATFORM.search(self.text) is not None

    @property
    def names_environment(self) -> bool:
        """True for a condition about the machine: its platform, programs and installed packages."""
        return self.names_platform or _ENVIRONMENT.search(self.text) is not None


_Vocabulary = tuple[frozenset[str], Counter[str], frozenset[str]]


@dataclass(frozen=True, eq=False)
class PythonTest:
    """A function that looks like a test. What costs time is read when it is asked for: most tests are unchanged."""

    name: str
    """Qualified: `Class.test_x`."""
    node: _Function
    source: str
    """Its lines, with its decorators."""
    constants_of_module: Mapping[str, ast.expr]
    never_runs: str = ""
    """Reason why no runner collects it, or why its body does not run."""

    @property
    def leaf(self) -> str:
        return self.node.name

    @property
    def line(self) -> int:
        return self.node.lineno

    @cached_property
    def text(self) -> str:
        return ast.unparse(self.node)

    @cached_property
    def decorators(self) -> tuple[str, ...]:
        return tuple(map(ast.unparse, self.node.decorator_list))

    @property
    def assertions(self) -> tuple[Assertion, ...]:
        return tuple(self._walk.assertions)

    @property
    def early_return(self) -> int:
        """Line of a return before assertions. 0: none."""
        return self._walk.early_return

    @property
    def calls(self) -> frozenset[str]:
        return self._vocabulary[0]

    @property
    def tokens(self) -> Counter[str]:
        """Names and constants, counted."""
        return self._vocabulary[1]

    @property
    def constants(self) -> frozenset[str]:
        return self._vocabulary[2]

    @cached_property
    def cases(self) -> int | None:
        """Number of parameter sets. None: not known from the text."""
        return _cases(self.node, self.constants_of_module)

    @cached_property
    def contexts(self) -> frozenset[str]:
        """Last names of what its `with` statements call."""
        return frozenset(
            _last_name(item.context_expr.func)
            for node in ast.walk(self.node)
            if isinstance(node, ast.With | ast.AsyncWith)
            for item in node.items
            if isinstance(item.context_expr, ast.Call)
        )

    @cached_property
    def _vocabulary(self) -> _Vocabulary:
        return _vocabulary(self.node)

    @cached_property
    def _walk(self) -> _Walk:
        walk = _Walk()
        walk.block(self.node.body, reachable=True, conditional=False, swallowed="")
        return walk


@dataclass(frozen=True)
class PythonFile:
    tests: dict[str, PythonTest] = field(default_factory=dict)
    functions: dict[str, PythonTest] = field(default_factory=dict)
    """Functions that are no tests, by their last name: helpers that may assert."""
    skips: tuple[SkipMark, ...] = ()
    hooks: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Top-level functions of a conftest or plugin, with line and text."""
    tree: ast.Module | None = None


def parse_python(text: str) -> ast.Module | None:
    """Parse it; None when it is not valid Python or too large."""
    if len(text) > _MAX_CHARACTERS:
        return None
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def read_python_file(text: str) -> PythonFile | None:
    """Read its tests. None: it cannot be parsed."""
    tree = parse_python(text)
    if tree is None:
        return None
    try:
        return _Reader(tree, text).read()
    except RecursionError:
        return None


def _hooks(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Hooks of pytest and unittest by their names: functions, also of plugin classes, and assigned ones."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                named = [
                    word.value.value
                    for decorator in node.decorator_list
                    if isinstance(decorator, ast.Call)
                    for word in decorator.keywords
                    if word.arg == "specname" and isinstance(word.value, ast.Constant)
                ]
                name = str(named[0]) if named else node.name
                if name.startswith(("pytest_", "load_tests")):
                    yield name, node
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if name.startswith(("pytest_", "load_tests")):
                    yield name, node
            case ast.If():
                yield from _hooks([*node.body, *node.orelse])
            case ast.Try() | ast.With() | ast.ClassDef():
                yield from _hooks(node.body)


class _Reader:
    def __init__(self, tree: ast.Module, text: str) -> None:
        self._tree = tree
        self._text = text
        self._lines = text.split("\n")
        self._tests: dict[str, PythonTest] = {}
        self._functions: dict[str, PythonTest] = {}
        self._constants: dict[str, ast.expr] = {}

    def read(self) -> PythonFile:
        for node in self._tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self._constants[node.targets[0].id] = node.value
        self._block(self._tree.body, "", in_class=True, why_not="")
        hooks = {name: (node.lineno, ast.unparse(node)) for name, node in _hooks(self._tree.body)}
        may_skip = _MAY_SKIP.search(self._text) is not None
        skips = tuple(_skips_in(self._tree, has_marks="marks=" in self._text)) if may_skip else ()
        return PythonFile(self._tests, self._functions, skips, hooks, self._tree)

    def _block(self, body: Sequence[ast.stmt], scope: str, *, in_class: bool, why_not: str) -> None:
        for node in body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._function(node, scope, in_class=in_class, why_not=why_not)
                case ast.ClassDef():
                    reason = why_not or _why_not_collected(node)
                    self._block(
                        node.body, f"{scope}{node.name}.", in_class=in_class, why_not=reason
                    )
                case ast.If():
                    never = _constant_truth(node.test)
                    self._block(
                        node.body,
                        scope,
                        in_class=in_class,
                        why_not=why_not
                        or (
                            f"`if {ast.unparse(node.test)}` is never true" if never is False else ""
                        ),
                    )
                    self._block(
                        node.orelse,
                        scope,
                        in_class=in_class,
                        why_not=why_not or ("its `else` is never reached" if never is True else ""),
                    )
                case ast.Try():
                    for part in (
                        node.body,
                        node.orelse,
                        node.finalbody,
                        *(handler.body for handler in node.handlers),
                    ):
                        self._block(part, scope, in_class=in_class, why_not=why_not)
                case ast.With():
                    self._block(node.body, scope, in_class=in_class, why_not=why_not)
                case ast.Assign() | ast.AnnAssign() | ast.Delete():
                    self._rebind(node, scope)

    def _rebind(self, node: ast.Assign | ast.AnnAssign | ast.Delete, scope: str) -> None:
        """`del test_x` and `test_x = None` take a test away."""
        targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
        value = None if isinstance(node, ast.Delete) else node.value
        if isinstance(value, ast.Lambda):
            return
        for target in targets:
            name = f"{scope}{target.id}" if isinstance(target, ast.Name) else ""
            if name in self._tests:
                test = self._tests.pop(name)
                reason = f"`{ast.unparse(node)}` removes it"
                self._functions.setdefault(test.leaf, _never(test, reason))

    def _function(self, node: _Function, scope: str, *, in_class: bool, why_not: str) -> None:
        name = f"{scope}{node.name}"
        test = self._read(node, name)
        names = {_decorator_name(decorator) for decorator in node.decorator_list}
        if names & {"fixture", "property", "cached_property"}:
            why_not = why_not or "it is decorated as a fixture or property"
        if not node.name.startswith("test") or why_not or not in_class:
            reason = why_not or (
                "" if node.name.startswith("test") else "its name does not begin with `test`"
            )
            self._functions[node.name] = _never(test, reason)
        else:
            self._tests[name] = test
        # Functions inside are helpers, whatever their names.
        for inner in ast.walk(node):
            if isinstance(inner, _Function) and inner is not node:
                nested = self._read(inner, f"{name}.{inner.name}")
                self._functions.setdefault(
                    inner.name, _never(nested, f"it is defined inside `{node.name}`")
                )

    def _read(self, node: _Function, name: str) -> PythonTest:
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        source = "\n".join(self._lines[first - 1 : node.end_lineno])
        never = "it is a generator: its body does not run" if _is_generator(node) else ""
        return PythonTest(name, node, source, self._constants, never)


def _cases(node: _Function, constants: Mapping[str, ast.expr]) -> int | None:
    total, unknown = 1, False
    for decorator in node.decorator_list:
        if not (
            isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("parametrize")
        ):
            continue
        values = [
            *decorator.args[1:2],
            *(word.value for word in decorator.keywords if word.arg == "argvalues"),
        ]
        value = values[0] if values else None
        if isinstance(value, ast.Name):
            value = constants.get(value.id)
        if isinstance(value, ast.List | ast.Tuple | ast.Set) and not any(
            isinstance(item, ast.Starred) for item in value.elts
        ):
            total *= len(value.elts)
        else:
            unknown = True
    for loop in ast.walk(node):
        if isinstance(loop, ast.For) and isinstance(loop.iter, ast.List | ast.Tuple):
            total *= max(1, len(loop.iter.elts))
    return None if unknown else total


def _never(test: PythonTest, reason: str) -> PythonTest:
    return replace(test, never_runs=test.never_runs or reason)


def _why_not_collected(node: ast.ClassDef) -> str:
    """Reason why runners find no tests in a class; empty where they may."""
    for statement in node.body:
        if (
            isinstance(statement, ast.Assign)
            and ast.unparse(statement.targets[0]) == "__test__"
            and _constant_truth(statement.value) is False
        ):
            return f"class {node.name} sets `__test__ = False`"
    if node.bases or node.name.startswith("Test"):
        makes = any(isinstance(item, _Function) and item.name == "__init__" for item in node.body)
        return f"class {node.name} has an `__init__`" if makes and not node.bases else ""
    return f"class {node.name} is not a test class (its name does not begin with `Test`)"


def _constant_truth(node: ast.expr | None) -> bool | None:
    """Truth of a condition that is decided by its text."""
    match node:
        case ast.Constant():
            return bool(node.value)
        case ast.Name(id="TYPE_CHECKING"):
            return False
        case ast.Attribute(attr="TYPE_CHECKING"):
            return False
        case ast.UnaryOp(op=ast.Not()):
            inner = _constant_truth(node.operand)
            return None if inner is None else not inner
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return False
        case ast.Compare(
            left=ast.Constant(value=one), ops=[op], comparators=[ast.Constant(value=other)]
        ):
            if isinstance(op, ast.Eq):
                return bool(one == other)
            if isinstance(op, ast.NotEq):
                return bool(one != other)
    return None


def is_constant_if(node: ast.If, truth: bool) -> bool:
    """Tell whether the text of a condition decides that it has this truth."""
    return _constant_truth(node.test) is truth


def _is_generator(node: _Function) -> bool:
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        current = waiting.pop()
        if isinstance(current, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(current, (*_FUNCTIONS, ast.ClassDef)):
            waiting += ast.iter_child_nodes(current)
    return False


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _vocabulary(node: _Function) -> tuple[frozenset[str], Counter[str], frozenset[str]]:
    """Names that it calls, all names and constants, and the constants."""
    calls: set[str] = set()
    tokens: Counter[str] = Counter()
    constants: set[str] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Call():
                calls.add(_last_name(inner.func))
            case ast.Name():
                tokens[inner.id] += 1
            case ast.Attribute():
                tokens[inner.attr] += 1
            case ast.Constant() if not isinstance(inner.value, bool) and inner.value is not None:
                value = repr(inner.value)[:200]
                tokens[value] += 1
                constants.add(value)
    return frozenset(calls - {""}), tokens, frozenset(constants)


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Attribute():
            return node.attr
        case ast.Name():
            return node.id
    return ""


class _Walk:
    """Collects the assertions of a function body with what surrounds them."""

    def __init__(self) -> None:
        self.assertions: list[Assertion] = []
        self.early_return = 0
        self._values: dict[str, ast.expr] = {}
        """Values of the local names."""

    def block(
        self,
        body: Sequence[ast.stmt],
        *,
        reachable: bool,
        conditional: bool,
        swallowed: str,
        top: bool = True,
    ) -> bool:
        """Give whether the end of the block is reached whatever happens."""
        inner_names = _names_used(body)
        left_at = 0
        for node in body:
            before = len(self.assertions)
            why = swallowed or ("" if reachable else "it is never reached")
            match node:
                case ast.If():
                    truth = _constant_truth(node.test)
                    self.block(
                        node.body,
                        reachable=reachable and truth is not False,
                        conditional=conditional or truth is None,
                        swallowed=swallowed,
                        top=False,
                    )
                    self.block(
                        node.orelse,
                        reachable=reachable and truth is not True,
                        conditional=conditional or truth is None,
                        swallowed=swallowed,
                        top=False,
                    )
                    if truth is not False and _leaves(node.body) and not node.orelse:
                        conditional = conditional or truth is None
                        if truth is True:
                            reachable, left_at = False, left_at or node.lineno
                case ast.For() | ast.AsyncFor():
                    empty = ast.unparse(node.iter) == "range(0)" or (
                        _constant_truth(node.iter) is False
                        and not isinstance(node.iter, ast.Constant)
                    )
                    self.block(
                        node.body,
                        reachable=reachable and not empty,
                        conditional=conditional,
                        swallowed=swallowed,
                        top=False,
                    )
                    self.block(
                        node.orelse,
                        reachable=reachable,
                        conditional=conditional,
                        swallowed=swallowed,
                        top=False,
                    )
                case ast.While():
                    never = _constant_truth(node.test) is False
                    self.block(
                        node.body,
                        reachable=reachable and not never,
                        conditional=conditional,
                        swallowed=swallowed,
                        top=False,
                    )
                case ast.Try():
                    catches = swallowed or _swallows(node)
                    self.block(
                        node.body,
                        reachable=reachable,
                        conditional=conditional,
                        swallowed=catches,
                        top=False,
                    )
                    for part in (*(handler.body for handler in node.handlers), node.orelse):
                        self.block(
                            part,
                            reachable=reachable,
                            conditional=True,
                            swallowed=swallowed,
                            top=False,
                        )
                    self.block(
                        node.finalbody,
                        reachable=reachable,
                        conditional=conditional,
                        swallowed=swallowed,
                        top=False,
                    )
                case ast.With() | ast.AsyncWith():
                    inner = swallowed
                    for item in node.items:
                        self._expression(item.context_expr, why, conditional)
                        inner = inner or _catches(item.context_expr)
                    ended = self.block(
                        node.body,
                        reachable=reachable,
                        conditional=conditional,
                        swallowed=inner,
                        top=False,
                    )
                    if not ended and not inner and _leaves(node.body):
                        reachable, left_at = False, left_at or node.lineno
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    unused = not node.decorator_list and node.name not in inner_names
                    self.block(
                        node.body,
                        reachable=reachable and not unused,
                        conditional=conditional,
                        swallowed=swallowed,
                        top=False,
                    )
                case ast.ClassDef():
                    self.block(
                        node.body,
                        reachable=reachable,
                        conditional=conditional,
                        swallowed=swallowed,
                        top=False,
                    )
                case ast.Match():
                    for case in node.cases:
                        self.block(
                            case.body,
                            reachable=reachable,
                            conditional=True,
                            swallowed=swallowed,
                            top=False,
                        )
                case ast.Assert():
                    self._assert(node.test, node, why, conditional)
                case ast.Raise() if "AssertionError" in ast.unparse(node):
                    self._add(ast.unparse(node), node, EXACT, why, conditional)
                case _:
                    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                        self._values[node.targets[0].id] = node.value
                    for value in ast.iter_child_nodes(node):
                        if isinstance(value, ast.expr):
                            self._expression(value, why, conditional)
            if top and left_at and len(self.assertions) > before and not self.early_return:
                self.early_return = left_at
            if _leaves([node]) and not isinstance(node, ast.If):
                reachable, left_at = False, left_at or node.lineno
        return reachable

    def _expression(self, node: ast.expr, why: str, conditional: bool) -> None:
        for call in ast.walk(node):
            if isinstance(call, ast.Call):
                self._call(call, why, conditional)

    def _assert(self, test: ast.expr, at: ast.AST, why: str, conditional: bool) -> None:
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            for value in test.values:
                self._assert(value, at, why, conditional)
            return
        strength = strength_of(test)
        if isinstance(test, ast.Compare) and self._is_same(test.left, test.comparators[0]):
            # What the product gives is compared with what it gives.
            strength = min(strength, WEAK)
        self._add(f"assert {ast.unparse(test)}", at, strength, why, conditional, _tolerance(test))

    def _is_same(self, one: ast.expr, other: ast.expr) -> bool:
        values = [
            self._values.get(side.id, side) if isinstance(side, ast.Name) else side
            for side in (one, other)
        ]
        first, second = map(ast.dump, values)
        return first == second or (isinstance(values[0], ast.Call) and first in second)

    def _call(self, node: ast.Call, why: str, conditional: bool) -> None:
        name, whole = _last_name(node.func), ast.unparse(node.func)
        text = ast.unparse(node)
        first = node.args[0] if node.args else None
        if name in ("assertTrue", "assert_", "failUnless") and first is not None:
            if isinstance(first, ast.BoolOp) and isinstance(first.op, ast.And):
                for value in first.values:
                    self._add(
                        f"assertTrue({ast.unparse(value)})",
                        node,
                        strength_of(value),
                        why,
                        conditional,
                        _tolerance(value),
                    )
                return
            self._add(text, node, strength_of(first), why, conditional, _tolerance(first))
        elif name in ("assertFalse", "failIf") and first is not None:
            negated = ast.UnaryOp(op=ast.Not(), operand=first)
            self._add(text, node, strength_of(negated), why, conditional)
        elif name in ("assertRaises", "assertRaisesRegex", "assertRaisesMessage") or whole in (
            "pytest.raises",
            "raises",
        ):
            broad = first is None or ast.unparse(first) in ("Exception", "BaseException")
            named = name != "assertRaises" and (
                name != "raises" or any(word.arg == "match" for word in node.keywords)
            )
            self._add(text, node, (WEAK if broad else EXACT) + named, why, conditional)
        elif whole in ("pytest.warns", "pytest.deprecated_call"):
            self._add(text, node, PARTIAL + bool(node.keywords), why, conditional)
        elif whole == "pytest.fail":
            self._add(text, node, EXACT, why, conditional)
        elif name in _UNITTEST:
            strength = _UNITTEST[name]
            if len(node.args) > 1 and self._is_same(node.args[0], node.args[1]):
                is_plain = ast.dump(node.args[0]) == ast.dump(node.args[1])
                strength = NOTHING if is_plain else min(strength, WEAK)
            self._add(text, node, strength, why, conditional, _tolerance(node))
        elif name in _MOCK:
            self._add(text, node, _MOCK[name], why, conditional)
        elif _ARRAYS.fullmatch(name):
            self._add(text, node, EXACT, why, conditional, _tolerance(node))
        elif _HELPER.fullmatch(name):
            self._add(text, node, PARTIAL, why, conditional)

    def _add(
        self,
        text: str,
        at: ast.AST,
        strength: int,
        why: str,
        conditional: bool,
        tolerance: float = 0.0,
    ) -> None:
        line = getattr(at, "lineno", 0)
        effect = why or ("it always holds" if strength == NOTHING else "")
        self.assertions.append(
            Assertion(text, line, NOTHING if why else strength, tolerance, conditional, effect)
        )


def _names_used(body: Sequence[ast.stmt]) -> set[str]:
    return {
        inner.id
        for node in body
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)
    }


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Tell whether the function ends in it: a return, a skip, or an exit of the process."""
    for node in body:
        if isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break):
            return True
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func)
            if _SKIP_CALL.search(called) and not called.endswith("importorskip"):
                return True
            if called in ("os._exit", "sys.exit", "exit", "quit"):
                return True
    return False


def _swallows(node: ast.Try) -> str:
    """Reason why a failing assertion in the `try` would not be seen; empty when it would."""
    for handler in node.handlers:
        caught = ast.unparse(handler.type) if handler.type is not None else "everything"
        names = set(re.findall(r"\w+", caught))
        if handler.type is not None and not names & _BROAD:
            continue
        body = "\n".join(map(ast.unparse, handler.body))
        if not re.search(r"\braise\b|\bassert|\.fail\(|\bfail\(", body):
            return f"its failure is swallowed (`except` for {caught})"
    return ""


def _catches(node: ast.expr) -> str:
    if not isinstance(node, ast.Call):
        return ""
    names = {name for arg in node.args for name in re.findall(r"\w+", ast.unparse(arg))}
    called = _last_name(node.func)
    if called in ("suppress", "ignored") and names & _BROAD:
        return f"its failure is swallowed (`{ast.unparse(node)}`)"
    if called in ("raises", "assertRaises") and "AssertionError" in names:
        return f"its failure is expected (`{ast.unparse(node)}`)"
    return ""


def strength_of(test: ast.expr) -> int:
    """Strength of a condition that has to hold."""
    truth = _constant_truth(test)
    if truth is not None or (isinstance(test, ast.Tuple) and test.elts):
        return EXACT if truth is False else NOTHING
    match test:
        case ast.BoolOp(op=ast.Or()):
            strengths = [strength_of(value) for value in test.values]
            always = any(_constant_truth(value) is True for value in test.values)
            return NOTHING if always or NOTHING in strengths else min(*strengths, PARTIAL)
        case ast.BoolOp():
            return max(map(strength_of, test.values))
        case ast.UnaryOp(op=ast.Not()):
            inner = test.operand
            if isinstance(inner, ast.Compare) and isinstance(inner.ops[0], ast.NotEq | ast.IsNot):
                return EXACT
            return (
                WEAK
                if isinstance(inner, ast.Compare) and isinstance(inner.ops[0], ast.Eq | ast.Is)
                else PARTIAL
            )
        case ast.Compare():
            return _comparison(test)
        case ast.NamedExpr():
            return strength_of(test.value)
        case ast.Call():
            name = _last_name(test.func)
            if name in ("isinstance", "hasattr", "callable", "bool", "any", "issubclass"):
                return WEAK
            if name in ("allclose", "isclose", "array_equal"):
                return EXACT
            return PARTIAL if test.args else WEAK
    return WEAK


def _comparison(test: ast.Compare) -> int:
    op, right = test.ops[0], test.comparators[0]
    same = ast.dump(test.left) == ast.dump(right)
    if same and not isinstance(op, ast.NotEq | ast.IsNot | ast.Lt | ast.Gt):
        return NOTHING
    if "ANY" in (_last_name(test.left), _last_name(right)):
        return NOTHING
    match op:
        case ast.Eq():
            return EXACT
        case ast.Is():
            return EXACT
        case ast.IsNot() | ast.NotEq():
            return WEAK
        case ast.GtE() if (
            isinstance(right, ast.Constant)
            and right.value == 0
            and ast.unparse(test.left).startswith("len(")
        ):
            return NOTHING
    return PARTIAL


_TOLERANCES = {
    "rel": 1.0,
    "abs": 1.0,
    "rel_tol": 1.0,
    "abs_tol": 1.0,
    "rtol": 1.0,
    "atol": 1.0,
    "delta": 1.0,
}


def _tolerance(node: ast.expr) -> float:
    """The widest tolerance that it names; 0 where it names none."""
    widest = 0.0
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        for word in call.keywords:
            number = _number(word.value)
            if number is None:
                continue
            if word.arg in _TOLERANCES:
                widest = max(widest, number)
            elif word.arg in ("places", "decimal", "significant") and abs(number) < 100:
                widest = max(widest, 10.0**-number)
        name = _last_name(call.func)
        if name == "approx" and len(call.args) > 1:
            widest = max(widest, _number(call.args[1]) or 0.0)
        if name in ("assertAlmostEqual", "assertAlmostEquals") and len(call.args) > 2:
            places = _number(call.args[2])
            widest = max(widest, 10.0**-places if places is not None and abs(places) < 100 else 0.0)
    comparison = node if isinstance(node, ast.Compare) else None
    if (
        comparison is not None
        and isinstance(comparison.ops[0], ast.Lt | ast.LtE)
        and "abs(" in ast.unparse(comparison.left)
    ):
        widest = max(widest, _number(comparison.comparators[0]) or 0.0)
    return widest


def _number(node: ast.expr) -> float | None:
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    ):
        return abs(float(node.value))
    if isinstance(node, ast.UnaryOp):
        return _number(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, power = _number(node.left), node.right
        sign = -1 if isinstance(power, ast.UnaryOp) else 1
        exponent = _number(power)
        if base and exponent is not None and exponent < 100:
            return float(base ** (sign * exponent))
    return None


_SKIP_SETTINGS = ("pytestmark", "__test__", "collect_ignore", "collect_ignore_glob")
_SKIP_NAMES = frozenset({"skip", "xfail", "exit", "skipTest", "SkipTest", "importorskip"})


def _is_skip(called: ast.expr) -> bool:
    return _last_name(called) in _SKIP_NAMES and _SKIP_CALL.search(ast.unparse(called)) is not None


def _decorator_name(node: ast.expr) -> str:
    return _last_name(node.func if isinstance(node, ast.Call) else node)


def _skips_in(tree: ast.Module, *, has_marks: bool) -> Iterator[SkipMark]:
    waiting: list[tuple[ast.AST, str]] = [(node, "") for node in reversed(tree.body)]
    while waiting:
        child, scope = waiting.pop()
        inner = scope
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{scope}.{child.name}" if scope else child.name
            for decorator in child.decorator_list:
                decorated_by = _decorator_name(decorator)
                if _SKIP_DECORATOR.search(decorated_by):
                    yield SkipMark(inner, decorator.lineno, f"@{ast.unparse(decorator)}")
                elif decorated_by == "parametrize" and has_marks:
                    text = ast.unparse(decorator)
                    for marked in re.findall(
                        r"[\w.]*param\([^\n]*?marks=[^\n]*?(?:skip|skipif|xfail)[^\n]*?\)", text
                    ):
                        yield SkipMark(inner, decorator.lineno, marked)
        elif (
            isinstance(child, ast.Assign | ast.AnnAssign | ast.AugAssign)
            and child.value is not None
            and isinstance(
                name := child.targets[0] if isinstance(child, ast.Assign) else child.target,
                ast.Name,
            )
        ):
            target = name.id
            value = ast.unparse(child.value) if target in _SKIP_SETTINGS else ""
            if target == "pytestmark" and re.search(r"\b(?:skip|skipif|xfail)\b", value):
                yield SkipMark(scope, child.lineno, f"pytestmark = {value}")
            elif (target.startswith("collect_ignore") and value) or (
                target == "__test__" and _constant_truth(child.value) is False
            ):
                yield SkipMark(scope, child.lineno, f"{target} = {value}")
        elif (isinstance(child, ast.Call) and _is_skip(child.func)) or (
            isinstance(child, ast.Raise)
            and isinstance(child.exc, ast.Name | ast.Attribute)
            and _last_name(child.exc) in ("SkipTest", "Skipped")
        ):
            yield SkipMark(scope, child.lineno, ast.unparse(child))
        below = [(node, inner) for node in ast.iter_child_nodes(child)]
        waiting += reversed(below)


Resolve = Callable[[str], PythonTest | None]


def with_helpers(test: PythonTest, helper_named: Resolve) -> tuple[Assertion, ...]:
    """Its assertions and those of the helpers that it calls, two levels deep."""
    assertions = [a for a in test.assertions if helper_named(_called(a.text)) is None]
    reached, waiting = {test.leaf}, [(name, 1) for name in sorted(test.calls)]
    while waiting and len(assertions) < 2_000:
        name, depth = waiting.pop()
        helper = helper_named(name)
        if helper is None or name in reached:
            continue
        reached.add(name)
        assertions += [a for a in helper.assertions if helper_named(_called(a.text)) is None]
        waiting += [(inner, depth + 1) for inner in sorted(helper.calls)] if depth < 2 else []
    return tuple(assertions)


def _called(text: str) -> str:
    """Last name of what a piece of code calls first."""
    head = text.partition("(")[0]
    return "" if head.startswith("assert ") else head.rpartition(".")[2]
