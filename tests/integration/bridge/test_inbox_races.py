"""Many workers at one inbox: every file is claimed once, also when workers are killed."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from podium.jobs.sense.io.inbox import claim_named
from tests.soaking import in_soak
from tests.unit.bridge.inbox_harness import FOLDERS, dropped, inbox_at

_CLAIM_ALL = """
import sys
from pathlib import Path
from uuid import uuid4
from tests.unit.bridge.inbox_harness import inbox_at
inbox = inbox_at(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
while names := inbox.waiting():
    for name in names:
        claim = inbox.claim(name, run_id=f"run_{uuid4().hex}", worker=sys.argv[2])
        if claim is not None:
            print(claim.name, flush=True)
"""


def _worker(root: Path, name: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _CLAIM_ALL, str(root), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


def _go(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.parametrize(("count", "workers"), [(200, 2), in_soak(10_000, 4)])
def test_every_file_is_claimed_by_exactly_one_of_many_workers(
    tmp_path: Path, count: int, workers: int
) -> None:
    names = [f"WO-{number}.yaml" for number in range(count)]
    for name in names:
        dropped(tmp_path, name)
    processes = [_worker(tmp_path, f"w{number}") for number in range(workers)]
    for process in processes:
        _go(process)
    messages = [line for process in processes for line in process.communicate()[0].splitlines()]
    assert all(process.returncode == 0 for process in processes)
    claims = [claim_named(line) for line in messages]
    assert Counter(claim.file for claim in claims if claim) == Counter(names)
    assert sorted(item.name for item in inbox_at(tmp_path).claims()) == sorted(messages)
    assert not inbox_at(tmp_path).waiting()


def test_a_killed_worker_leaves_every_file_in_the_inbox_or_claimed(tmp_path: Path) -> None:
    names = [f"WO-{number}.yaml" for number in range(200)]
    for name in names:
        dropped(tmp_path, name)
    process = _worker(tmp_path, "doomed")
    _go(process)
    assert process.stdout
    for _ in range(20):
        assert process.stdout.readline()
    process.kill()
    process.communicate()
    inbox = inbox_at(tmp_path)
    assert len(inbox.claims()) >= 20
    assert sorted([*inbox.waiting(), *(claim.file for claim in inbox.claims())]) == sorted(names)
    assert len(list((tmp_path / FOLDERS.claimed).iterdir())) == len(inbox.claims())
