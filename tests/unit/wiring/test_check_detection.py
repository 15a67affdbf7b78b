"""Detection of a project's check, by its files and by what is installed."""

from __future__ import annotations

import re

import pytest

from podium.app.checks import Detection, detect, detect_all

PYTEST = "import pytest\n\ndef test_one():\n    assert True\n"
UNITTEST = "from unittest import TestCase\n\nclass One(TestCase):\n    def test_one(self): ...\n"
EVERYTHING = "make pytest unittest nosetests npm pnpm yarn cargo go mvn gradle java tox nox hatch django ctest"


async def look(
    files: dict[str, str], installed: str = EVERYTHING, *, all_languages: bool = False
) -> Detection:
    async def read(path: str) -> str | None:
        return files.get(path)

    async def run(line: str) -> str:
        """A machine with these tools, and `python3` as the only interpreter."""
        has = {"command -v " + tool for tool in installed.split()}
        has |= {f"python3 -c 'import {tool}'" for tool in installed.split()}
        probes = re.findall(r"^\((.*)\) </dev/null .* echo (.*)$", line, re.MULTILINE)
        return "".join(f"{echo}\n" for probe, echo in probes if probe in has)

    return await (detect_all if all_languages else detect)(read, list(files), run)


CASES: dict[str, tuple[dict[str, str], str]] = {
    "make": ({"Makefile": "all:\n\ntest: all\n\ttrue\n", "go.mod": ""}, "make test"),
    "tox.ini": (
        {"tox.ini": "[testenv]\ncommands =\n  py3: pytest --cov=x {posargs:tests}\n", "tests/x.py": ""},
        "python3 -m pytest -q tests",
    ),
    "tox.ini with a folder": (
        {"tox.ini": "[testenv]\ncommands = {envpython} -m pytest -n 4 test\n", "test/x.py": ""},
        "python3 -m pytest -q test",
    ),
    "tox.ini with unittest": (
        {"tox.ini": "[testenv]\ncommands = coverage run -m unittest discover -s tests\n"},
        "python3 -m unittest discover -s tests",
    ),
    "setup.cfg": ({"setup.cfg": "[tool:pytest]\naddopts = -ra\n"}, "python3 -m pytest -q"),
    "pyproject, settings": (
        {"pyproject.toml": "[tool.pytest.ini_options]\n", "src/a/__init__.py": ""},
        "PYTHONPATH=src python3 -m pytest -q",
    ),
    "pyproject, dependency group": (
        {"pyproject.toml": '[dependency-groups]\ndev = ["pytest>=8"]\n'},
        "python3 -m pytest -q",
    ),
    "pyproject, hatch": (
        {"pyproject.toml": '[tool.hatch.envs.default.scripts]\ntest = "python -m unittest -v"\n'},
        "python3 -m unittest -v",
    ),
    "pyproject, tox": (
        {"pyproject.toml": '[tool.tox.env_run_base]\ncommands = [["pytest", "-x"]]\n'},
        "python3 -m pytest -q",
    ),
    "noxfile": (
        {"noxfile.py": 'def t(session):\n    session.run("pytest", "-x", *session.posargs)\n'},
        "python3 -m pytest -q",
    ),
    "requirements": ({"requirements-dev.txt": "flake8\npytest==8.1\n"}, "python3 -m pytest -q"),
    "workflow": (
        {
            ".github/workflows/ci.yml": "jobs:\n  t:\n    steps:\n      - run: pip install pytest nose2\n"
            "      - run: |\n          ruff check\n          python -W error -m unittest discover -v test\n"
        },
        "python3 -m unittest discover -v test",
    ),
    "package.json": ({"package.json": '{"scripts": {"test": "mocha"}}'}, "npm test --silent"),
    "pnpm": ({"package.json": '{"scripts": {"test": "vitest"}}', "pnpm-lock.yaml": ""}, "pnpm test"),
    "yarn by its field": (
        {"package.json": '{"scripts": {"test": "jest"}, "packageManager": "yarn@4.5.0"}'},
        "yarn test",
    ),
    "bun is not installed, npm is": (
        {"package.json": '{"scripts": {"test": "react-scripts test"}}', "bun.lock": ""},
        "CI=true npm test --silent",
    ),
    "maven": ({"pom.xml": "<project/>"}, "mvn --batch-mode test"),
    "gradle's wrapper": ({"build.gradle.kts": "", "gradlew": ""}, "./gradlew test"),
    "gradle": ({"settings.gradle": ""}, "gradle test"),
    "cargo": ({"Cargo.toml": ""}, "cargo test --quiet"),
    "imports pytest": ({"tests/test_a.py": PYTEST}, "python3 -m pytest -q"),
    "unittest in a package": (
        {"tests/__init__.py": "", "tests/test_a.py": UNITTEST},
        "python3 -m unittest discover -q",
    ),
    "unittest in a folder": (
        {"setup.py": "", "tests/test_a.py": UNITTEST},
        "python3 -m unittest discover -q -s tests",
    ),
    "unittest under another name": (
        {"a_test.py": UNITTEST},
        "python3 -m unittest discover -q -p '*_test.py'",
    ),
    "a name that is not text": (
        {"tests/test_\udce9.py": PYTEST, "a\nb/test_b.py": PYTEST, "tests/test_c.py": UNITTEST},
        "python3 -m unittest discover -q -s tests",
    ),
    "tox alone": ({"tox.ini": "[testenv]\ncommands = ./run.sh | tee log\n"}, "tox"),
    "nothing": ({"setup.py": "setup()", "a.py": "x = 1\n", "pyproject.toml": "[project]\n"}, ""),
    "npm's placeholder": (
        {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'},
        "",
    ),
    "unreadable": ({"pyproject.toml": "[", "package.json": "{", "noxfile.py": "def", "tox.ini": "x"}, "tox"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
async def test_a_check_is_found_in_what_the_project_says(case: str) -> None:
    files, command = CASES[case]
    assert [check.command for check in (await look(files)).checks] == ([command] if command else [])


async def test_a_tool_that_is_not_installed_is_named_and_what_runs_here_is_taken() -> None:
    files = {
        "Makefile": "test:\n\tpytest\n",
        "tests/test_a.py": UNITTEST,
        "tox.ini": "[testenv]\ncommands=pytest\n",
    }
    found = await look(files, "unittest")
    assert [check.command for check in found.checks] == ["python3 -m unittest discover -q -s tests"]
    assert found.checks[0].source == "tests/test_a.py"
    assert found.not_installed == (
        "`make test` (Makefile): make is not installed",
        "`python -m pytest -q` (tox.ini): pytest is not installed",
    )


async def test_what_only_a_shell_understands_is_never_run_from_a_workflow() -> None:
    line = "      - run: pytest $(touch x) ; tox && npm test\n"
    assert await look({".github/workflows/a.yml": line}) == Detection()


async def test_every_language_has_its_own_check_unless_make_tests_all_of_them() -> None:
    files = {
        "tests/test_a.py": PYTEST,
        "tox.ini": "[testenv]\ncommands = ./run.sh\n",
        "package.json": '{"scripts": {"test": "mocha"}}',
        "yarn.lock": "",
        "go.mod": "",
    }
    found = await look(files, all_languages=True)
    assert [check.command for check in found.checks] == [
        "yarn test",
        "go test ./...",
        "python3 -m pytest -q",
    ]
    found = await look({**files, "Makefile": "test:\n"}, all_languages=True)
    assert [check.command for check in found.checks] == ["make test"]


async def test_files_that_were_not_read_or_understood_are_named() -> None:
    files = {"pyproject.toml": "[tool\n", "package.json": " " * 200_001}
    assert (await look(files)).not_read == (
        "pyproject.toml is not valid TOML: Expected ']' at the end of a table declaration (at line 1, column 6)",
        "package.json has more than 200000 characters; the rest was not read",
    )
