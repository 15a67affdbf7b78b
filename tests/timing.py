"""Cost and kind of each test: printed at the end of every run, and stored where a file is named.

The kind is seen, not declared: by the programs that a test starts, the fixtures it asks for and the files it opens.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Generator
from typing import Any

import pytest

from tests import budget

KINDS = (
    "real CLIs", "Chromium", "PostgreSQL", "tmux", "sandbox", "command", "git", "other processes",
    "servers", "hypothesis", "store", "pure",
)  # fmt: skip
"""From the heaviest on: a test is of the first kind that fits."""

_CALIBRATE_EVERY = 50
"""Tests of a worker between two measurements of the machine's speed."""

_CLIS = ("claude", "codex", "gemini", "opencode", "node")
_FIXTURES = {"browser": "Chromium", "postgres_url": "PostgreSQL", "postgres_server": "PostgreSQL"}  # fmt: skip


_SEEN: set[str] = set()
"""The kinds that fit what the running test has done in this process. The interpreter's hooks stay until its end."""


def saw(kind: str) -> None:
    """For what starts in another process, where no hook sees it."""
    _SEEN.add(kind)


def process_kinds() -> set[str]:
    """The kinds of processes that the running test has started."""
    return _SEEN & {"real CLIs", "tmux", "sandbox", "command", "git", "other processes"}


def _see(name: str, arguments: tuple[Any, ...]) -> None:
    if name == "sqlite3.connect":
        _SEEN.add("store")
    elif name == "socket.bind":
        _SEEN.add("servers")
    elif name in ("subprocess.Popen", "os.posix_spawn", "os.exec"):
        _SEEN.add(kind_of_command(arguments[1]))
    elif name in (
        "os.fork",
        "socket.sendmsg",
    ):  # a message with descriptors asks for a guarded process
        _SEEN.add("other processes")


def kind_of_command(argv: Any) -> str:
    """The kind of a test that starts this program."""
    words = [os.fsdecode(word) for word in ([argv] if isinstance(argv, str | bytes) else argv)]
    names = {word.rsplit("/", 1)[-1] for word in words[:12]}
    if "isolated.py" in names or "bwrap" in names:
        return "real CLIs" if names & {*_CLIS} else "sandbox"
    if "run-driver" in names:  # Playwright's own, in Node
        return "Chromium"
    if names & {*_CLIS}:
        return "real CLIs"
    if "tmux" in names:
        return "tmux"
    if "podium" in names:
        return "command"
    return "git" if words and words[0].rsplit("/", 1)[-1] == "git" else "other processes"


class Timing:
    """Measures in each worker, adds up in the process that reports."""

    def __init__(self, kept: str | None) -> None:
        self._kept = kept
        self._began = (0.0, 0.0)
        self._count = 0
        self._calibrations: list[float] = []
        self.rows: list[dict[str, Any]] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, Any, Any]:
        _SEEN.clear()
        self._began = (time.perf_counter(), _cpu())
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        report: Any = yield
        if report.when == "teardown":
            wall, cpu = time.perf_counter() - self._began[0], _cpu() - self._began[1]
            report.user_properties.append(("timing", [_kind(item), wall, cpu]))
            if self._count % _CALIBRATE_EVERY == 0:
                report.user_properties.append(("calibration", budget.calibration()))
            self._count += 1
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "teardown" or "timing" not in dict(report.user_properties):
            return
        properties: dict[str, Any] = dict(report.user_properties)
        kind, wall, cpu = properties["timing"]
        if "calibration" in properties:
            self._calibrations.append(properties["calibration"])
        self.rows.append({"test": report.nodeid, "kind": kind, "wall": wall, "cpu": cpu})
        if self._kept:  # at once: a run that is ended early has told what it saw
            with open(self._kept, "a") as file:
                file.write(f"{json.dumps(self.rows[-1])}\n")

    def pytest_terminal_summary(
        self, terminalreporter: Any, exitstatus: int, config: pytest.Config
    ) -> None:
        cpu: defaultdict[str, list[float]] = defaultdict(list)
        for row in self.rows:
            cpu[row["kind"]].append(row["cpu"])
        kinds = {kind: budget.Cost(sum(cpu[kind]), len(cpu[kind])) for kind in KINDS if kind in cpu}
        costs = ", ".join(f"{kind} {cost.cpu:.0f} ({cost.tests})" for kind, cost in kinds.items())
        terminalreporter.write_line(f"CPU seconds (tests): {costs}")
        if not self._calibrations or not _is_whole_run(config, exitstatus):
            return
        run = budget.Costs.measured(kinds, self._calibrations)
        if config.getoption("--write-budget"):
            budget.FILE.write_text(run.to_json())
        elif budget.FILE.exists():
            for warning in budget.growth(budget.Costs.from_json(budget.FILE.read_text()), run):
                terminalreporter.write_line(warning, yellow=True)


def _is_whole_run(config: pytest.Config, exitstatus: int) -> bool:
    """Return whether it ran what `make test` runs, to the end."""
    ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    chosen = config.option.keyword or config.option.collectonly or os.environ.get("REAL_CLIS")
    everywhere = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return ended and everywhere and not chosen and config.option.markexpr == "not soak"


def _kind(item: pytest.Item) -> str:
    kinds = {_FIXTURES[name] for name in getattr(item, "fixturenames", ()) if name in _FIXTURES}
    if "postgres" in item.name:
        kinds.add("PostgreSQL")
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        kinds.add("hypothesis")
    seen = kinds | _SEEN
    return next((kind for kind in KINDS if kind in seen), "pure")


def _cpu() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(item.ru_utime + item.ru_stime for item in both)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--timing",
        metavar="FILE",
        help="Add to this file what each test cost, a JSON object to a line.",
    )
    parser.addoption(
        "--write-budget",
        action="store_true",
        help="Write what this run cost to tests/budget.json, when it ran the whole suite.",
    )


def pytest_configure(config: pytest.Config) -> None:
    sys.addaudithook(_see)
    # A worker measures; the process that reports writes.
    kept = None if hasattr(config, "workerinput") else config.getoption("--timing")
    config.pluginmanager.register(Timing(kept), "timing")


def table(rows: list[dict[str, Any]]) -> str:
    """The cost of a run as Markdown: by folder, by kind, and the most expensive test functions."""
    text = ""
    for title, key in (
        ("folder", lambda row: "/".join(row["test"].split("::")[0].split("/")[:-1])),
        ("kind", lambda row: row["kind"]),
        ("test function", lambda row: row["test"].split("[")[0].removeprefix("tests/")),
    ):
        sums: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
        for row in rows:
            for place, value in enumerate((1, row["cpu"], row["wall"])):
                sums[key(row)][place] += value
        text += f"\n| {title} | tests | CPU s | wall s |\n|---|---|---|---|\n"
        dearest = sorted(sums.items(), key=lambda item: -item[1][1])[:60]
        text += "".join(
            f"| {name} | {count:.0f} | {cpu:.1f} | {wall:.1f} |\n"
            for name, (count, cpu, wall) in dearest
        )
    return text


if __name__ == "__main__":
    with open(sys.argv[1]) as lines:
        print(table([json.loads(line) for line in lines]))
