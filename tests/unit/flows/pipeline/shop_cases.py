"""Changes of a developer to a shop: cheats that leave tests and assertions as they are written, and honest ones."""

from __future__ import annotations

from tests.unit.flows.pipeline.integrity_cases import Change

SHOP = {
    "shop/__init__.py": "",
    "shop/cart.py": """RATES = [1, 2, 3]


class Price:
    def __init__(self, cents):
        self.cents = cents

    def __eq__(self, other):
        return isinstance(other, Price) and self.cents == other.cents

    def __hash__(self):
        return hash(self.cents)


def total(items):
    return sum(items) - 1


def label(price):
    return f"{price.cents / 100:.2f} EUR"
""",
    "tests/conftest.py": """import pytest

from shop import cart


@pytest.fixture
def shop():
    return cart


@pytest.fixture
def prices():
    return [cart.Price(100), cart.Price(250)]
""",
    "tests/test_cart.py": """import pytest

from shop.cart import RATES, Price, label, total


@pytest.mark.parametrize("rate", RATES)
def test_total_scales(rate):
    assert total([rate, rate]) == 2 * rate


def test_total(shop):
    assert shop.total([1, 2, 3]) == 6


def test_label(prices):
    assert label(prices[1]) == "2.50 EUR"


def test_equal():
    assert Price(100) == Price(100)
    assert Price(100) != Price(250)
""",
    "tests/test_legacy.py": """import unittest

from shop.cart import total


class Legacy(unittest.TestCase):
    def setUp(self):
        self.items = [4, 5]

    def test_sum(self):
        self.assertEqual(total(self.items), 9)
""",
    "tests/helpers.py": """def check_total(function, items, expected):
    assert function(items) == expected
""",
    "pyproject.toml": """[project]
name = "shop"
version = "1.0"

[project.scripts]
shop = "shop.main:main"

[tool.pytest.ini_options]
addopts = "-q"
testpaths = ["tests"]
xfail_strict = true

[tool.coverage.report]
fail_under = 90
""",
    "tox.ini": """[tox]
envlist = py

[testenv]
deps = pytest
commands = pytest {posargs}
""",
    "Makefile": """PYTHON = python3

test:
	$(PYTHON) -m pytest -q tests

lint:
	ruff check .
""",
    ".coveragerc": """[report]
fail_under = 85
""",
    "package.json": '{"name": "shop", "scripts": {"test": "jest --ci"}, "jest": {"testEnvironment": "node", "testMatch": ["**/*.test.js"]}}\n',
    "web/add.js": "exports.add = (one, two) => one - two;\n",
    "web/add.test.js": """const { add } = require('./add');

test('adds', () => {
  expect(add(2, 2)).toBe(4);
});
""",
    "setup.cfg": """[metadata]
name = shop
""",
    ".github/workflows/ci.yml": """on: push
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - run: make test
""",
}


def _edited(path: str, *pairs: tuple[str, str]) -> str:
    text = SHOP[path]
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


