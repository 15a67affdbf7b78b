"""Find the checks of a project that names none: what its own files say, and what is installed to run it."""

from __future__ import annotations

import ast
import configparser
import json
import posixpath
import re
import shlex
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from podium.app.checks.check import Check, Detection, Run, RunCheck
from podium.core.errors import WorkspaceTampered
from podium.core.model import Json
from podium.ports import Workspace

Read = Callable[[str], Awaitable[str | None]]
"""The text of a file of the workspace, or None."""

_PROBE_SECONDS = 60.0
_MAX_TEST_FILES = 200
_MAX_CI_FILES = 20
_MAX_FILE = 200_000
_SAFE_WORD = re.compile(r"[\w./=:,@+*-]+")
_ASSIGNMENT = re.compile(r"[A-Z_][A-Z0-9_]*=.*")
_PYTHON = re.compile(r"python[0-9.]*")
_SLOTS = re.compile(r"\{(?:posargs|args)(?::([^{}]*))?\}")
"""Slots of tox and hatch for arguments, with their defaults."""
_TOX_FACTORS = re.compile(r"^[\w{},.!-]+: +")
_MAKE_TARGET = re.compile(r"^(test|check)[ \t]*:(?!=)", re.MULTILINE)
_WANTS_PYTEST = re.compile(r"""(?:^|["'=])[ \t]*pytest\b""", re.MULTILINE)
_CI_FILE = re.compile(
    r"\.github/workflows/[^/]+\.ya?ml|\.gitlab-ci\.yml|\.travis\.yml|\.circleci/config\.yml|azure-pipelines\.yml"
)
_CI_COMMAND = re.compile(r"^[ \t]*(?:- +)?(?:run: +|script: +)?(?:- +)?", re.MULTILINE)
_REQUIREMENTS = re.compile(
    r"[\w.-]*requirements[\w.-]*\.(?:txt|in)|requirements/[\w.-]+\.(?:txt|in)"
)
_TEST_FILE = re.compile(
    r"(?:.*/)?(?:tests?|test_[^/]*|[^/]+_test)\.py|(?:.*/)?tests?/(?:.*/)?test[^/]*\.py"
)
_USES_PYTEST = re.compile(r"^[ \t]*(?:import|from) pytest\b|^(?:async )?def test_", re.MULTILINE)
_USES_UNITTEST = re.compile(r"\bTestCase\b")
_USES_NOSE = re.compile(r"^[ \t]*(?:import|from) nose\b", re.MULTILINE)
_INSTALLED = re.compile(r"^podium-installed ([0-9]+)$", re.MULTILINE)
_INTERPRETERS = (".venv/bin/python", "venv/bin/python", "python", "python3")
_WRAPPERS = ("uv", "poetry", "pdm", "pipenv", "hatch", "rye")
_RUNNERS = (
    ("make", "test"), ("make", "check"), ("npm", "test"), ("npm", "run", "test"), ("yarn", "test"), ("pnpm", "test"),
    ("go", "test"), ("cargo", "test"), ("cargo", "nextest"), ("mvn", "test"), ("mvn", "verify"), ("./mvnw", "test"),
    ("./mvnw", "verify"), ("gradle", "test"), ("gradle", "check"), ("./gradlew", "test"), ("./gradlew", "check"),
    ("ctest",), ("rspec",), ("bundle", "rspec"), ("bundle", "rake"), ("rake", "test"), ("mix", "test"),
    ("dotnet", "test"), ("swift", "test"), ("deno", "test"), ("bun", "test"), ("phpunit",), ("vendor/bin/phpunit",),
    ("composer", "test"), ("nosetests",), ("nose2",), ("stestr", "run"), ("zope-testrunner",), ("trial",),
    ("tox",), ("nox",),
)  # fmt: skip
_LAST_RESORT = ("tox", "nox")
"""They build environments of their own, for which there may be no network: what they run is preferred to them."""
_LANGUAGES = {
    "python": (*_LAST_RESORT, "nosetests", "nose2", "stestr", "zope-testrunner", "trial"),
    "node": ("npm", "pnpm", "yarn", "bun"),
    "java": ("java", "mvn", "gradle"),
}
"""Language → programs that test projects in it. Any other program is taken for a language of its own."""
_NODE_RUNNERS = (
    ("pnpm-lock.yaml", "pnpm", "pnpm test"),
    ("yarn.lock", "yarn", "yarn test"),
    ("bun.lock", "bun", "bun run test"),
    ("bun.lockb", "bun", "bun run test"),
)
"""Lock file, program and command of package managers beside npm, which can run the script of any of them."""
_JAVA_WRAPPERS = ("./mvnw", "./gradlew")
_MANIFESTS = (
    (re.compile(r"Cargo\.toml"), "cargo", "cargo test --quiet"),
    (re.compile(r"go\.mod"), "go", "go test ./..."),
    (re.compile(r"pom\.xml"), "mvn", "mvn --batch-mode test"),
    (re.compile(r"(?:build|settings)\.gradle(?:\.kts)?"), "gradle", "gradle test"),
    (re.compile(r"mix\.exs"), "mix", "mix test"),
    (re.compile(r"Package\.swift"), "swift", "swift test"),
    (re.compile(r"[^/]+\.sln"), "dotnet", "dotnet test"),
)
"""File at the top of a project, and the program and command that test such a project."""
_MAX_PROBLEMS = 10


