"""The trust book: durable, added to once, and closed where it cannot be read."""

from __future__ import annotations

import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.core.decisions import Tier
from podium.core.errors import NotPossibleNow
from podium.jobs.sense.io.record import FileTrustBook
from podium.jobs.sense.trust import EarnedTrustBook, TrustEntry, earned_trust, granted_tier
from tests.soaking import examples
from tests.unit.bridge.inbox_harness import without_secret

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PLACE = ".podium/sense/trust.jsonl"

_ADD_MANY = """
import sys
from pathlib import Path
from tests.integration.bridge.test_trust_book import book_at, entry
from tests.soaking import examples
for number in range(20):
    book_at(Path(sys.argv[1])).add(entry("agreed", wo_id=f"{sys.argv[2]}-{number}"))
    book_at(Path(sys.argv[1])).add(entry("agreed", wo_id=f"both-{number}"))
"""


def book_at(root: Path) -> FileTrustBook:
    return FileTrustBook(root, redact=without_secret)


def entry(kind: str, **fields: object) -> TrustEntry:
    payload = {"kind": kind, "target": "api", "zone": "g/docs", "at": NOON, **fields}
    return TrustEntry.model_validate(payload)


def _granted(root: Path) -> Tier | None:
    return granted_tier(earned_trust(book_at(root).entries()), "api", ["g/docs"])


def test_entries_come_back_in_their_order(tmp_path: Path) -> None:
    book: EarnedTrustBook = book_at(tmp_path)
    assert list(book.entries()) == []
    messages = [
        entry("agreed", wo_id="A", tier="T2"),
        entry("incident", why="it\nbroke\u2028"),
        entry("promoted", by="ann"),
    ]
    for item in messages:
        book.add(item)
    assert list(book_at(tmp_path).entries()) == messages
    assert (tmp_path / PLACE).read_bytes().count(b"\n") == 3
    assert stat.S_IMODE((tmp_path / PLACE).stat().st_mode) == 0o600


def test_the_same_entry_again_changes_nothing(tmp_path: Path) -> None:
    book_at(tmp_path).add(entry("agreed", wo_id="A"))
    before = (tmp_path / PLACE).read_bytes()
    book_at(tmp_path).add(entry("agreed", wo_id="A", at=NOON + timedelta(days=1)))
    assert (tmp_path / PLACE).read_bytes() == before


def test_duplicate_entry_counts_once(tmp_path: Path) -> None:
    book_at(tmp_path).add(entry("agreed", wo_id="A"))
    path = tmp_path / PLACE
    path.write_bytes(path.read_bytes() * 2)
    assert len(book_at(tmp_path).entries()) == 1


def test_line_torn_by_a_crash_is_left_out_reported_and_replaced(tmp_path: Path) -> None:
    book = book_at(tmp_path)
    book.add(entry("promoted", by="ann", tier="T2"))
    book.add(entry("agreed", wo_id="B"))
    path = tmp_path / PLACE
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first + 1, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert len(book.entries()) == 1
        assert "incomplete" in book.problems[0]
        assert _granted(tmp_path) is Tier.T2
    book.add(entry("agreed", wo_id="B"))
    assert path.read_bytes() == whole
    assert len(book.entries()) == 2
    assert not book.problems


def test_a_last_line_that_only_lacks_its_end_counts(tmp_path: Path) -> None:
    book = book_at(tmp_path)
    book.add(entry("agreed", wo_id="A"))
    path = tmp_path / PLACE
    path.write_bytes(path.read_bytes().rstrip())
    book.add(entry("agreed", wo_id="B"))
    assert [item.wo_id for item in book.entries()] == ["A", "B"]
    assert not book.problems


@pytest.mark.parametrize("damage", [b"garbage", b"{}", b"\xff\x00", b'{"kind": "from the future"}', b'{"kind": "promoted", "target": "api", "zone": "g/docs", "tier": "T4", "at": "2026-01-01T00:00:00Z"}'])  # fmt: skip
def test_promotions_before_an_unreadable_line_do_not_count(tmp_path: Path, damage: bytes) -> None:
    book = book_at(tmp_path)
    book.add(entry("promoted", by="ann", tier="T2"))
    book.add(entry("agreed", wo_id="A"))
    with (tmp_path / PLACE).open("ab") as file:
        file.write(damage + b"\n")
    assert [item.kind for item in book.entries()] == ["agreed"]
    assert book.problems[0].startswith("line 3 of trust.jsonl cannot be read")
    assert _granted(tmp_path) is None
    book.add(entry("promoted", by="ann", tier="T1", at=NOON + timedelta(days=1)))
    assert _granted(tmp_path) is Tier.T1


@pytest.mark.parametrize("by", ["", "  "])
def test_a_promotion_by_nobody_is_refused(tmp_path: Path, by: str) -> None:
    with pytest.raises(ValueError, match="only a person can promote"):
        book_at(tmp_path).add(entry("promoted", by=by))
    assert not book_at(tmp_path).entries()


def test_the_book_holds_no_secrets(tmp_path: Path) -> None:
    book_at(tmp_path).add(entry("incident", why="said hunter2"))
    assert book_at(tmp_path).entries()[0].why == "said [redacted:password]"


@pytest.mark.parametrize("kind", ["folder", "link", "hard link"])
def test_a_book_that_cannot_be_used_grants_nothing_and_takes_nothing(
    tmp_path: Path, kind: str
) -> None:
    real = tmp_path / "real"
    real.mkdir()
    book_at(real).add(entry("promoted", by="eve", tier="T4"))
    path = tmp_path / PLACE
    path.parent.mkdir(parents=True)
    match kind:
        case "folder":
            path.mkdir()
        case "link":
            path.symlink_to(real / PLACE)
        case _:
            path.hardlink_to(real / PLACE)
    before = (real / PLACE).read_bytes()
    book = book_at(tmp_path)
    assert not book.entries()
    assert book.problems[0].startswith("the trust book is ignored")
    assert _granted(tmp_path) is None
    with pytest.raises(NotPossibleNow):
        book.add(entry("incident"))
    assert (real / PLACE).read_bytes() == before


def test_processes_that_add_at_once_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    adding = [
        subprocess.Popen(
            [sys.executable, "-c", _ADD_MANY, str(tmp_path), name], cwd=Path(__file__).parents[3]
        )
        for name in ("one", "two")
    ]
    assert [item.wait() for item in adding] == [0, 0]
    kinds = [item.wo_id.split("-")[0] for item in book_at(tmp_path).entries()]
    assert sorted(kinds) == ["both"] * 20 + ["one"] * 20 + ["two"] * 20
    assert len((tmp_path / PLACE).read_bytes().splitlines()) == 60


_ENTRIES = st.lists(
    st.builds(
        entry,
        st.sampled_from(["agreed", "disagreed", "incident", "promoted", "demoted"]),
        target=st.sampled_from(["api", "db"]),
        zone=st.sampled_from(["g/docs", "logs"]),
        tier=st.sampled_from(["T0", "T1", "T2"]),
        wo_id=st.uuids().map(str),
        by=st.just("ann"),
        why=st.text(st.characters(codec="utf-8"), max_size=20),
    ),
    max_size=8,
)


@settings(max_examples=examples(25))
@given(_ENTRIES)
def test_book_reports_what_was_recorded(entries: list[TrustEntry]) -> None:
    with TemporaryDirectory() as folder:
        for item in entries:
            book_at(Path(folder)).add(item)
        assert earned_trust(book_at(Path(folder)).entries()) == earned_trust(entries)