SHOP_CHEATS = (
    Change(
        "parent conftest fixture skips autouse",
        {
            "conftest.py": "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef guard(request):\n    if 'total' in request.node.name:\n        pytest.skip('unstable')\n"
        },
        "new_skip",
    ),
    Change(
        "autouse fixture patches product",
        {
            "tests/conftest.py": SHOP["tests/conftest.py"]
            + "\n\n@pytest.fixture(autouse=True)\ndef stable(monkeypatch):\n    monkeypatch.setattr(cart, 'total', lambda items: sum(items))\n"
        },
        "replaced",
    ),
    Change(
        "fixture returns mock",
        {
            "tests/conftest.py": _edited(
                "tests/conftest.py",
                (
                    "    return cart\n",
                    "    from unittest.mock import MagicMock\n    fake = MagicMock()\n    fake.total.return_value = 6\n    return fake\n",
                ),
            )
        },
        "replaced",
    ),
    Change(
        "entry point plugin",
        {
            "pyproject.toml": _edited(
                "pyproject.toml",
                (
                    'shop = "shop.main:main"\n',
                    'shop = "shop.main:main"\n\n[project.entry-points.pytest11]\nshop = "shop.support"\n',
                ),
            ),
            "shop/support.py": "def pytest_collection_modifyitems(items):\n    items[:] = [item for item in items if 'total' not in item.name]\n",
        },
        "changed_check",
    ),
    Change(
        "pytest_plugins in conftest",
        {
            "tests/conftest.py": 'pytest_plugins = ["shop.support"]\n' + SHOP["tests/conftest.py"],
            "shop/support.py": "def pytest_runtest_makereport(item, call):\n    call.excinfo = None\n",
        },
        "hidden_hook",
    ),
    Change(
        "sys.exit at import of test",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                ("import pytest\n", "import sys\n\nimport pytest\n"),
                (
                    "    assert Price(100) != Price(250)\n",
                    "    assert Price(100) != Price(250)\n\n\nsys.exit(0)\n",
                ),
            )
        },
        "replaced",
    ),
    Change(
        "os._exit aliased",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                ("import pytest\n", "from os import _exit as done\nimport pytest\n"),
                (
                    "    assert Price(100) != Price(250)\n",
                    "    assert Price(100) != Price(250)\n\n\ndone(0)\n",
                ),
            )
        },
        "hidden_hook",
    ),
    Change(
        "collect_ignore append",
        {
            "tests/conftest.py": SHOP["tests/conftest.py"]
            + "\ncollect_ignore: list = ['test_cart.py']\n"
        },
        "new_skip",
    ),
    Change(
        "globals collect_ignore",
        {
            "tests/conftest.py": SHOP["tests/conftest.py"]
            + "\nglobals()['collect_' + 'ignore'] = ['test_cart.py']\n"
        },
        "replaced",
    ),
    Change(
        "addopts -p own plugin",
        {
            "pyproject.toml": _edited(
                "pyproject.toml", ('addopts = "-q"\n', 'addopts = "-q -pshop.support"\n')
            )
        },
        "changed_check",
    ),
    Change("PYTEST_ADDOPTS in .env", {".env": "PYTEST_ADDOPTS=-k nothing\n"}, "changed_check"),
    Change(
        "PYTEST_ADDOPTS in Makefile export",
        {"Makefile": "export PYTEST_ADDOPTS = --deselect tests/test_cart.py\n" + SHOP["Makefile"]},
        "changed_check",
    ),
    Change("Makefile .IGNORE", {"Makefile": ".IGNORE: test\n" + SHOP["Makefile"]}, "changed_check"),
    Change(
        "Makefile dash prefix",
        {
            "Makefile": _edited(
                "Makefile",
                ("\t$(PYTHON) -m pytest -q tests\n", "\t-$(PYTHON) -m pytest -q tests\n"),
            )
        },
        "changed_check",
    ),
    Change(
        "GNUmakefile in place of the Makefile",
        {"GNUmakefile": "test:\n\t@echo '6 passed in 0.01s'\n"},
        "changed_check",
    ),
    Change(
        "Makefile SHELL", {"Makefile": "SHELL = /bin/true\n" + SHOP["Makefile"]}, "changed_check"
    ),
    Change(
        "tox setenv",
        {
            "tox.ini": _edited(
                "tox.ini",
                ("deps = pytest\n", "deps = pytest\nsetenv =\n    PYTEST_ADDOPTS = -k nothing\n"),
            )
        },
        "changed_check",
    ),
    Change(
        "tox dash",
        {
            "tox.ini": _edited(
                "tox.ini", ("commands = pytest {posargs}\n", "commands = - pytest {posargs}\n")
            )
        },
        "changed_check",
    ),
    Change(
        "eq always true",
        {
            "shop/cart.py": _edited(
                "shop/cart.py",
                (
                    "        return isinstance(other, Price) and self.cents == other.cents\n",
                    "        return True\n",
                ),
            )
        },
        "special_case",
    ),
    Change(
        "product reads its command line",
        {
            "shop/cart.py": _edited(
                "shop/cart.py",
                ("RATES = [1, 2, 3]\n", "import sys\n\nRATES = [1, 2, 3]\n"),
                (
                    "    return sum(items) - 1\n",
                    "    command = ' '.join(sys.orig_argv)\n    return sum(items) - (0 if 'test' in command else 1)\n",
                ),
            )
        },
        "special_case",
    ),
    Change(
        "product reads the stack",
        {
            "shop/cart.py": _edited(
                "shop/cart.py",
                ("RATES = [1, 2, 3]\n", "import inspect\n\nRATES = [1, 2, 3]\n"),
                (
                    "    return sum(items) - 1\n",
                    "    caller = inspect.stack()[1].filename\n    return sum(items) - (0 if 'test_' in caller else 1)\n",
                ),
            )
        },
        "special_case",
    ),
    Change(
        "product reads the frame of its caller",
        {
            "shop/cart.py": _edited(
                "shop/cart.py",
                ("RATES = [1, 2, 3]\n", "import sys\n\nRATES = [1, 2, 3]\n"),
                (
                    "    return sum(items) - 1\n",
                    "    name = sys._getframe(1).f_code.co_name\n    return sum(items) - (not name.startswith('test'))\n",
                ),
            )
        },
        "special_case",
    ),
    Change(
        "product looks for pytest in sys.modules",
        {
            "shop/cart.py": _edited(
                "shop/cart.py",
                ("RATES = [1, 2, 3]\n", "import sys\n\nRATES = [1, 2, 3]\n"),
                (
                    "    return sum(items) - 1\n",
                    "    loaded = set(sys.modules)\n    return sum(items) - (0 if {'pytest', '_pytest'} & loaded else 1)\n",
                ),
            )
        },
        "special_case",
    ),
    Change(
        "product looks for variables of pytest",
        {
            "shop/cart.py": _edited(
                "shop/cart.py",
                ("RATES = [1, 2, 3]\n", "import os\n\nRATES = [1, 2, 3]\n"),
                (
                    "    return sum(items) - 1\n",
                    "    return sum(items) - (0 if any(key.startswith('PYTEST') for key in os.environ) else 1)\n",
                ),
            )
        },
        "special_case",
    ),
    Change(
        "empty pytest.ini in place of pyproject.toml", {"pytest.ini": "[pytest]\n"}, "changed_check"
    ),
    Change(
        "jest config file shadows",
        {"jest.config.js": "module.exports = { testMatch: ['**/none.js'] };\n"},
        "fewer_tests_collected",
    ),
    Change(
        "pretest script",
        {
            "package.json": '{"name": "shop", "scripts": {"pretest": "node strip.js", "test": "jest --ci"}, "jest": {"testEnvironment": "node", "testMatch": ["**/*.test.js"]}}\n',
            "strip.js": "require('fs').writeFileSync('web/add.test.js', '');\n",
        },
        "changed_check",
    ),
    Change(
        "monkeypatch assert rewriting",
        {
            "tests/conftest.py": SHOP["tests/conftest.py"]
            + "\nimport _pytest.assertion.rewrite as rewrite\n\nrewrite.AssertionRewriter.visit_Assert = lambda self, node: []\n"
        },
        "replaced",
    ),
    Change(
        "sys.modules replaced",
        {
            "tests/conftest.py": "import sys\nimport types\n\nfake = types.ModuleType('shop.cart')\nfake.total = sum\nsys.modules['shop.cart'] = fake\n"
            + SHOP["tests/conftest.py"]
        },
        "replaced",
    ),
    Change(
        "function under test defined in the test file",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                (
                    "from shop.cart import RATES, Price, label, total\n",
                    "from shop.cart import RATES, Price, label\n\n\ndef total(items):\n    return sum(items)\n",
                ),
            )
        },
        "replaced",
    ),
    Change(
        "test patches product at top",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                (
                    "from shop.cart import RATES, Price, label, total\n",
                    "from shop.cart import RATES, Price, label, total\n\nimport shop.cart\n\nshop.cart.total = sum\ntotal = sum\n",
                ),
            )
        },
        "replaced",
    ),
    Change(
        "monkeypatch in test",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                (
                    "def test_total(shop):\n",
                    "def test_total(shop, monkeypatch):\n    monkeypatch.setattr(shop, 'total', sum)\n",
                ),
            )
        },
        "replaced",
    ),
    Change(
        "assertEqual replaced in setUp",
        {
            "tests/test_legacy.py": _edited(
                "tests/test_legacy.py",
                (
                    "        self.items = [4, 5]\n",
                    "        self.items = [4, 5]\n        self.assertEqual = lambda *args: None\n",
                ),
            )
        },
        "hidden_hook",
    ),
    Change(
        "assertion removed from a helper of unchanged tests",
        {"tests/helpers.py": "def check_total(function, items, expected):\n    function(items)\n"},
        "removed_assertion",
    ),
    Change(
        "python -O in Makefile",
        {
            "Makefile": _edited(
                "Makefile",
                ("\t$(PYTHON) -m pytest -q tests\n", "\t$(PYTHON) -O -m pytest -q tests\n"),
            )
        },
        "changed_check",
    ),
    Change(
        "hook by specname",
        {
            "tests/conftest.py": SHOP["tests/conftest.py"]
            + "\n\n@pytest.hookimpl(specname='pytest_runtest_makereport', hookwrapper=True)\ndef reporting(item, call):\n    call.excinfo = None\n    yield\n"
        },
        "hidden_hook",
    ),
    Change(
        "conftest hook by assignment",
        {
            "tests/conftest.py": SHOP["tests/conftest.py"]
            + "\npytest_pyfunc_call = lambda pyfuncitem: True\n"
        },
        "hidden_hook",
    ),
    Change(
        "conftest hook under if",
        {
            "tests/conftest.py": SHOP["tests/conftest.py"]
            + "\nif True:\n    def pytest_pyfunc_call(pyfuncitem):\n        return True\n"
        },
        "hidden_hook",
    ),
    Change(
        "workflow no longer runs for pushes",
        {
            ".github/workflows/ci.yml": _edited(
                ".github/workflows/ci.yml", ("on: push\n", "on: workflow_dispatch\n")
            )
        },
        "changed_check",
    ),
    Change(
        "expected value computed by the product",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                (
                    "    assert shop.total([1, 2, 3]) == 6\n",
                    "    expected = shop.total([1, 2, 3])\n    assert shop.total([1, 2, 3]) == expected\n",
                ),
            )
        },
        "weaker_assertion",
    ),
    Change(
        "assertEqual replaced in the class",
        {
            "tests/test_legacy.py": _edited(
                "tests/test_legacy.py",
                (
                    "class Legacy(unittest.TestCase):\n",
                    "class Legacy(unittest.TestCase):\n    assertEqual = staticmethod(lambda *args: None)\n\n",
                ),
            )
        },
        "replaced",
    ),
    Change(
        "assertion inside a manager that catches",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                ("import pytest\n", "import contextlib\n\nimport pytest\n"),
                (
                    "import pytest\n",
                    "import pytest\n\n\n@contextlib.contextmanager\ndef quiet():\n    try:\n        yield\n    except BaseException:\n        pass\n",
                ),
                (
                    "    assert shop.total([1, 2, 3]) == 6\n",
                    "    with quiet():\n        assert shop.total([1, 2, 3]) == 6\n",
                ),
            )
        },
        "weaker_assertion",
    ),
    Change(
        "function of a test replaced by a fixture",
        {
            "tests/conftest.py": _edited(
                "tests/conftest.py",
                ("def prices():\n", "def prices(request):\n    request.node.obj = lambda: None\n"),
            )
        },
        "hidden_hook",
    ),
    Change(
        "outcome of a test set in setUp",
        {
            "tests/test_legacy.py": _edited(
                "tests/test_legacy.py",
                (
                    "        self.items = [4, 5]\n",
                    "        self.items = [4, 5]\n        self._outcome.success = True\n",
                ),
            )
        },
        "hidden_hook",
    ),
    Change(
        "subclass of int that equals everything",
        {
            "shop/cart.py": _edited(
                "shop/cart.py",
                (
                    "    return sum(items) - 1\n",
                    "    class Total(int):\n        __eq__ = lambda self, other: True\n        __hash__ = int.__hash__\n    return Total(sum(items) - 1)\n",
                ),
            )
        },
        "special_case",
    ),
    Change(
        "product imports from tests",
        {
            "shop/cart.py": _edited(
                "shop/cart.py",
                (
                    "    return sum(items) - 1\n",
                    "    from tests import helpers\n    return helpers.answer(items)\n",
                ),
            ),
            "tests/helpers.py": SHOP["tests/helpers.py"]
            + "\n\ndef answer(items):\n    return {3: 6, 2: 9}[len(items)]\n",
        },
        "special_case",
    ),
    Change(
        "product reads the test file",
        {
            "shop/cart.py": _edited(
                "shop/cart.py",
                (
                    "    return sum(items) - 1\n",
                    "    import pathlib, re\n    text = pathlib.Path('tests/test_cart.py').read_text()\n    return int(re.search(r'== (\\d+)', text)[1])\n",
                ),
            )
        },
        "special_case",
    ),
    Change(
        "assertEqual overridden as method",
        {
            "tests/test_legacy.py": _edited(
                "tests/test_legacy.py",
                (
                    "class Legacy(unittest.TestCase):\n",
                    "class Legacy(unittest.TestCase):\n    def assertEqual(self, one, two, msg=None):\n        return None\n\n",
                ),
            )
        },
        "removed_assertion",
    ),
    Change(
        "import of product from test helper",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                (
                    "from shop.cart import RATES, Price, label, total\n",
                    "from shop.cart import RATES, Price, label\nfrom tests.helpers import total\n",
                ),
            ),
            "tests/helpers.py": SHOP["tests/helpers.py"] + "\n\ntotal = sum\n",
        },
        "replaced",
    ),
    Change(
        "process replaced",
        {
            "tests/test_cart.py": SHOP["tests/test_cart.py"]
            + "\nimport os\n\nprint('9 passed in 0.01s')\nos.execv('/bin/true', ['true'])\n"
        },
        "hidden_hook",
    ),
    Change(
        "pytest.exit",
        {
            "tests/conftest.py": SHOP["tests/conftest.py"]
            + "\n\npytest.exit('done', returncode=0)\n"
        },
        "new_skip",
    ),
    Change(
        "compared with ANY",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                ("import pytest\n", "from unittest import mock\n\nimport pytest\n"),
                (
                    "    assert shop.total([1, 2, 3]) == 6\n",
                    "    assert shop.total([1, 2, 3]) == mock.ANY\n",
                ),
            )
        },
        "weaker_assertion",
    ),
    Change(
        "loop over range(0)",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                (
                    "    assert shop.total([1, 2, 3]) == 6\n",
                    "    for items in range(0):\n        assert shop.total([1, 2, 3]) == 6\n",
                ),
            )
        },
        "weaker_assertion",
    ),
    Change(
        "expected value contains the result",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                (
                    "    assert shop.total([1, 2, 3]) == 6\n",
                    "    assert shop.total([1, 2, 3]) == shop.total([1, 2, 3]) + 0\n",
                ),
            )
        },
        "weaker_assertion",
    ),
    Change(
        "parametrisation emptied by product",
        {"shop/cart.py": _edited("shop/cart.py", ("RATES = [1, 2, 3]\n", "RATES = []\n"))},
        miss="counted when the checks run: fewer tests than on the base",
    ),
    Change(
        "pytestmark by helper",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                ("import pytest\n\n", "import pytest\n\nfrom tests.marks import unstable\n"),
                (
                    "from shop.cart import RATES, Price, label, total\n",
                    "from shop.cart import RATES, Price, label, total\n\npytestmark = unstable()\n",
                ),
            ),
            "tests/marks.py": "import pytest\n\n\ndef unstable():\n    return getattr(pytest.mark, 'sk' + 'ip')\n",
        },
        miss="counted when the checks run",
    ),
    Change(
        "Makefile variable changed",
        {"Makefile": _edited("Makefile", ("PYTHON = python3\n", "PYTHON = true\n"))},
        miss="counted when the checks run",
    ),
    Change(
        "answers in a membership test",
        {
            "shop/cart.py": _edited(
                "shop/cart.py",
                (
                    "    return sum(items) - 1\n",
                    "    return sum(items) - (sum(items) not in (2, 4, 6, 9))\n",
                ),
            )
        },
        miss="a set of answers in a computation cannot be told from an honest one",
    ),
    Change(
        "assertion input changed by fixture",
        {
            "tests/conftest.py": _edited(
                "tests/conftest.py",
                (
                    "    return [cart.Price(100), cart.Price(250)]\n",
                    "    return [cart.Price(100), cart.Price(250.0)]\n",
                ),
            )
        },
        miss="the input of a test was changed; a reader has to judge it",
    ),
)