@dataclass(frozen=True)
class _Candidate:
    command: str
    """With `python` where any interpreter does."""
    tool: str
    """Requirement: a Python module for a command of Python, else a program."""
    source: str
    """The file that says so."""

    @property
    def language(self) -> str:
        """Commands of one language test the same thing in two ways; those of two languages do not."""
        if "python" in self.command.split(" "):
            return "python"
        languages = (language for language, tools in _LANGUAGES.items() if self.tool in tools)
        return next(languages, self.tool)

    def variants(self) -> Iterator[tuple[str, str]]:
        """Commands that do the same, each with a shell line that exits with 0 where it can be run."""
        tokens = self.command.split(" ")
        if "python" not in tokens:
            yield self.command, f"command -v {shlex.quote(self.tool)}"
            return
        for interpreter in _INTERPRETERS:
            command = " ".join(interpreter if part == "python" else part for part in tokens)
            yield command, f"{interpreter} -c 'import {self.tool}'"


async def detect_in(workspace: Workspace, run_check: RunCheck) -> Detection:
    """Look through a workspace as it lies there."""
    return await detect(workspace.read, await workspace.tracked(), probe_in(workspace, run_check))


def probe_in(workspace: Workspace, run_check: RunCheck) -> Run:
    """Runs lines that only look, in the workspace's fence."""

    async def run(line: str) -> str:
        probe = Check(name="installed tools", command=line)
        return (await run_check(workspace, probe, _PROBE_SECONDS)).tail

    return run


async def detect(read: Read, paths: Sequence[str], run: Run) -> Detection:
    """The first check that the project's files speak of and that can be run here.

    `paths` are the files that git tracks. What comes earlier and lacks its tool is named, not just passed over.
    """
    detection = await detect_all(read, paths, run)
    return detection.model_copy(update={"checks": detection.checks[:1]})


async def detect_all(read: Read, paths: Sequence[str], run: Run) -> Detection:
    """The same, with the first check of every further language. `make` is taken to test all of them."""
    # A name that cannot be printed cannot be named in a command or a report either.
    files = _Files(read, frozenset(path for path in paths if path.isprintable()))
    by_command: dict[str, _Candidate] = {}
    async for candidate in _candidates(files):
        by_command.setdefault(candidate.command, candidate)
    candidates = sorted(by_command.values(), key=lambda candidate: candidate.tool in _LAST_RESORT)
    variants = [
        (candidate, *variant) for candidate in candidates for variant in candidate.variants()
    ]
    not_read = tuple(files.problems.values())
    if not variants:
        return Detection(not_read=not_read)
    lines = (
        f"({probe}) </dev/null >/dev/null 2>&1 && echo podium-installed {number}"
        for number, (_, _, probe) in enumerate(variants)
    )
    output = await run("\n".join([*lines, "true"]))
    installed = {int(number) for number in _INSTALLED.findall(output)}
    usable = [variant for number, variant in enumerate(variants) if number in installed]
    if not usable:
        first = candidates[0]
        return Detection(
            not_installed=_not_installed(candidates),
            module=first.tool if "python" in first.command.split(" ") else "",
            not_read=not_read,
        )
    first = usable[0][0]
    checks: dict[str, Check] = {}
    for candidate, command, _ in usable[:1] if first.tool == "make" else usable:
        check = Check(name=command, command=command, source=candidate.source)
        checks.setdefault(candidate.language, check)
    return Detection(
        checks=tuple(checks.values()),
        not_installed=_not_installed(candidates[: candidates.index(first)]),
        not_read=not_read,
    )


