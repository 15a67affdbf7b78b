"""Evidence left after the chaos: the record in the database, and the marks in the outside world."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg

WITNESS = """
CREATE SCHEMA chaos;
CREATE TABLE chaos.seen (running INTEGER, of_one_worker INTEGER, at TIMESTAMPTZ);
CREATE FUNCTION chaos.look() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO chaos.seen
  SELECT sum(held), max(held), clock_timestamp() FROM (
    SELECT count(*) AS held FROM podium.runs
    WHERE queue = 'work' AND status = 'running' GROUP BY owner) AS holders;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER witness AFTER INSERT OR UPDATE ON podium.runs
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.status = 'running') EXECUTE FUNCTION chaos.look();
"""
"""Counts at every commit that leaves a run running, within that commit."""


class Effect(NamedTuple):
    """A mark in the outside world."""

    step: str
    fence: int
    pid: int
    began: int


class Start(NamedTuple):
    """A worker took a run."""

    at: int
    owner: str
    fence: int
    until: int
    """When the run ended, was let go of or was taken by another."""
    let_go: bool


class History:
    """One run as the record tells it."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.seqs: list[int] = []
        self.starts: list[Start] = []
        self.recorded: dict[str, tuple[int, int]] = {}
        """Step → the fence of the owner at that time, and when."""
        self.ends = 0
        self.doubly_recorded = 0

    def add(self, seq: int, kind: str, at: int, body: dict[str, object]) -> None:
        self.seqs.append(seq)
        if kind == "run_started":
            self._leave(at, let_go=False)
            fence = int(str(body["fence"]))
            self.starts.append(Start(at, str(body["owner"]), fence, until=0, let_go=False))
        elif kind == "step_completed":
            step = str(body["step"])
            self.doubly_recorded += step in self.recorded
            self.recorded[step] = self.starts[-1].fence, at
        elif kind in ("run_succeeded", "run_parked", "run_failed", "run_needed_human"):
            self.ends += kind == "run_succeeded"
            self._leave(at, let_go=True)

    def _leave(self, at: int, *, let_go: bool) -> None:
        if self.starts and not self.starts[-1].until:
            self.starts[-1] = self.starts[-1]._replace(until=at, let_go=let_go)


class Evidence:
    """Everything that is judged, read once."""

    def __init__(self, url: str, folder: Path) -> None:
        self.histories: dict[str, History] = {}
        with psycopg.connect(url) as connection:
            rows = connection.execute(
                "SELECT run_id, seq, type, position, body FROM podium.events ORDER BY position"
            )
            for run_id, seq, kind, position, body in rows:
                history = self.histories.setdefault(run_id, History(run_id))
                history.add(seq, kind, position, json.loads(body))
            self.runs: dict[str, str] = dict(
                connection.execute("SELECT id, body FROM podium.runs").fetchall()
            )
            self.outputs: dict[str, dict[str, int]] = defaultdict(dict)
            for run_id, key, body in connection.execute(
                "SELECT run_id, key, body FROM podium.steps"
            ):
                self.outputs[run_id][key] = json.loads(body)["output"]
            self.seen: list[tuple[int, int]] = connection.execute(
                "SELECT running, of_one_worker FROM chaos.seen"
            ).fetchall()
        self.effects: dict[str, list[Effect]] = defaultdict(list)
        for key, fence, pid, began in _lines(folder / "effects"):
            run_id, _, step = key.partition(":")
            self.effects[run_id].append(Effect(step, int(fence), int(pid), int(began)))
        self.refusals = list(_lines(folder / "refusals"))
        self.owners = {int(pid): owner for owner, pid, _ in _lines(folder / "births")}
        self.complaints = Counter(_complaints(folder))


def _lines(path: Path) -> Iterator[list[str]]:
    if path.exists():
        yield from (line.split() for line in path.read_text().splitlines())


def _complaints(folder: Path) -> Iterator[str]:
    for log in folder.glob("*.log"):
        for line in log.read_text(errors="replace").splitlines():
            if line and not line.startswith((" ", "Traceback")):
                yield line[:200]
