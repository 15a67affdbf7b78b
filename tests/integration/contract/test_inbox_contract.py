"""Contract of every inbox: an order is claimed once, answered, and filed once."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import pytest

from podium.core.errors import BadInput
from podium.jobs.sense.io import FolderInbox
from podium.jobs.sense.orders.work_order import Ack, Claim, Operation, WorkOrder, order_text
from podium.jobs.sense.ports import OrderInbox
from podium.jobs.sense.testing import MemoryInbox
from tests.unit.bridge.inbox_harness import FOLDERS, RUN, inbox_at

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
OTHER_RUN = "run_0199f3c2a7b87c3e9d1f5a6b7c8d9e10"


class Mailbox(Protocol):
    """An inbox and the hands of those who put things into it."""

    @property
    def inbox(self) -> OrderInbox: ...
    def drop(self, file: str, holds: WorkOrder | str) -> None: ...
    def rewrite(self, claim: Claim, holds: WorkOrder) -> None: ...
    def shelved(self, shelf: str) -> list[str]:
        """Return what lies on this shelf, as texts that contain the names of the files and the reasons."""
        ...


class Folders:
    """The real one."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.inbox: FolderInbox = inbox_at(root)
        self._at = NOON.timestamp() - 3600

    def drop(self, file: str, holds: WorkOrder | str) -> None:
        path = self._root / FOLDERS.inbox / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"- {holds}\n" if isinstance(holds, str) else order_text(holds))
        self._at += 1
        os.utime(path, (self._at, self._at))

    def rewrite(self, claim: Claim, holds: WorkOrder) -> None:
        (self._root / FOLDERS.claimed / claim.name).write_text(order_text(holds))

    def shelved(self, shelf: str) -> list[str]:
        folder = self._root / (FOLDERS.done if shelf == "done" else FOLDERS.parked)
        found = sorted(folder.iterdir()) if folder.is_dir() else []
        return [f"{item.name} {item.read_text()}" for item in found]


class Memory:
    """The fake."""

    def __init__(self) -> None:
        self.inbox = MemoryInbox()

    def drop(self, file: str, holds: WorkOrder | str) -> None:
        self.inbox.drop(file, holds)

    def rewrite(self, claim: Claim, holds: WorkOrder) -> None:
        self.inbox.rewrite(claim, holds)

    def shelved(self, shelf: str) -> list[str]:
        found = self.inbox.shelves["done" if shelf == "done" else "parked"]
        return [f"{name} {why}" for name, why in found.items()]


MAILBOXES: dict[str, Callable[[Path], Mailbox]] = {
    "FolderInbox": Folders,
    "MemoryInbox": lambda root: Memory(),
}


@pytest.fixture(params=list(MAILBOXES.values()), ids=list(MAILBOXES))
def mailbox(request: pytest.FixtureRequest, tmp_path: Path) -> Mailbox:
    made: Mailbox = request.param(tmp_path)
    return made


def order(name: str, **fields: object) -> WorkOrder:
    ops = (Operation(op="mkdir", path=f"g/reports/{name}"),)
    return WorkOrder.model_validate({"id": name, "title": f"order {name}", "ops": ops, **fields})


def ack(name: str, **fields: object) -> Ack:
    payload = {"wo_id": name, "status": "done", "run_id": RUN, "finished_at": NOON, **fields}
    return Ack.model_validate(payload)


def taken(mailbox: Mailbox, file: str = "WO-1.yaml", run_id: str = RUN) -> Claim:
    claim = mailbox.inbox.claim(file, run_id=run_id, worker="wrk_1")
    assert claim is not None
    return claim


def test_an_empty_inbox_has_nothing_and_says_so(mailbox: Mailbox) -> None:
    assert list(mailbox.inbox.waiting()) == []
    assert list(mailbox.inbox.claims()) == []
    assert mailbox.inbox.claim("WO-1.yaml", run_id=RUN, worker="wrk_1") is None
    assert mailbox.inbox.answered("WO-1") is None