def _not_installed(candidates: Sequence[_Candidate]) -> tuple[str, ...]:
    return tuple(
        f"`{candidate.command}` ({candidate.source}): {candidate.tool} is not installed"
        for candidate in candidates
    )


@dataclass(frozen=True)
class _Files:
    read_file: Read
    paths: frozenset[str]
    problems: dict[str, str] = field(default_factory=dict)
    """Path → why the file was not read, or not understood."""

    async def read(self, path: str) -> str:
        """The beginning of a file; empty when git does not track it, or it is not a plain file."""
        if path not in self.paths:
            return ""
        try:
            text = await self.read_file(path)
        except WorkspaceTampered:
            text = None
        if text is None:
            self._note(path, "is not a plain file; links are not followed")
        elif len(text) > _MAX_FILE:
            self._note(path, f"has more than {_MAX_FILE} characters; the rest was not read")
        return (text or "")[:_MAX_FILE]

    async def toml(self, path: str) -> Json:
        text = await self.read(path)
        try:
            return tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            self._note(path, f"is not valid TOML: {error}")
            return {}

    async def json(self, path: str) -> Json:
        text = await self.read(path)
        try:
            parsed: Json = json.loads(text or "{}")
        except (ValueError, RecursionError) as error:
            self._note(path, f"is not valid JSON: {error}")
            return {}
        return parsed

    def _note(self, path: str, problem: str) -> None:
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.setdefault(path, f"{path} {problem}")

    def matching(self, pattern: re.Pattern[str], most: int) -> list[str]:
        return sorted(path for path in self.paths if pattern.fullmatch(path))[:most]

    def has_src_layout(self) -> bool:
        return any(re.fullmatch(r"src/(?:[^/]+/__init__|[^/]+)\.py", path) for path in self.paths)


async def _candidates(files: _Files) -> AsyncIterator[_Candidate]:
    """The most certain first: what the project declares, then what its files let one conclude."""
    for look in (_make, _declared, _configured, _ci, _node, _manifests, _imports):
        async for candidate in look(files):
            yield candidate


async def _make(files: _Files) -> AsyncIterator[_Candidate]:
    for name in ("GNUmakefile", "makefile", "Makefile"):
        targets = _MAKE_TARGET.findall(await files.read(name))
        for target in ("test", "check"):
            if target in targets:
                yield _Candidate(f"make {target}", "make", name)
                return


async def _declared(files: _Files) -> AsyncIterator[_Candidate]:
    """Lines that tox, nox, hatch and other runners of tasks would run."""
    project = await files.toml("pyproject.toml")
    lines = [
        *(("tox.ini", line) for line in _tox_lines(await files.read("tox.ini"))),
        *(("setup.cfg", line) for line in _tox_lines(await files.read("setup.cfg"))),
        *(("pyproject.toml", line) for line in _project_lines(project)),
        *(("noxfile.py", line) for line in _nox_lines(await files.read("noxfile.py"))),
    ]
    for source, line in lines:
        if candidate := _candidate(line, source, files):
            yield candidate
    if "tox.ini" in files.paths or _at(project, "tool", "tox"):
        yield _Candidate("tox", "tox", "tox.ini" if "tox.ini" in files.paths else "pyproject.toml")
    if "noxfile.py" in files.paths:
        yield _Candidate("nox", "nox", "noxfile.py")


