"""Settings of checks in a project's files: what runs, with which options and thresholds."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

import yaml

from podium.jobs.pipeline.test_integrity.findings import (
    ANY_NUMBER,
    FileVersions,
    IntegrityFinding,
    Severity,
    added_lines,
    make_finding,
    quote,
)

Flat = dict[str, str]
"""Value by dotted key."""
_MAX_KEYS = 5_000
_MAX_CHARACTERS = 400_000

_HARMFUL = re.compile(
    r"(?:^|\s)(?:--ignore(?:-glob)?(?=[=\s])|--deselect\b|-k\b|-m\b(?!\s+(?:pytest|unittest|coverage|tox|nox|mypy|ruff|\w+\.))|--co\b|--collect-only\b|-p\s*no:\w+|-p\s+\S+"
    r"|--lf\b|--last-failed\b|--no-cov\b|--suppress-no-test-exit-code\b|-c\s+\S+\.(?:ini|toml|cfg)|--rootdir\b|--override-ini\b|-o\s+\w+="
    r"|--passWithNoTests\b|--testPathIgnorePatterns\b|--testNamePattern\b|-t\s|--grep\b|-g\s|--fgrep\b|--invert\b|--bail=0|--onlyChanged\b|--forbid-only=false"
    r"|--skip\b|--exclude\b|-skip\b|-run\b|-short\b|-DskipTests\S*|-Dmaven\.test\.\S+|--continue-on-error\b|--exit-zero\b|--no-run\b|--ignore-errors\b|--maxfail=0\b"
    r"|--no-verify\b|--tag\s+~|--exclude-pattern\b|--max-warnings\b|-p[a-z]\w*\.\w+|--assert[=\s]plain\b|-OO?\b|--listTests\b|--setup-(?:only|plan)\b|--no-?conftest\b)"
)
_VARIABLE = re.compile(
    r"\b(?:PYTEST_ADDOPTS|PYTEST_PLUGINS|PYTEST_DISABLE_PLUGIN_AUTOLOAD|PYTHONOPTIMIZE|PYTHONSTARTUP|MOCHA_OPTIONS|pytest11)\b"
    r"|\bNODE_OPTIONS\b[^\n]*(?:--require|--import|--loader|\s-r\b)|\bGOFLAGS\b[^\n]*-(?:run|skip|short)\b"
    r"|\bMAKEFLAGS\b[^\n]*(?:-\w*[ikn]\b|--(?:ignore|keep-going|dry|just-print))|^\.IGNORE\b|\bignore_outcome\s*=\s*(?i:true|1)"
    r"|^SHELL\s*[:?+]?=(?!\s*\S*\b(?:ba|da|z|k)?sh\b)|^\.SHELLFLAGS\s*[:?+]?=(?![^\n]*-\w*e)"
)
"""Variables and words that change what a runner does, wherever a settings file has them."""
_FIRST_FOR_PYTEST = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
"""Files with settings of pytest; the first that is there counts alone."""
_NEVER_FAILS = re.compile(
    r"\|\|\s*(?:true|:|exit\s+0|echo\b)|;\s*(?:true|:|exit\s+0)\s*$|\bexit\s+0\b|(?:^|&&\s)[@+]*-\s*[\w$]|^\s*(?:true|:|echo\b[^&|;]*|exit 0)\s*$|\bset\s+\+e\b"
)
_TESTS = re.compile(
    r"\b(?:pytest|py\.test|unittest|nosetests|tox|nox|jest|mocha|vitest|ava|tap|karma|cypress|playwright|nyc|c8|coverage|npm (?:run )?(?:test|lint|ci)|npm t"
    r"|yarn (?:run )?test|pnpm (?:run )?test|go (?:test|vet)|cargo (?:test|clippy|nextest)|mvn|gradlew?|rspec|rake|phpunit|dotnet test|ctest|make (?:test|check|lint)|bats"
    r"|ruff|mypy|flake8|pylint|eslint|tsc|node --test)\b"
)
_THRESHOLD = re.compile(
    r"(?:fail[_-]under|threshold|minimum|min_cov|lines|branches|functions|statements|check-coverage|cov-fail-under)",
    re.IGNORECASE,
)
_THRESHOLD_OPTION = re.compile(
    r"--(?:cov-)?(?:fail-under|lines|branches|functions|statements|min-coverage|max-warnings)[= ](\d+(?:\.\d+)?)"
)
_TEST_SCRIPT = re.compile(
    r"(?:^|[:_.-])(?:pre|post)?(?:test|tests|check|checks|lint|ci|coverage|cov|verify|validate|spec|unit|e2e|integration)(?:$|[:_.-])"
)
_MAKEFILES = ("makefile", "gnumakefile", "justfile", "taskfile.yml", "taskfile.yaml")
_JS_SETTINGS = re.compile(
    r"^(?:jest|vitest|vite|karma|cypress|playwright|wdio|ava)\.(?:config|conf|setup|workspace)[\w.]*\.(?:[cm]?[jt]s|json)$|^\.mocharc\.(?:c?js)$"
)
_CI = re.compile(
    r"^(?:\.github/workflows/|\.gitlab-ci|\.circleci/|azure-pipelines|\.travis\.yml|bitbucket-pipelines)"
)

_PYTEST_SECTIONS = ("tool.pytest.ini_options.", "tool.pytest.", "pytest.", "tool:pytest.")
_COVERAGE_SECTIONS = ("tool.coverage.", "coverage:", "report.", "run.")
_NARROWING = (
    "testpaths",
    "python_files",
    "python_classes",
    "python_functions",
    "norecursedirs",
    "collect_ignore",
    "addopts",
    "xfail_strict",
    "usefixtures",
)


def is_check_settings(path: str) -> bool:
    """Tell whether a file decides how checks run."""
    name = PurePosixPath(path).name.lower()
    return (
        name
        in (
            "pyproject.toml",
            "setup.cfg",
            "pytest.ini",
            ".pytest.ini",
            "pytest.toml",
            "tox.ini",
            ".coveragerc",
            "noxfile.py",
            "package.json",
        )
        or name
        in (
            ".nycrc",
            ".nycrc.json",
            ".c8rc.json",
            ".mocharc.json",
            ".mocharc.yml",
            ".mocharc.yaml",
            "jest.config.json",
            "codecov.yml",
            ".codecov.yml",
        )
        or name in _MAKEFILES
        or name.endswith(".mk")
        or name == ".env"
        or name.startswith(".env.")
        or _JS_SETTINGS.match(name) is not None
        or _CI.match(path) is not None
    )


def settings_findings(
    file: FileVersions, tests: frozenset[str], others: Mapping[str, str]
) -> Iterator[IntegrityFinding]:
    """Compare the settings of checks in a file.

    `tests` are paths of all test files of the branch, `others` texts of settings that both sides have alike.
    """
    name = PurePosixPath(file.path).name.lower()
    for number, line in added_lines(file):
        if not line.startswith(("#", "//")) and (match := _VARIABLE.search(line)):
            text = "changes what a test runner does or which code it loads"
            finding = _finding(file, "changed_check", match[0], text, "", line, "medium")
            yield finding.model_copy(update={"line": number})
    if file.before is None and file.after is not None:
        yield from _shadowed(file, name, others, tests)
    before = flat_settings(file.path, file.before) if file.before is not None else {}
    after = flat_settings(file.path, file.after) if file.after is not None else {}
    if before is None:
        before = {}
        if after is None:
            return
    if after is None:
        yield _finding(
            file,
            "settings_unreadable",
            "",
            "settings of checks can no longer be parsed",
            "",
            "",
            "high",
        )
        return
    if file.after is None:
        kept = {key: value for key, value in before.items() if _matters(key)}
        if kept:
            listed = ", ".join(list(kept)[:5])
            yield _finding(
                file,
                "changed_check",
                name,
                f"settings of checks were deleted ({listed})",
                "",
                "",
                "medium",
            )
        return
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key), after.get(key)
        if old != new:
            yield from _changed(file, key, old, new, tests)


def _shadowed(
    file: FileVersions, name: str, others: Mapping[str, str], tests: frozenset[str]
) -> Iterator[IntegrityFinding]:
    """Findings about a new file that a runner reads in place of one that stays."""
    if name == "gnumakefile" and any(path.lower() == "makefile" for path in others):
        text = "make reads this file and no longer the Makefile"
        yield _finding(file, "changed_check", name, text, "", "", "high")
    rank = _FIRST_FOR_PYTEST.index(name) if name in _FIRST_FOR_PYTEST else len(_FIRST_FOR_PYTEST)
    for hidden in _FIRST_FOR_PYTEST[rank + 1 :]:
        settings = _of_pytest(hidden, others.get(hidden, ""))
        own = _of_pytest(name, file.after or "")
        if settings and (own or "pytest.ini" in name):
            for key, value in settings.items():
                if own.get(key, "") != value:
                    yield from _pytest(file, key, value, own.get(key, ""), key, tests)
            return


def _of_pytest(path: str, text: str) -> Flat:
    """Settings of pytest in a file, by their own names."""
    return {
        key.removeprefix(prefix): value
        for key, value in (flat_settings(path, text) or {}).items()
        for prefix in _PYTEST_SECTIONS[:1] + _PYTEST_SECTIONS[2:]
        if key.startswith(prefix)
    }


def flat_settings(path: str, text: str) -> Flat | None:
    """Settings of a file by dotted key; None when it cannot be parsed."""
    name = PurePosixPath(path).name.lower()
    text = text[:_MAX_CHARACTERS]
    try:
        if name.endswith(".toml"):
            return _relevant_toml(tomllib.loads(text))
        if name.endswith((".ini", ".cfg")) or name == ".coveragerc":
            parser = configparser.ConfigParser(interpolation=None, strict=False)
            parser.read_string(text)
            prefix = "coverage:" if name == ".coveragerc" else ""
            return {
                f"{prefix}{section}.{key}": " ".join(value.split())
                for section in parser.sections()
                for key, value in parser.items(section)
            }
        if name.endswith(".json") or name == ".nycrc":
            loaded = json.loads(text)
            if name != "package.json":
                return _flat(loaded)
            wanted = ("scripts", "jest", "mocha", "nyc", "c8", "ava", "vitest", "tap")
            return _flat({key: loaded[key] for key in wanted if key in loaded})
        if name.endswith((".yml", ".yaml")):
            return _ci_settings(yaml.safe_load(text))
    except (
        ValueError,
        configparser.Error,
        yaml.YAMLError,
        RecursionError,
        AttributeError,
        TypeError,
    ):
        return None
    if name in _MAKEFILES or name.endswith(".mk"):
        return _targets(text)
    return _lines(text)


def _relevant_toml(loaded: Mapping[str, Any]) -> Flat:
    tool = loaded.get("tool")
    if not isinstance(tool, dict):
        return _flat({"pytest": loaded["pytest"]}) if isinstance(loaded.get("pytest"), dict) else {}
    wanted = ("pytest", "coverage", "tox", "nox", "poe", "hatch", "pdm", "taskipy", "mypy", "ruff")
    flat = _flat({"tool": {key: tool[key] for key in wanted if key in tool}})
    return {
        key: value
        for key, value in flat.items()
        if not key.startswith(
            ("tool.hatch.build", "tool.hatch.metadata", "tool.hatch.version", "tool.pdm.version")
        )
    }


def _flat(value: Any, prefix: str = "") -> Flat:
    flat: Flat = {}
    waiting: list[tuple[str, Any]] = [(prefix, value)]
    while waiting and len(flat) < _MAX_KEYS:
        key, item = waiting.pop()
        if isinstance(item, dict):
            waiting += [
                (f"{key}.{name}" if key else str(name), inner)
                for name, inner in reversed(list(item.items()))
            ]
        elif isinstance(item, list) and all(isinstance(inner, str | int | float) for inner in item):
            flat[key] = " ".join(map(str, item))
        elif isinstance(item, list):
            waiting += [(f"{key}.{number}", inner) for number, inner in enumerate(item)]
        else:
            flat[key] = str(item)
    return flat


def _ci_settings(loaded: Any) -> Flat:
    """Commands of a workflow, by their own text: where they are does not matter."""
    flat: Flat = {}
    # A bare `on` is read as a truth value.
    triggers = loaded.get(True, loaded.get("on")) if isinstance(loaded, dict) else None
    if triggers:
        flat["on"] = triggers if isinstance(triggers, str) else " ".join(map(str, triggers))
    for key, value in _flat(loaded).items():
        last = key.rpartition(".")[2]
        if (
            last in ("run", "script", "command")
            or ".script." in key
            or re.search(r"\.(?:script|before_script|commands?|cmds?)(?:\.\d+)?$", key)
        ):
            for line in value.split("\n"):
                if _TESTS.search(line):
                    flat[f"command {' '.join(line.split())}"] = " ".join(line.split())
        elif (
            (last in ("continue-on-error", "allow_failure") and value.lower() == "true")
            or (last == "if" and value.lower() in ("false", "${{ false }}"))
            or _THRESHOLD.search(last)
            or last in ("target", "informational")
        ):
            flat[key] = value
    return flat


def _targets(text: str) -> Flat:
    """Recipes of a Makefile by target."""
    flat: dict[str, list[str]] = {}
    target = ""
    for line in text.replace("\\\n", " ").split("\n"):
        if line[:1] in ("\t", " ") and target:
            if line.strip() and not line.strip().startswith("#"):
                flat[f"target.{target}"].append(line.strip())
        elif match := re.match(r"([\w./-]+)[^:=\n]*:(?!=)([^\n]*)$", line):
            target = match[1]
            flat[f"target.{target}"] = [match[2].strip()] if match[2].strip() else []
        elif line.strip() and not line.startswith("#"):
            target = ""
    return {key: " && ".join(lines) for key, lines in flat.items()}


def _lines(text: str) -> Flat:
    """Options of a settings file that is a program, one per line."""
    options = re.findall(
        r"(?m)(?:^|[{,])\s*['\"]?(testMatch|testRegex|testPathIgnorePatterns|include|exclude|spec|ignore|grep|bail|passWithNoTests|setupFiles|setupFilesAfterEnv|"
        r"globalSetup|coverageThreshold|thresholds?|lines|branches|functions|statements|testFiles|testDir|testIgnore|specPattern|session\.run)['\"]?\s*[:=(]\s*([^\n]*)",
        text,
    )
    flat: Flat = {}
    for number, (key, value) in enumerate(options[:_MAX_KEYS]):
        own = key if key not in flat else f"{key}#{number}"
        flat[own] = value.strip().rstrip(",")
    return flat


def _matters(key: str) -> bool:
    return key.startswith(
        (
            *_PYTEST_SECTIONS,
            *_COVERAGE_SECTIONS,
            "scripts.test",
            "target.test",
            "target.check",
            "command ",
            "jest.",
            "testenv",
        )
    )


def _changed(
    file: FileVersions, key: str, old: str | None, new: str | None, tests: frozenset[str]
) -> Iterator[IntegrityFinding]:
    last = key.rpartition(".")[2]
    if lowered := _lowered(key, old, new):
        yield _finding(
            file,
            "lower_threshold",
            key,
            f"threshold `{key}` is lower or gone",
            old or "",
            new or lowered,
            "high",
        )
        return
    section = next((prefix for prefix in _PYTEST_SECTIONS if key.startswith(prefix)), "")
    if section:
        yield from _pytest(file, last, old or "", new or "", key, tests)
    elif key.startswith(
        (
            "scripts.",
            "target.",
            "command ",
            "testenv",
            "tool.poe.tasks.",
            "tool.tox.",
            "tool.hatch.envs.",
            "tool.taskipy.",
            "tool.pdm.scripts.",
            "session.run",
        )
    ):
        yield from _command(file, key, old, new)
    elif key == "on" and {"push", "pull_request"} & (
        set((old or "").split()) - set((new or "").split())
    ):
        text = "the workflow no longer runs for pushes or pull requests"
        yield _finding(file, "changed_check", key, text, old or "", new or "", "medium")
    elif last in ("continue-on-error", "allow_failure", "if") and new is not None:
        yield _finding(
            file,
            "changed_check",
            key,
            "a failing job no longer fails the workflow",
            old or "",
            f"{last}: {new}",
            "high",
        )
    elif last in (
        "omit",
        "exclude_lines",
        "exclude_also",
        "exclude",
        "source",
        "include",
    ) and key.startswith(("tool.coverage", "coverage:", "coverage")):
        yield _finding(
            file,
            "changed_check",
            key,
            "what coverage counts was changed",
            old or "",
            new or "",
            "low",
        )
    elif key.startswith(
        ("jest.", "mocha.", "vitest.", "nyc.", "c8.", "ava.", "tap.")
    ) or _is_runner_file(file.path):
        yield from _runner_option(file, key, last.partition("#")[0], old, new)
    elif key.startswith(("tool.mypy.", "tool.ruff.", "mypy.")) and re.search(
        r"(?:^|\.)(?:ignore|extend-ignore|exclude|per-file-ignores|ignore_errors|strict|disable_error_code|disallow_\w+|warn_\w+|select)(?:\.|$)",
        key,
    ):
        yield _finding(
            file,
            "changed_check",
            key,
            f"setting `{key}` of a linter or type checker was changed",
            old or "",
            new or "",
            "low",
        )


def _is_runner_file(path: str) -> bool:
    name = PurePosixPath(path).name.lower()
    return _JS_SETTINGS.match(name) is not None or name.startswith(
        (".mocharc", ".nycrc", ".c8rc", "jest.config")
    )


def _lowered(key: str, old: str | None, new: str | None) -> str:
    """Text for a threshold that is lower than it was; empty when it is none, or not lower."""
    if old is None:
        return ""
    last = key.rpartition(".")[2].partition("#")[0]
    if _THRESHOLD.search(last) or "threshold" in key.lower():
        before, after = _as_number(old), _as_number(new)
        if before is not None and (after is None or after < before):
            return "no threshold" if new is None else new
    for option in _THRESHOLD_OPTION.finditer(old):
        name = option[0].partition("=")[0].split()[0]
        now = next(
            (other for other in _THRESHOLD_OPTION.finditer(new or "") if other[0].startswith(name)),
            None,
        )
        if "max-warnings" in name:
            if now is not None and float(now[1]) > float(option[1]):
                return now[0]
        elif now is None or float(now[1]) < float(option[1]):
            return now[0] if now else "no threshold"
    return ""


def _as_number(text: str | None) -> float | None:
    try:
        return float((text or "").strip().rstrip("%,"))
    except ValueError:
        return None


def _pytest(
    file: FileVersions, last: str, old: str, new: str, key: str, tests: frozenset[str]
) -> Iterator[IntegrityFinding]:
    match last:
        case "addopts":
            yield from _options(file, key, old, new)
        case "testpaths":
            lost = [
                path
                for path in tests
                if new and not _within(path, new) and (not old or _within(path, old))
            ]
            if lost:
                yield _finding(
                    file,
                    "fewer_tests_collected",
                    key,
                    f"`testpaths` leaves out {_listed(lost)}",
                    old,
                    new,
                    "high",
                )
        case "norecursedirs" | "collect_ignore" | "collect_ignore_glob":
            if set(new.split()) - set(old.split()):
                yield _finding(
                    file,
                    "fewer_tests_collected",
                    key,
                    f"`{last}` leaves out more folders",
                    old,
                    new,
                    "high",
                )
        case "python_files" | "python_classes" | "python_functions":
            gone = set((old or _DEFAULTS[last]).split()) - set((new or _DEFAULTS[last]).split())
            if gone:
                yield _finding(
                    file,
                    "fewer_tests_collected",
                    key,
                    f"`{last}` no longer has `{' '.join(sorted(gone))}`",
                    old,
                    new,
                    "high",
                )
        case "xfail_strict":
            if old.lower() in ("true", "1") and new.lower() not in ("true", "1"):
                yield _finding(
                    file,
                    "changed_check",
                    key,
                    "`xfail_strict` is off: a test that fails may pass unseen",
                    old,
                    new,
                    "medium",
                )
        case "usefixtures" | "pythonpath" | "required_plugins":
            if new:
                yield _finding(
                    file, "changed_check", key, f"`{last}` of pytest was changed", old, new, "low"
                )
        case "filterwarnings":
            if "error" in old.split() and "error" not in new.split():
                yield _finding(
                    file, "changed_check", key, "warnings are no longer errors", old, new, "medium"
                )


_DEFAULTS = {
    "python_files": "test_*.py *_test.py",
    "python_classes": "Test",
    "python_functions": "test",
}


def _options(file: FileVersions, key: str, old: str, new: str) -> Iterator[IntegrityFinding]:
    harmful = [option for option in _harmful(new) if option not in _harmful(old)]
    if harmful or (_NEVER_FAILS.search(new) and not _NEVER_FAILS.search(old)):
        listed = " ".join(harmful) or new
        yield _finding(
            file,
            "changed_check",
            key,
            f"options leave out tests or hide failures: `{quote(listed)}`",
            old,
            new,
            "high",
        )
        return
    lost = [
        word
        for word in _words(old)
        if word not in _words(new)
        and re.match(r"--(?:strict|doctest|cov-fail|error)|-W|--forbid-only", word)
    ]
    if lost:
        yield _finding(
            file, "changed_check", key, f"options are gone: `{' '.join(lost)}`", old, new, "medium"
        )


def _harmful(text: str) -> list[str]:
    """Options that leave out tests, each with what follows it."""
    return [" ".join(text[match.start() :].split()[:2]) for match in _HARMFUL.finditer(text)]


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _command(
    file: FileVersions, key: str, old: str | None, new: str | None
) -> Iterator[IntegrityFinding]:
    name = key.partition(".")[2] or key
    is_check = (
        key.startswith("command ")
        or _TEST_SCRIPT.search(name) is not None
        or _TESTS.search(old or "") is not None
    )
    if not is_check or old is None:
        if new is not None and key.startswith(("scripts.pre", "scripts.post")) and is_check:
            yield _finding(
                file, "changed_check", name, "a new script runs around a check", "", new, "medium"
            )
        elif new is not None and is_check and _NEVER_FAILS.search(new) and _TESTS.search(new):
            yield _finding(
                file, "changed_check", name, "a new check never fails", "", new, "medium"
            )
        return
    if new is None:
        if key.startswith(("testenv.", "tool.tox.")) and not key.endswith(
            (".commands", "commands")
        ):
            return
        severity: Severity = "medium"
        yield _finding(
            file,
            "changed_check",
            name,
            f"check `{quote(name)}` was removed or replaced",
            old,
            "",
            severity,
        )
        return
    if not _TESTS.search(old) and not _TEST_SCRIPT.search(name):
        return
    harmful = [option for option in _harmful(f" {new}") if option not in _harmful(f" {old}")]
    if _NEVER_FAILS.search(new) and not _NEVER_FAILS.search(old):
        yield _finding(
            file,
            "changed_check",
            name,
            f"check `{quote(name)}` can no longer fail",
            old,
            new,
            "high",
        )
    elif harmful:
        yield _finding(
            file,
            "changed_check",
            name,
            f"check `{quote(name)}` leaves out tests: `{quote(' '.join(harmful))}`",
            old,
            new,
            "high",
        )
    elif set(_words(old)) <= set(_words(new)):
        return
    elif _TESTS.search(old):
        ran, runs = set(_TESTS.findall(old)), set(_TESTS.findall(new))
        severity = "low" if ran and ran <= runs else "medium"
        yield _finding(
            file, "changed_check", name, f"check `{quote(name)}` was changed", old, new, severity
        )


def _runner_option(
    file: FileVersions, key: str, last: str, old: str | None, new: str | None
) -> Iterator[IntegrityFinding]:
    narrowing = (
        "testMatch",
        "testRegex",
        "testPathIgnorePatterns",
        "spec",
        "ignore",
        "exclude",
        "grep",
        "passWithNoTests",
        "testFiles",
        "testDir",
        "testIgnore",
        "specPattern",
        "invert",
        "fgrep",
    )
    hooks = (
        "setupFiles",
        "setupFilesAfterEnv",
        "globalSetup",
        "require",
        "reporters",
        "reporter",
        "runner",
        "testRunner",
        "testEnvironment",
    )
    root = re.sub(r"\.\d+$", "", key).rpartition(".")[2].partition("#")[0]
    if last in narrowing or root in narrowing:
        yield _finding(
            file,
            "fewer_tests_collected",
            key,
            f"`{key}` decides which tests run and was changed",
            old or "",
            new or "",
            "medium",
        )
    elif (last in hooks or root in hooks) and new is not None:
        yield _finding(
            file,
            "changed_check",
            key,
            f"`{key}` runs code around the tests and was changed",
            old or "",
            new,
            "medium",
        )


def _within(path: str, folders: str) -> bool:
    return any(
        folder in (".", "./")
        or path == folder
        or path.startswith(f"{folder.rstrip('/').removeprefix('./')}/")
        for folder in folders.split()
    )


def _listed(paths: list[str]) -> str:
    ordered = sorted(paths)
    more = f" and {len(ordered) - 3} more" if len(ordered) > 3 else ""
    return f"{', '.join(ordered[:3])}{more}"


def _finding(
    file: FileVersions,
    kind: str,
    subject: str,
    text: str,
    before: str,
    after: str,
    severity: Severity,
) -> IntegrityFinding:
    return make_finding(
        kind,
        file.path,
        _line_of(file, subject, after),
        subject,
        text,
        before=before,
        after=after,
        severity=severity,
        tests=ANY_NUMBER if severity != "low" else 0,
    )


def _line_of(file: FileVersions, key: str, value: str) -> int:
    last = re.sub(r"#\d+$", "", key.rpartition(".")[2] if not key.startswith("command ") else value)
    text = file.after if file.after is not None else file.before
    for number, line in enumerate((text or "").split("\n"), 1):
        if last and last in line:
            return number
    return 0
