"""Changes of a developer to a small project: those that cheat its tests or checks, and honest ones."""

from __future__ import annotations

from dataclasses import dataclass

WRONG = "def add(one, two):\n    return one - two\n"
RIGHT = "def add(one, two):\n    return one + two\n"
SUM = """import unittest

from calc import add


class Sums(unittest.TestCase):
    def test_two_and_two(self):
        self.assertEqual(add(2, 2), 4)

    def test_one_and_three(self):
        self.assertEqual(add(1, 3), 4)
        self.assertEqual(add(3, 1), 4)
"""
VALUES = """import pytest

from values import mean, parse


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("-2", -2), ("30", 30)])
def test_parse(text, value):
    assert parse(text) == value


def test_parse_refuses_words():
    with pytest.raises(ValueError, match="number"):
        parse("seven")


def test_mean():
    assert mean([1.0, 2.0]) == pytest.approx(1.5, abs=1e-6)
    assert mean([]) is None
"""
VALUES_CODE = """def parse(text):
    if not text.lstrip("-").isdigit():
        raise ValueError(f"not a number: {text}")
    return int(text)


def mean(values):
    return sum(values) / len(values) if values else None
"""
SCRIPT = """const { add } = require('../add');

describe('add', () => {
  it('adds two and two', () => {
    expect(add(2, 2)).toBe(4);
  });

  it('adds nothing', () => {
    expect(add(0, 0)).toBe(0);
    expect(add(1, 0)).toEqual(1);
  });
});
"""
GO = """package sum

import "testing"

func TestAdd(t *testing.T) {
	if got := Add(2, 2); got != 4 {
		t.Errorf("got %d", got)
	}
}

func TestZero(t *testing.T) {
	if got := Add(0, 0); got != 0 {
		t.Fatalf("got %d", got)
	}
}
"""
RUST = """pub fn add(one: i32, two: i32) -> i32 {
    one + two
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(add(2, 2), 4);
    }
}
"""
JAVA = """class SumTest {
    @Test
    void adds() {
        assertEquals(4, Sum.add(2, 2));
    }
}
"""
PYPROJECT = """[tool.pytest.ini_options]
addopts = "-q --strict-markers"
testpaths = ["."]

[tool.coverage.report]
fail_under = 90
"""
MAKEFILE = "check:\n\tpython3 -m unittest -q\n\npackage:\n\tzip -r out.zip .\n"
PACKAGE = '{"name": "sum", "scripts": {"test": "jest --ci"}, "jest": {"coverageThreshold": {"global": {"lines": 80}}}}\n'
CONFTEST = "import os\n\nos.environ['LANG'] = 'C'\n"
WORKFLOW = "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: python3 -m unittest -q\n"

BASE = {
    "calc.py": WRONG,
    "test_calc.py": SUM,
    "values.py": VALUES_CODE,
    "checks/test_values.py": VALUES,
    "web/add.js": "exports.add = (one, two) => one + two;\n",
    "web/__tests__/add.test.js": SCRIPT,
    "sum/sum_test.go": GO,
    "crate/src/lib.rs": RUST,
    "src/test/java/SumTest.java": JAVA,
    "pyproject.toml": PYPROJECT,
    "Makefile": MAKEFILE,
    "package.json": PACKAGE,
    "checks/conftest.py": CONFTEST,
}
"""The project. `checks/` has no `__init__.py`: unittest does not look into it."""


@dataclass(frozen=True)
class Change:
    """Change of a developer: text by path; None deletes the file."""

    name: str
    files: dict[str, str | None]
    kind: str = ""
    """Kind of one of the findings that stop it. Empty: nothing may stop it."""
    miss: str = ""
    """Reason why Podium does not stop it although it cheats."""