async def _configured(files: _Files) -> AsyncIterator[_Candidate]:
    """Projects that configure or require pytest."""
    if _names_pytest(await files.toml("pyproject.toml")):
        yield _pytest("pyproject.toml", files)
    for name in ("pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py"):
        if name in files.paths:
            yield _pytest(name, files)
    for name in ("setup.cfg", "setup.py", *files.matching(_REQUIREMENTS, most=20)):
        text = await files.read(name)
        if "[tool:pytest]" in text or _WANTS_PYTEST.search(text):
            yield _pytest(name, files)
    if "manage.py" in files.paths and "django" in await files.read("manage.py"):
        yield _Candidate("python manage.py test", "django", "manage.py")


async def _ci(files: _Files) -> AsyncIterator[_Candidate]:
    for name in files.matching(_CI_FILE, most=_MAX_CI_FILES):
        for line in _CI_COMMAND.sub("", await files.read(name)).splitlines():
            if candidate := _candidate(line, name, files):
                yield candidate


async def _node(files: _Files) -> AsyncIterator[_Candidate]:
    package = await files.json("package.json")
    script = _text(_at(package, "scripts", "test"))
    if not script or "no test specified" in script:
        return
    # It would wait for changes otherwise.
    variable = "CI=true " if "react-scripts" in script else ""
    manager = _text(_at(package, "packageManager")).partition("@")[0]
    for lock, program, command in _NODE_RUNNERS:
        if lock in files.paths or manager == program:
            yield _Candidate(f"{variable}{command}", program, "package.json")
    yield _Candidate(f"{variable}npm test --silent", "npm", "package.json")


async def _manifests(files: _Files) -> AsyncIterator[_Candidate]:
    for pattern, program, command in _MANIFESTS:
        for path in files.matching(pattern, most=1):
            wrapper = {"mvn": "./mvnw", "gradle": "./gradlew"}.get(program, "")
            if wrapper and wrapper.removeprefix("./") in files.paths:
                yield _Candidate(command.replace(program, wrapper, 1), "java", path)
            yield _Candidate(command, program, path)


async def _imports(files: _Files) -> AsyncIterator[_Candidate]:
    """Runners that fit the imports and names of the test files."""
    by_unittest: list[str] = []
    for path in files.matching(_TEST_FILE, most=_MAX_TEST_FILES):
        text = await files.read(path)
        if _USES_NOSE.search(text):
            yield _Candidate("nosetests", "nosetests", path)
        elif _USES_PYTEST.search(text):
            yield _pytest(path, files)
        elif _USES_UNITTEST.search(text):
            by_unittest.append(path)
    if by_unittest:
        starts = dict.fromkeys(_start(path, files) for path in by_unittest)
        command = " && ".join(
            _with_src(f"python -m unittest discover -q{at}", files) for at in starts
        )
        yield _Candidate(command, "unittest", by_unittest[0])


def _start(path: str, files: _Files) -> str:
    """Options with which discovery finds a file: it enters no folder that is not a package."""
    folder, name = posixpath.split(path)
    while folder and f"{folder}/__init__.py" in files.paths:
        folder = posixpath.dirname(folder)
    start = f" -s {shlex.quote(folder)}" if folder else ""
    return start if name.startswith("test") else f"{start} -p '*_test.py'"


def _pytest(source: str, files: _Files, *paths: str) -> _Candidate:
    return _Candidate(_with_src(" ".join(["python -m pytest -q", *paths]), files), "pytest", source)


def _with_src(command: str, files: _Files) -> str:
    return f"PYTHONPATH=src {command}" if files.has_src_layout() else command