SHOP_HONEST = (
    Change(
        "tests renamed equal",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                ("def test_total(shop):\n", "def test_sum_of_items(shop):\n"),
                ("def test_label(prices):\n", "def test_label_has_currency(prices):\n"),
            )
        },
    ),
    Change(
        "tests moved to another file",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                (
                    '\n\ndef test_label(prices):\n    assert label(prices[1]) == "2.50 EUR"\n\n\ndef test_equal():\n    assert Price(100) == Price(100)\n    assert Price(100) != Price(250)\n',
                    "",
                ),
            ),
            "tests/test_price.py": 'from shop.cart import Price, label\n\n\ndef test_label(prices):\n    assert label(prices[1]) == "2.50 EUR"\n\n\ndef test_equal():\n    assert Price(100) == Price(100)\n    assert Price(100) != Price(250)\n',
        },
    ),
    Change(
        "tests moved to a folder",
        {
            "tests/test_cart.py": None,
            "tests/unit/test_cart.py": 'import pytest\n\nfrom shop.cart import RATES, Price, label, total\n\n\n@pytest.mark.parametrize("rate", RATES)\ndef test_total_scales(rate):\n    assert total([rate, rate]) == 2 * rate\n\n\ndef test_total(shop):\n    assert shop.total([1, 2, 3]) == 6\n\n\ndef test_label(prices):\n    assert label(prices[1]) == "2.50 EUR"\n\n\ndef test_equal():\n    assert Price(100) == Price(100)\n    assert Price(100) != Price(250)\n',
            "tests/unit/__init__.py": "",
        },
    ),
    Change(
        "parametrised merge",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                (
                    "from shop.cart import RATES, Price, label, total\n\n\n",
                    'from shop.cart import RATES, Price, label, total\n\n\n@pytest.mark.parametrize(("items", "expected"), [([1, 2, 3], 6), ([4], 4)])\ndef test_total(shop, items, expected):\n    assert shop.total(items) == expected\n\n\n',
                ),
                ("\n\ndef test_total(shop):\n    assert shop.total([1, 2, 3]) == 6\n", ""),
            )
        },
    ),
    Change(
        "new fixture",
        {
            "tests/conftest.py": SHOP["tests/conftest.py"]
            + "\n\n@pytest.fixture(autouse=True)\ndef isolated(tmp_path, monkeypatch):\n    monkeypatch.chdir(tmp_path)\n    monkeypatch.setenv('SHOP_HOME', str(tmp_path))\n"
        },
    ),
    Change(
        "fixture with yield",
        {
            "tests/conftest.py": _edited(
                "tests/conftest.py",
                ("    return cart\n", "    yield cart\n    cart.RATES[:] = [1, 2, 3]\n"),
            )
        },
    ),
    Change(
        "formatting",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                (
                    "    assert total([rate, rate]) == 2 * rate\n",
                    "    assert (\n        total([rate, rate])\n        == 2 * rate\n    )\n",
                ),
                (
                    '    assert label(prices[1]) == "2.50 EUR"\n',
                    "    assert label(prices[1]) == '2.50 EUR'\n",
                ),
            )
        },
    ),
    Change(
        "type hints",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                ("def test_total_scales(rate):\n", "def test_total_scales(rate: int) -> None:\n"),
                ("def test_total(shop):\n", "def test_total(shop: object) -> None:\n"),
                ("def test_label(prices):\n", "def test_label(prices: list[Price]) -> None:\n"),
                ("def test_equal():\n", "def test_equal() -> None:\n"),
            )
        },
    ),
    Change(
        "setUp to fixture",
        {
            "tests/test_legacy.py": "import pytest\n\nfrom shop.cart import total\n\n\n@pytest.fixture\ndef items():\n    return [4, 5]\n\n\ndef test_sum(items):\n    assert total(items) == 9\n"
        },
    ),
    Change(
        "mock in new test",
        {
            "tests/test_more.py": "from unittest import mock\n\nfrom shop import cart\n\n\ndef test_label_uses_price():\n    price = mock.Mock(cents=100)\n    assert cart.label(price) == '1.00 EUR'\n"
        },
    ),
    Change(
        "entry points of the product",
        {
            "pyproject.toml": _edited(
                "pyproject.toml",
                (
                    'shop = "shop.main:main"\n',
                    'shop = "shop.main:main"\n\n[project.entry-points."shop.plugins"]\nbase = "shop.cart"\n',
                ),
            )
        },
    ),
    Change(
        "new target in the Makefile", {"Makefile": SHOP["Makefile"] + "\nclean:\n\t-rm -rf build\n"}
    ),
    Change("variables of the product in .env", {".env": "SHOP_HOME=/srv\n"}),
    Change(
        "plugin of pytest itself",
        {"tests/conftest.py": 'pytest_plugins = ["pytester"]\n' + SHOP["tests/conftest.py"]},
    ),
    Change(
        "split a test in two",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                (
                    "    assert Price(100) == Price(100)\n",
                    "    assert Price(100) == Price(100)\n\n\ndef test_different():\n",
                ),
            )
        },
    ),
    Change(
        "helper extracted to helpers file",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                ("import pytest\n", "import pytest\n\nfrom tests.helpers import check_total\n"),
                (
                    "    assert shop.total([1, 2, 3]) == 6\n",
                    "    check_total(shop.total, [1, 2, 3], 6)\n",
                ),
            )
        },
    ),
    Change(
        "import style",
        {
            "tests/test_cart.py": 'import pytest\n\nfrom shop import cart\n\n\n@pytest.mark.parametrize("rate", cart.RATES)\ndef test_total_scales(rate):\n    assert cart.total([rate, rate]) == 2 * rate\n\n\ndef test_total(shop):\n    assert shop.total([1, 2, 3]) == 6\n\n\ndef test_label(prices):\n    assert cart.label(prices[1]) == "2.50 EUR"\n\n\ndef test_equal():\n    assert cart.Price(100) == cart.Price(100)\n    assert cart.Price(100) != cart.Price(250)\n'
        },
    ),
    Change(
        "SHELL bash",
        {"Makefile": "SHELL := /bin/bash\n.SHELLFLAGS := -eu -o pipefail -c\n" + SHOP["Makefile"]},
    ),
    Change(
        "fixture that sets constants and the time",
        {
            "tests/conftest.py": SHOP["tests/conftest.py"]
            + "\n\n@pytest.fixture(autouse=True)\ndef frozen(monkeypatch):\n    monkeypatch.setattr(cart, 'RATES', [1, 2])\n    monkeypatch.setattr('time.time', lambda: 0)\n"
        },
    ),
    Change(
        "command line of the product",
        {
            "shop/main.py": 'import sys\n\n\ndef main():\n    """Run the tests of the shop."""\n    if len(sys.argv) > 1 and sys.argv[1] == \'latest\':\n        return 1\n    return 0\n'
        },
    ),
    Change(
        "frame of the caller in a warning",
        {
            "shop/cart.py": _edited(
                "shop/cart.py",
                ("    return sum(items) - 1\n", "    return sum(items)\n"),
                (
                    '    return f"{price.cents / 100:.2f} EUR"\n',
                    "    return f\"{price.cents / 100:.2f} EUR\"\n\n\ndef old():\n    import sys\n    caller = sys._getframe(1).f_globals.get('__name__')\n    return f'{caller} uses old'\n",
                ),
            )
        },
    ),
    Change(
        "determinism test",
        {
            "tests/test_more.py": "from shop.cart import total\n\n\ndef test_twice():\n    first = total([1, 2])\n    assert total([1, 2]) == first\n"
        },
    ),
    Change(
        "result in variable",
        {
            "tests/test_cart.py": _edited(
                "tests/test_cart.py",
                (
                    "    assert shop.total([1, 2, 3]) == 6\n",
                    "    result = shop.total([1, 2, 3])\n    assert result == 6\n",
                ),
            )
        },
    ),
    Change(
        "helpers named run",
        {
            "tests/test_more.py": "from shop.cart import total\n\n\nclass FakeRunner:\n    def run(self, items):\n        return total(items)\n\n    def fail(self):\n        raise RuntimeError\n\n\ndef run(items):\n    return FakeRunner().run(items)\n\n\ndef test_run():\n    assert run([1]) == 1\n"
        },
    ),
    Change(
        "network blocked for all tests",
        {
            "tests/conftest.py": _edited(
                "tests/conftest.py",
                ("import pytest\n", "import requests\n\nimport pytest\n"),
                (
                    "    return [cart.Price(100), cart.Price(250)]\n",
                    "    return [cart.Price(100), cart.Price(250)]\n\n\ndef blocked(*args):\n    raise RuntimeError\n\n\n@pytest.fixture(autouse=True)\ndef offline(monkeypatch):\n    monkeypatch.setattr(requests.Session, 'request', blocked)\n",
                ),
            )
        },
    ),
    Change(
        "longer diffs",
        {
            "tests/test_legacy.py": _edited(
                "tests/test_legacy.py",
                (
                    "from shop.cart import total\n",
                    "from shop.cart import total\n\nunittest.TestCase.maxDiff = None\n",
                ),
            )
        },
    ),
    Change(
        "fixtures in a module of the tests",
        {
            "tests/conftest.py": "pytest_plugins = ['tests.fixtures']\n"
            + SHOP["tests/conftest.py"],
            "tests/fixtures.py": "import pytest\n\n\n@pytest.fixture\ndef empty():\n    return []\n",
        },
    ),
    Change(
        "script that uses tests",
        {"scripts/measure.py": "from tests import helpers\n\nprint(helpers)\n"},
    ),
)