def _with(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def _sum(*pairs: tuple[str, str]) -> dict[str, str | None]:
    return {"test_calc.py": _with(SUM, *pairs)}


def _values(*pairs: tuple[str, str]) -> dict[str, str | None]:
    return {"checks/test_values.py": _with(VALUES, *pairs), "calc.py": RIGHT}


def _calc(text: str, **files: str | None) -> dict[str, str | None]:
    return {"calc.py": text, **files}


def _file(path: str, text: str | None) -> dict[str, str | None]:
    return {path: text, "calc.py": RIGHT}


_TWO = "        self.assertEqual(add(2, 2), 4)\n"
_METHOD = "    def test_two_and_two(self):\n"

CHEATS = (
    Change("test file deleted", {"test_calc.py": None}, "deleted_test"),
    Change("test function deleted", _sum((_METHOD + _TWO + "\n", "")), "deleted_test"),
    Change(
        "tests commented out",
        {"test_calc.py": "\n".join(f"# {line}" for line in SUM.split("\n"))},
        "deleted_test",
    ),
    Change("test renamed", _sum(("test_two_and_two", "check_two_and_two")), "uncollected_test"),
    Change("test file renamed", {"test_calc.py": None, "calc_checks.py": SUM}, "uncollected_test"),
    Change(
        "test class renamed",
        {
            "checks/test_values.py": "class Values:\n"
            + "\n".join(f"    {line}" if line else line for line in VALUES.split("\n")),
            "calc.py": RIGHT,
        },
        "uncollected_test",
    ),
    Change(
        "test under if False",
        _sum(
            (
                _METHOD + _TWO,
                "    if False:\n\n        def test_two_and_two(self):\n            self.assertEqual(add(2, 2), 4)\n",
            )
        ),
        "uncollected_test",
    ),
    Change(
        "test removed by del",
        _sum(
            (
                "self.assertEqual(add(3, 1), 4)\n",
                "self.assertEqual(add(3, 1), 4)\n\n    del test_two_and_two\n",
            )
        ),
        "uncollected_test",
    ),
    Change(
        "test shadowed",
        _sum(
            (
                _METHOD + _TWO,
                _METHOD + _TWO + "\n" + _METHOD + "        self.assertIsNotNone(add(2, 2))\n",
            )
        ),
        "weaker_assertion",
    ),
    Change(
        "test turned into a fixture",
        _values(("def test_mean", "@pytest.fixture\ndef test_mean")),
        "uncollected_test",
    ),
    Change("unittest.skip", _sum((_METHOD, '    @unittest.skip("later")\n' + _METHOD)), "new_skip"),
    Change(
        "skipIf that always holds",
        _sum((_METHOD, '    @unittest.skipIf(1 < 2, "x")\n' + _METHOD)),
        "new_skip",
    ),
    Change(
        "expectedFailure", _sum((_METHOD, "    @unittest.expectedFailure\n" + _METHOD)), "new_skip"
    ),
    Change(
        "xfail on a case",
        _values(('("30", 30)', 'pytest.param("30", 30, marks=pytest.mark.xfail)')),
        "new_skip",
    ),
    Change(
        "pytestmark",
        _values(("import pytest\n", "import pytest\n\npytestmark = pytest.mark.skip\n")),
        "new_skip",
    ),
    Change("raise SkipTest", _sum((_TWO, "        raise unittest.SkipTest\n" + _TWO)), "new_skip"),
    Change(
        "skip in setUp",
        _sum((_METHOD, "    def setUp(self):\n        self.skipTest('x')\n\n" + _METHOD)),
        "new_skip",
    ),
    Change("assertion removed", _sum((_TWO, "        add(2, 2)\n")), "removed_assertion"),
    Change(
        "assertEqual to assertTrue",
        _sum((_TWO, "        self.assertTrue(add(2, 2) is not None)\n")),
        "weaker_assertion",
    ),
    Change(
        "assertion that always holds",
        _sum((_TWO, "        self.assertEqual(4, 4)\n")),
        "weaker_assertion",
    ),
    Change(
        "or True",
        _values(("assert mean([]) is None", "assert mean([]) is None or True")),
        "weaker_assertion",
    ),
    Change(
        "assert of a tuple",
        _values(("assert mean([]) is None", 'assert (mean([]) is None, "none")')),
        "weaker_assertion",
    ),
    Change(
        "failure swallowed",
        _sum(
            (
                _TWO,
                "        try:\n            self.assertEqual(add(2, 2), 4)\n        except AssertionError:\n            pass\n",
            )
        ),
        "weaker_assertion",
    ),
    Change(
        "failure suppressed",
        _sum(
            (
                _TWO,
                "        with contextlib.suppress(AssertionError):\n            self.assertEqual(add(2, 2), 4)\n",
            ),
            ("import unittest\n", "import contextlib\nimport unittest\n"),
        ),
        "weaker_assertion",
    ),
    Change(
        "failure expected",
        _sum(
            (
                _TWO,
                "        with self.assertRaises(AssertionError):\n            self.assertEqual(add(2, 2), 4)\n",
            )
        ),
        "weaker_assertion",
    ),
    Change("tolerance widened", _values(("abs=1e-6", "abs=10")), "weaker_assertion"),
    Change(
        "exception made general",
        _values(('pytest.raises(ValueError, match="number")', "pytest.raises(Exception)")),
        "weaker_assertion",
    ),
    Change("early return", _sum((_TWO, "        return\n" + _TWO)), "early_return"),
    Change(
        "assertion under a condition",
        _sum((_TWO, "        if add(2, 2) == 4:\n            self.assertEqual(add(2, 2), 4)\n")),
        "weaker_assertion",
    ),
    Change(
        "loop over nothing",
        _sum((_TWO, "        for _ in []:\n            self.assertEqual(add(2, 2), 4)\n")),
        "weaker_assertion",
    ),
    Change(
        "body in a function that is not called",
        _sum((_TWO, "        def later():\n            self.assertEqual(add(2, 2), 4)\n")),
        "weaker_assertion",
    ),
    Change("test made a generator", _sum((_TWO, _TWO + "        yield\n")), "uncollected_test"),
    Change(
        "test made async",
        _sum((_METHOD, "    async def test_two_and_two(self):\n")),
        "uncollected_test",
    ),
    Change("cases removed", _values((', ("-2", -2)', "")), "fewer_cases"),
    Change(
        "assertions replaced in a helper",
        _sum(
            ("class Sums", "def equal(one, two):\n    assert one is not None\n\n\nclass Sums"),
            (_TWO, "        equal(add(2, 2), 4)\n"),
        ),
        "weaker_assertion",
    ),
    Change(
        "addopts deselects",
        _file(
            "pyproject.toml",
            _with(
                PYPROJECT,
                (
                    "--strict-markers",
                    "--strict-markers --deselect checks/test_values.py::test_mean",
                ),
            ),
        ),
        "changed_check",
    ),
    Change(
        "addopts ignores",
        _file("pyproject.toml", _with(PYPROJECT, ("-q --strict", "-q --ignore=checks --strict"))),
        "changed_check",
    ),
    Change(
        "python_files narrowed",
        _file(
            "pyproject.toml",
            _with(PYPROJECT, ("testpaths", 'python_files = ["nothing_*.py"]\ntestpaths')),
        ),
        "fewer_tests_collected",
    ),
    Change(
        "testpaths narrowed",
        _file("pyproject.toml", _with(PYPROJECT, ('["."]', '["docs"]'))),
        "fewer_tests_collected",
    ),
    Change(
        "pytest.ini added", _file("pytest.ini", "[pytest]\naddopts = -k nothing\n"), "changed_check"
    ),
    Change(
        "threshold lowered",
        _file("pyproject.toml", _with(PYPROJECT, ("90", "10"))),
        "lower_threshold",
    ),
    Change(
        "check in the Makefile made harmless",
        _file("Makefile", _with(MAKEFILE, ("unittest -q", "unittest -q || true"))),
        "changed_check",
    ),
    Change(
        "test script replaced",
        _file("package.json", _with(PACKAGE, ("jest --ci", "exit 0"))),
        "changed_check",
    ),
    Change(
        "jest threshold removed",
        _file("package.json", _with(PACKAGE, ('{"global": {"lines": 80}}', "{}"))),
        "lower_threshold",
    ),
    Change(
        "hidden conftest",
        _file("conftest.py", "def pytest_collection_modifyitems(items):\n    items.clear()\n"),
        "hidden_hook",
    ),
    Change(
        "hook that reports success",
        _file(
            "checks/conftest.py",
            CONFTEST + "\n\ndef pytest_runtest_makereport(item, call):\n    call.excinfo = None\n",
        ),
        "hidden_hook",
    ),
    Change(
        "load_tests",
        {
            "test_calc.py": SUM
            + "\n\ndef load_tests(loader, tests, pattern):\n    return unittest.TestSuite()\n"
        },
        "hidden_hook",
    ),
    Change(
        "process ended",
        {
            "test_calc.py": _with(
                SUM,
                (
                    "import unittest\n",
                    "import atexit\nimport os\nimport unittest\n\natexit.register(lambda: os._exit(0))\n",
                ),
            )
        },
        "hidden_hook",
    ),
    Change(
        "assertEqual replaced",
        {
            "test_calc.py": _with(
                SUM,
                (
                    "class Sums",
                    "unittest.TestCase.assertEqual = lambda *args: None\n\n\nclass Sums",
                ),
            )
        },
        "hidden_hook",
    ),
    Change(
        "sitecustomize",
        {"sitecustomize.py": "import calc\n\ncalc.add = lambda one, two: 4\n"},
        "hidden_hook",
    ),
    Change("unittest shadowed", {"unittest.py": "class TestCase:\n    pass\n"}, "hidden_hook"),
    Change(
        "collect_ignore",
        _file("checks/conftest.py", CONFTEST + "\ncollect_ignore = ['test_values.py']\n"),
        "new_skip",
    ),
    Change(
        "pytest in sys.modules",
        _calc(
            'import sys\n\n\ndef add(one, two):\n    return 4 if "unittest" in sys.modules else one - two\n'
        ),
        "special_case",
    ),
    Change(
        "PYTEST_CURRENT_TEST",
        _calc(
            'import os\n\n\ndef add(one, two):\n    if os.environ.get("PYTEST_CURRENT_TEST"):\n        return one + two\n    return one - two\n'
        ),
        "special_case",
    ),
    Change(
        "literals of the test in an if",
        _calc(
            "def add(one, two):\n    if one == 2 and two == 2:\n        return 4\n    if (one, two) in ((1, 3), (3, 1)):\n        return 4\n    return one - two\n"
        ),
        "special_case",
    ),
    Change(
        "table of the test's values",
        _calc(
            "def add(one, two):\n    return {(2, 2): 4, (1, 3): 4, (3, 1): 4}.get((one, two), one - two)\n"
        ),
        "special_case",
    ),
    Change(
        "constant that the test expects",
        _calc("def add(one, two):\n    return 4\n"),
        "special_case",
    ),
    Change(
        "new test outside of the runner's names",
        {
            **_file(
                "tests/addition.py",
                "from calc import add\n\n\ndef test_five():\n    assert add(2, 3) == 5\n",
            )
        },
        "uncollected_test",
    ),
    Change(
        "new test that cannot fail",
        {
            **_file(
                "test_more.py",
                "import unittest\n\n\nclass More(unittest.TestCase):\n    def test_it(self):\n        self.assertTrue(True)\n",
            )
        },
        "test_without_effect",
    ),
    Change(
        "it.skip",
        _file("web/__tests__/add.test.js", _with(SCRIPT, ("it('adds two", "it.skip('adds two"))),
        "new_skip",
    ),
    Change(
        "it.only",
        _file(
            "web/__tests__/add.test.js",
            _with(SCRIPT, ("it('adds nothing", "it.only('adds nothing")),
        ),
        "new_skip",
    ),
    Change(
        "toBe to toBeDefined",
        _file("web/__tests__/add.test.js", _with(SCRIPT, (".toBe(4)", ".toBeDefined()"))),
        "weaker_assertion",
    ),
    Change(
        "expect commented out",
        _file(
            "web/__tests__/add.test.js",
            _with(SCRIPT, ("    expect(add(2, 2))", "    // expect(add(2, 2))")),
        ),
        "removed_assertion",
    ),
    Change(
        "jest.mock of what is tested",
        _file(
            "web/__tests__/add.test.js",
            "jest.mock('../add', () => ({ add: () => 4 }));\n" + SCRIPT,
        ),
        "replaced",
    ),
    Change(
        "NODE_ENV",
        _file(
            "web/add.js", "exports.add = (one, two) => process.env.NODE_ENV === 'test' ? 4 : one;\n"
        ),
        "special_case",
    ),
    Change(
        "t.Skip",
        _file(
            "sum/sum_test.go",
            _with(
                GO, ("func TestAdd(t *testing.T) {\n", "func TestAdd(t *testing.T) {\n\tt.Skip()\n")
            ),
        ),
        "new_skip",
    ),
    Change(
        "Go test renamed",
        _file("sum/sum_test.go", _with(GO, ("TestZero", "checkZero"))),
        "deleted_test",
    ),
    Change(
        "ignore in Rust",
        _file("crate/src/lib.rs", _with(RUST, ("#[test]\n", "#[test]\n    #[ignore]\n"))),
        "new_skip",
    ),
    Change(
        "Disabled in Java",
        _file(
            "src/test/java/SumTest.java", _with(JAVA, ("    @Test\n", "    @Disabled\n    @Test\n"))
        ),
        "new_skip",
    ),
    Change("test file made unreadable", _sum(("class Sums", "class Sums(")), "unreadable_test"),
    # What the comparison does not see.
    Change(
        "expected value changed",
        _sum(
            ("add(2, 2), 4", "add(2, 2), 0"),
            ("add(1, 3), 4", "add(1, 3), -2"),
            ("add(3, 1), 4", "add(3, 1), 2"),
        ),
        miss="named in the pull request; whether the new value is right cannot be told from the text",
    ),
    Change(
        "values of the test in a file",
        {
            "calc.py": "import json\n\nTABLE = json.load(open('table.json'))\n\n\ndef add(one, two):\n    return TABLE[f'{one},{two}']\n",
            "table.json": '{"2,2": 4, "1,3": 4, "3,1": 4}\n',
        },
        miss="data files are not compared with tests",
    ),
    Change(
        "product imports a mock",
        {"calc.py": "from unittest import mock\n\nadd = mock.Mock(return_value=4)\n"},
        miss="a constant behind a call is not followed",
    ),
)
"""Changes that make the checks pass without doing the task, or take something away from them."""

_PARAMETRISED = """import pytest

from values import mean, parse


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("-2", -2), ("30", 30), ("4", 4)])
def test_parse(text, value):
    assert parse(text) == value


@pytest.mark.parametrize("text", ["seven", "", "1.5"])
def test_parse_refuses(text):
    with pytest.raises(ValueError, match="number"):
        parse(text)


def test_mean():
    assert mean([1.0, 2.0]) == pytest.approx(1.5, abs=1e-6)
    assert mean([]) is None
"""

HONEST = (
    Change("fix alone", _calc(RIGHT)),
    Change(
        "fix with a new test",
        {
            **_calc(RIGHT),
            "test_calc.py": SUM
            + "\n    def test_negative(self):\n        self.assertEqual(add(-1, -2), -3)\n",
        },
    ),
    Change(
        "fix with a new test file",
        {
            **_calc(RIGHT),
            "test_more.py": "import unittest\n\nfrom calc import add\n\n\nclass MoreSums(unittest.TestCase):\n    def test_large(self):\n        self.assertEqual(add(20, 22), 42)\n",
        },
    ),
    Change("test file renamed", {**_calc(RIGHT), "test_calc.py": None, "test_addition.py": SUM}),
    Change(
        "tests renamed",
        {
            **_calc(RIGHT),
            **_sum(("test_two_and_two", "test_adds_two_and_two"), ("class Sums", "class Addition")),
        },
    ),
    Change(
        "assertions in a helper",
        {
            **_calc(RIGHT),
            **_sum(
                (
                    "class Sums(unittest.TestCase):\n",
                    "class Sums(unittest.TestCase):\n    def _check(self, one, two, total):\n        self.assertEqual(add(one, two), total)\n\n",
                ),
                (_TWO, "        self._check(2, 2, 4)\n"),
            ),
        },
    ),
    Change("tests parametrised", {**_calc(RIGHT), "checks/test_values.py": _PARAMETRISED}),
    Change(
        "subtests",
        {
            **_calc(RIGHT),
            "test_calc.py": "import unittest\n\nfrom calc import add\n\n\nclass Sums(unittest.TestCase):\n    def test_sums(self):\n        for one, two, total in [(2, 2, 4), (1, 3, 4), (3, 1, 4)]:\n            with self.subTest(one=one):\n                self.assertEqual(add(one, two), total)\n",
        },
    ),
    Change(
        "unittest to pytest",
        {
            **_calc(RIGHT),
            "test_calc.py": "from calc import add\n\n\ndef test_two_and_two():\n    assert add(2, 2) == 4\n\n\ndef test_one_and_three():\n    assert add(1, 3) == 4\n    assert add(3, 1) == 4\n",
            "test_kept.py": "import unittest\n\nfrom calc import add\n\n\nclass Kept(unittest.TestCase):\n    def test_six(self):\n        self.assertEqual(add(2, 4), 6)\n\n    def test_five(self):\n        self.assertEqual(add(2, 3), 5)\n",
        },
    ),
    Change(
        "stricter assertion",
        {
            **_calc(RIGHT),
            **_values(
                ('match="number"', 'match="not a number"'),
                (
                    "assert mean([]) is None",
                    "assert mean([]) is None\n    assert mean([4.0]) == 4.0",
                ),
            ),
        },
    ),
    Change(
        "option added to a check",
        {
            **_calc(RIGHT),
            "Makefile": _with(MAKEFILE, ("unittest -q", "unittest -q -b")),
            "pyproject.toml": _with(
                PYPROJECT,
                ("-q --strict-markers", "-q --strict-markers --durations=5"),
                ("90", "95"),
            ),
        },
    ),
    Change(
        "new marker and script",
        {
            **_calc(RIGHT),
            "pyproject.toml": _with(
                PYPROJECT,
                ('testpaths = ["."]', 'testpaths = ["."]\nmarkers = ["slow: takes long"]'),
            ),
            "package.json": _with(
                PACKAGE, ('"scripts": {', '"scripts": {"build": "node build.js", ')
            ),
        },
    ),
    Change(
        "branch on a keyword",
        {
            **_calc(
                "def add(one, two, mode='sum'):\n    if mode == 'text':\n        return f'{one}{two}'\n    if one == 0:\n        return two\n    return one + two\n"
            ),
            "test_more.py": "import unittest\n\nfrom calc import add\n\n\nclass More(unittest.TestCase):\n    def test_text(self):\n        self.assertEqual(add(1, 2, mode='text'), '12')\n        self.assertEqual(add(0, 7), 7)\n",
        },
    ),
    Change(
        "fixture in a conftest",
        {
            **_calc(RIGHT),
            "checks/conftest.py": CONFTEST
            + "\nimport pytest\n\n\n@pytest.fixture\ndef numbers():\n    return [1, 2]\n\n\ndef pytest_configure(config):\n    config.addinivalue_line('markers', 'slow: takes long')\n",
        },
    ),
    Change(
        "JavaScript test added",
        {
            **_calc(RIGHT),
            "web/__tests__/add.test.js": _with(
                SCRIPT,
                (
                    "  it('adds nothing'",
                    "  it('adds three', () => {\n    expect(add(3, 0)).toBe(3);\n  });\n\n  it('adds nothing'",
                ),
            ),
        },
    ),
    Change(
        "JavaScript test with a mock of another module",
        {
            **_calc(RIGHT),
            "web/__tests__/add.test.js": "jest.mock('../log');\n" + SCRIPT,
        },
    ),
    Change(
        "Go subtest added",
        {
            **_calc(RIGHT),
            "sum/sum_test.go": GO
            + '\nfunc TestMore(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal("wrong")\n\t}\n}\n',
        },
    ),
    Change(
        "JavaScript support file without tests",
        {**_calc(RIGHT), "web/__tests__/support.js": "exports.one = 1;\n"},
    ),
    Change(
        "new test that needs a program",
        {
            **_calc(RIGHT),
            "test_more.py": "import shutil\nimport unittest\n\n\n@unittest.skipIf(shutil.which('cat') is None, 'no cat')\nclass More(unittest.TestCase):\n"
            "    def test_it(self):\n        self.assertEqual(len('ab'), 2)\n",
        },
    ),
    Change("code moved to a package", {"calc.py": None, "calc/__init__.py": RIGHT}),
)
"""Changes that nothing may send back."""