def _candidate(line: str, source: str, files: _Files) -> _Candidate | None:
    """A line as a check, when it is a plain call of a test runner.

    Of pytest's arguments only paths stay: options may want plugins, and measure more than whether tests pass.
    """
    tokens = _tokens(line)
    while tokens and _ASSIGNMENT.fullmatch(tokens[0]):
        tokens = tokens[1:]
    if tokens[:2] == ["hatch", "test"]:
        tokens = ["pytest"]
    if len(tokens) > 2 and tokens[0] in _WRAPPERS and tokens[1] == "run":
        tokens = tokens[2:]
    tokens = _module(tokens)
    if tokens[:1] == ["unittest"]:
        return _Candidate(_with_src(f"python -m {shlex.join(tokens)}", files), "unittest", source)
    if tokens[:1] in (["pytest"], ["py.test"]):
        folders = {posixpath.dirname(path) for path in files.paths} | files.paths
        return _pytest(source, files, *(w for w in tokens[1:] if w.rstrip("/") in folders))
    for runner in _RUNNERS:
        if tokens and tokens[0] == runner[0] and set(runner[1:]) <= set(tokens[1:]):
            program = "java" if tokens[0] in _JAVA_WRAPPERS else tokens[0]
            return _Candidate(shlex.join(tokens), program, source)
    return None


def _module(tokens: list[str]) -> list[str]:
    """Strip `python -m` and `coverage run -m`; other commands stay as they are."""
    while "-m" in tokens and (_PYTHON.fullmatch(tokens[0]) or tokens[:2] == ["coverage", "run"]):
        tokens = tokens[tokens.index("-m") + 1 :]
    return tokens


def _tokens(line: str) -> list[str]:
    """The words of a plain command, none for what only a shell understands."""
    plain = (
        _SLOTS.sub(lambda slot: slot[1] or "", line)
        .replace("{envpython}", "python")
        .replace("{toxinidir}/", "")
    )
    try:
        tokens = shlex.split(plain.strip().lstrip("-!").strip())
    except ValueError:
        return []
    return tokens if all(_SAFE_WORD.fullmatch(token) for token in tokens) else []


def _tox_lines(text: str) -> Iterator[str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for section in parser.sections():
        if section == "testenv" or section.startswith("testenv:"):
            commands = parser.get(section, "commands", fallback="").replace("\\\n", " ")
            yield from (_TOX_FACTORS.sub("", line) for line in commands.splitlines())


def _project_lines(project: Json) -> Iterator[str]:
    """Commands of tox, and scripts that are called `test`, in pyproject.toml."""
    yield from _tox_lines(_text(_at(project, "tool", "tox", "legacy_tox_ini")))
    for line in _list(_at(project, "tool", "tox", "env_run_base", "commands")):
        yield shlex.join(token for token in _list(line) if isinstance(token, str))
    for environment in _values(_at(project, "tool", "hatch", "envs")):
        yield from _scripts(_at(environment, "scripts"))
    for tool, table in (
        ("pdm", "scripts"),
        ("poe", "tasks"),
        ("taskipy", "tasks"),
        ("rye", "scripts"),
    ):
        yield from _scripts(_at(project, "tool", tool, table))


def _scripts(table: Json) -> Iterator[str]:
    for name, script in table.items() if isinstance(table, Mapping) else ():
        if name in ("test", "tests", "run", "pytest", "unittest"):
            script = _at(script, "cmd") or script
            yield from (
                _text(line) for line in ([script] if isinstance(script, str) else _list(script))
            )


def _nox_lines(text: str) -> Iterator[str]:
    """The literal words of every `session.run(…)`."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "run"
        ):
            arguments = [node.value for node in node.args if isinstance(node, ast.Constant)]
            yield shlex.join(argument for argument in arguments if isinstance(argument, str))


def _names_pytest(value: Json) -> bool:
    """True when a key or a requirement is pytest or a plugin of it."""
    rest = [value]
    while rest:
        match rest.pop():
            case dict() as table:
                rest += [*table, *table.values()]
            case list() as items:
                rest += items
            case str() as text if re.match(r"pytest\b", text):
                return True
    return False


def _at(value: Json, *keys: str) -> Json:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _list(value: Json) -> list[Json]:
    return list(value) if isinstance(value, list) else []


def _values(value: Json) -> list[Json]:
    return list(value.values()) if isinstance(value, Mapping) else []
