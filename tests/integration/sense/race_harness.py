"""Loops and workers as processes on one root, started, killed and started again while work orders come in."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from podium.core.decisions import Tier
from podium.jobs.sense.io.record import FileTrustBook
from podium.jobs.sense.trust import TrustEntry

BATCH = 20
"""Orders that one plan makes."""
TARGET = "bulk"

RULES = """\
version: 1
rules:
  - name: one-order-for-each
    when:
      source: health
      for_each: [checks]
      where:
        - {path: status, in: [failed]}
    item:
      type: health_fix
      priority: low
      target: bulk
      action: create_wo
      wo_suggestion:
        wo_id_hint: "N-{name}"
        title: "Note {name}"
        summary: "It failed"
        tasks: ["Note it"]
        ops:
          - {op: append, path: "g/reports/{name}.txt", content: "done once\\n"}
          - {op: append, path: "g/reports/{name}.txt", content: "and once more\\n"}
    examples:
      - sensed:
          - content: {checks: [{name: a1, status: failed}]}
        expect: ["Note a1"]
"""

SETTINGS = """\
flows:
  sense:
    mode: autonomous
    planner: rules
    rules: rules.yaml
    orders_per_hour: 1000000
    orders_per_day: 1000000
"""


class GitProject:
    """A root on which loops and workers race."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "root"
        self.environ = {
            "PATH": os.environ["PATH"],
            "PODIUM_HOME": str(tmp_path / "home"),
            "HOME": str(tmp_path / "home"),
        }
        self.output = tmp_path / "output.txt"
        for folder in ("bridge/inbox/CLC", "g/reports", "g/telemetry", "logs", "CLC"):
            (self.root / folder).mkdir(parents=True)
        (self.root / "podium.yaml").write_text(SETTINGS)
        (self.root / "rules.yaml").write_text(RULES)
        (self.root / ".podium").mkdir(mode=0o700)
        self._grant()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.kills = 0

    def _grant(self) -> None:
        entry = TrustEntry(
            kind="promoted", target=TARGET, zone="g/reports", tier=Tier.T1, by="a person", at=datetime.now(UTC)
        )  # fmt: skip
        FileTrustBook(self.root, redact=str).add(entry)

    def show(self, names: list[str]) -> None:
        """These checks fail now. Put into place in one step, as a health check should."""
        checks = [{"name": name, "status": "failed"} for name in names]
        draft = self.root / "g" / "telemetry" / ".health.tmp"
        draft.write_text(json.dumps({"checks": checks}))
        draft.rename(self.root / "g" / "telemetry" / "health_check_latest.json")

    def keep_running(self, name: str, *words: str) -> None:
        """See that a process of this name is alive."""
        before = self.processes.get(name)
        if before is not None and before.poll() is None:
            return
        with self.output.open("ab") as output:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "podium", "--project", str(self.root), *words],
                env=self.environ, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def kill(self, name: str) -> None:
        process = self.processes.get(name)
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.kills += 1

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def notes(self) -> dict[str, str]:
        return {path.stem: path.read_text() for path in (self.root / "g/reports").glob("*.txt")}

    def is_clear(self, orders: int) -> bool:
        """Return whether every order is answered and filed."""
        claimed = self.root / "bridge" / "claimed" / "CLC"
        return len(self.acks()) >= orders and not list(claimed.iterdir())

    def acks(self) -> list[dict[str, object]]:
        folder = self.root / "bridge" / "outbox" / "LIAM"
        return [json.loads(path.read_text()) for path in folder.glob("*.ack.json")]


def race(
    git_project: GitProject, orders: int, *, kills: int = 0, seed: int = 1, seconds: float = 400.0
) -> None:
    """Let two loops and two workers see to so many orders, killing them so often in between.

    Returns when every order has its answer. Fails when that takes too long.
    """
    chance = random.Random(seed)
    names = [f"n{number:05}" for number in range(orders)]
    deadline = time.monotonic() + seconds
    next_kill = time.monotonic() + 1.0
    shown = 0
    while True:
        if shown < orders and len(git_project.notes()) >= shown - BATCH // 2:
            shown = min(orders, shown + BATCH)
            git_project.show(names[max(0, shown - BATCH) : shown])
        for number in (1, 2):
            git_project.keep_running(f"loop {number}", "sense", "--once", "--if-changed")
            git_project.keep_running(f"worker {number}", "worker")
        if git_project.kills < kills and time.monotonic() > next_kill:
            git_project.kill(chance.choice(sorted(git_project.processes)))
            next_kill = time.monotonic() + chance.uniform(0.05, 1.0)
        if shown == orders and git_project.kills >= kills and git_project.is_clear(orders):
            return
        if time.monotonic() > deadline:
            last = git_project.output.read_bytes()[-3000:].decode(errors="replace")
            raise AssertionError(
                f"{len(git_project.acks())} of {orders} answered, {shown} shown, {git_project.kills} kills:\n{last}"
            )
        time.sleep(0.02)


def must_be_done_once(git_project: GitProject, orders: int) -> None:
    """Every order answered once, every operation done exactly once, nothing left behind."""
    acks = git_project.acks()
    assert Counter(ack["status"] for ack in acks) == {"done": orders}
    assert len({ack["wo_id"] for ack in acks}) == orders
    notes = git_project.notes()
    assert len(notes) == orders
    assert set(notes.values()) == {"done once\nand once more\n"}
    assert not list((git_project.root / "bridge" / "inbox" / "CLC").glob("*.yaml"))
    assert not list((git_project.root / "bridge" / "claimed" / "CLC").iterdir())
    assert not (git_project.root / "bridge" / "parked" / "CLC").exists() or not list(
        (git_project.root / "bridge" / "parked" / "CLC").iterdir()
    )