def test_orders_wait_oldest_first(mailbox: Mailbox) -> None:
    for name in ("WO-2", "WO-1", "WO-3"):
        mailbox.drop(f"{name}.yaml", order(name))
    assert list(mailbox.inbox.waiting()) == ["WO-2.yaml", "WO-1.yaml", "WO-3.yaml"]


def test_a_claimed_order_waits_no_longer_and_nobody_else_gets_it(mailbox: Mailbox) -> None:
    mailbox.drop("WO-1.yaml", order("WO-1"))
    claim = taken(mailbox)
    assert (claim.file, claim.run_id, claim.worker) == ("WO-1.yaml", RUN, "wrk_1")
    assert list(mailbox.inbox.waiting()) == []
    assert mailbox.inbox.claim("WO-1.yaml", run_id=OTHER_RUN, worker="wrk_2") is None
    assert list(mailbox.inbox.claims()) == [claim]


def test_one_run_has_one_claim_on_a_file(mailbox: Mailbox) -> None:
    mailbox.drop("WO-1.yaml", order("WO-1"))
    taken(mailbox)
    mailbox.drop("WO-1.yaml", order("WO-1"))
    with pytest.raises(BadInput):
        taken(mailbox)
    assert list(mailbox.inbox.waiting()) == ["WO-1.yaml"]


def test_claimed_file_is_opened_in_its_current_form(mailbox: Mailbox) -> None:
    mailbox.drop("WO-1.yaml", order("WO-1"))
    claim = taken(mailbox)
    assert mailbox.inbox.open(claim).order == order("WO-1")
    mailbox.rewrite(claim, order("WO-1", title="said otherwise"))
    opened = mailbox.inbox.open(claim).order
    assert opened is not None
    assert opened.title == "said otherwise"


def test_what_is_no_order_is_opened_with_the_reason(mailbox: Mailbox) -> None:
    mailbox.drop("WO-1.yaml", "no order at all")
    opened = mailbox.inbox.open(taken(mailbox))
    assert opened.order is None
    assert opened.fault


def test_what_is_put_away_is_claimed_no_longer_and_lies_on_its_shelf(mailbox: Mailbox) -> None:
    mailbox.drop("WO-1.yaml", order("WO-1"))
    mailbox.drop("WO-2.yaml", order("WO-2"))
    first, second = taken(mailbox), taken(mailbox, "WO-2.yaml", OTHER_RUN)
    mailbox.inbox.put_away(first, "done")
    mailbox.inbox.put_away(second, "parked", "nobody can do that")
    assert list(mailbox.inbox.claims()) == []
    assert "WO-1" in "".join(mailbox.shelved("done"))
    parked = "".join(mailbox.shelved("parked"))
    assert "WO-2" in parked
    assert "nobody can do that" in parked


def test_putting_away_again_changes_nothing(mailbox: Mailbox) -> None:
    mailbox.drop("WO-1.yaml", order("WO-1"))
    claim = taken(mailbox)
    place = mailbox.inbox.put_away(claim, "done")
    before = mailbox.shelved("done")
    assert mailbox.inbox.put_away(claim, "done") == place
    assert mailbox.shelved("done") == before
    assert mailbox.inbox.open(claim).order is None


def test_a_name_that_is_no_claim_leads_to_no_file(mailbox: Mailbox) -> None:
    forged = Claim(name="../../etc/passwd", file="passwd", run_id=RUN, worker="wrk_1")
    with pytest.raises(BadInput):
        mailbox.inbox.open(forged)
    with pytest.raises(BadInput):
        mailbox.inbox.put_away(forged, "done")


def test_an_answer_comes_back_as_it_was_given_and_the_newest_counts(mailbox: Mailbox) -> None:
    mailbox.inbox.acknowledge(ack("WO-1", status="waiting"))
    last = ack("WO-1", status="done", title="a folder")
    mailbox.inbox.acknowledge(last)
    assert mailbox.inbox.answered("WO-1") == last
    assert mailbox.inbox.answered("WO-2") is None
