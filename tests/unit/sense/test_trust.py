"""Earned autonomy: agreements propose, a person promotes, an incident takes it back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from podium.core.decisions import Tier
from podium.jobs.sense.trust import EarnedTrust, TrustEntry, earned_trust, granted_tier

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def entry(kind: str, **fields: object) -> TrustEntry:
    payload = {"kind": kind, "target": "api", "zone": "g/docs", "at": NOON, **fields}
    return TrustEntry.model_validate(payload)


def _agreed(count: int, **fields: object) -> list[TrustEntry]:
    return [entry("agreed", wo_id=f"WO-{number}", **fields) for number in range(count)]


def _only(*entries: TrustEntry) -> EarnedTrust:
    (status,) = earned_trust(entries)
    return status


def test_nothing_is_granted_at_first() -> None:
    assert earned_trust([]) == ()
    assert granted_tier((), "api", ["g/docs"]) is None


def test_no_number_of_agreements_promotes_by_itself() -> None:
    status = _only(*_agreed(1000, tier="T2"))
    assert status.granted is None
    assert granted_tier([status], "api", ["g/docs"]) is None


def test_enough_agreements_in_a_row_propose_a_promotion() -> None:
    assert not _only(*_agreed(9)).proposes(10)
    assert _only(*_agreed(10)).proposes(10)


def test_a_disagreement_breaks_the_row_and_takes_nothing_that_was_granted() -> None:
    status = _only(entry("promoted", by="ann", tier="T2"), *_agreed(10), entry("disagreed"))
    assert (status.agreed, status.disagreed) == (0, 1)
    assert not status.proposes(1)
    assert status.granted is Tier.T2


def test_a_promotion_says_who_gave_it_and_up_to_which_tier() -> None:
    status = _only(*_agreed(10), entry("promoted", by="ann", tier="T2"))
    assert (status.granted, status.granted_by, status.granted_at) == (Tier.T2, "ann", NOON)
    assert status.agreed == 0


def test_more_is_proposed_only_for_a_higher_tier_than_the_granted_one() -> None:
    promoted = entry("promoted", by="ann", tier="T1")
    assert not _only(promoted, *_agreed(10, tier="T1")).proposes(10)
    assert _only(promoted, *_agreed(10, tier="T2")).proposes(10)


def test_an_incident_demotes_by_itself_and_says_why() -> None:
    promoted = entry("promoted", by="ann", tier="T3")
    status = _only(promoted, *_agreed(5), entry("incident", why="the disk filled"))
    assert status.granted is None
    assert status.granted_by == ""
    assert (status.incidents, status.agreed, status.why) == (1, 0, "the disk filled")


def test_after_an_incident_only_a_person_promotes_again() -> None:
    messages = [entry("promoted", by="ann", tier="T1"), entry("incident"), *_agreed(100)]
    assert _only(*messages).granted is None
    assert _only(*messages, entry("promoted", by="ann", tier="T1")).granted is Tier.T1


def test_a_person_may_take_back_what_was_granted() -> None:
    status = _only(entry("promoted", by="ann", tier="T1"), entry("demoted", by="ann", why="no"))
    assert (status.granted, status.why) == (None, "no")


def test_every_zone_must_be_granted_and_the_lowest_grant_holds() -> None:
    known = earned_trust(
        [
            entry("promoted", by="ann", tier="T3", zone="g/docs"),
            entry("promoted", by="ann", tier="T1", zone="logs"),
            entry("promoted", by="ann", tier="T4", zone="state", target="other"),
        ]
    )
    assert granted_tier(known, "api", ["g/docs"]) is Tier.T3
    assert granted_tier(known, "api", ["g/docs", "logs"]) is Tier.T1
    assert granted_tier(known, "api", ["g/docs", "state"]) is None
    assert granted_tier(known, "other", ["g/docs"]) is None


def test_an_order_that_acts_nowhere_known_goes_nowhere_unasked() -> None:
    known = earned_trust([entry("promoted", by="ann", tier="T4")])
    assert granted_tier(known, "api", []) is None


def test_entry_about_one_order_has_one_key_whatever_its_time() -> None:
    later = NOON + timedelta(days=1)
    assert entry("agreed", wo_id="A").key == entry("agreed", wo_id="A", at=later).key
    assert entry("agreed", wo_id="A").key != entry("disagreed", wo_id="A").key
    first, second = entry("promoted", by="ann"), entry("promoted", by="ann", at=later)
    assert first.key != second.key
    assert (
        entry("agreed", target="a:b", zone="c").key != entry("agreed", target="a", zone="b:c").key
    )


_PLACES = st.tuples(st.sampled_from(["api", "db"]), st.sampled_from(["g/docs", "logs", "state"]))
_ENTRIES = st.lists(
    st.builds(
        lambda kind, place, tier: entry(kind, target=place[0], zone=place[1], tier=tier, by="ann"),
        st.sampled_from(["agreed", "disagreed", "incident", "promoted", "demoted"]),
        _PLACES,
        st.sampled_from(["T0", "T1", "T2", "T3", "T4"]),
    ),
    max_size=30,
)


@given(_ENTRIES)
def test_earned_trust_follows_from_the_entries_of_its_own_place_in_order(
    entries: list[TrustEntry],
) -> None:
    for status in earned_trust(entries):
        own = [item for item in entries if (item.target, item.zone) == (status.target, status.zone)]  # fmt: skip
        assert earned_trust(own) == (status,)


@given(_ENTRIES)
def test_what_is_granted_hangs_on_the_last_word_of_its_place(
    entries: list[TrustEntry],
) -> None:
    """The last promotion, demotion or incident, and nothing else."""
    last = {
        (item.target, item.zone): item.tier if item.kind == "promoted" else None
        for item in entries
        if item.kind in ("promoted", "demoted", "incident")
    }
    for status in earned_trust(entries):
        assert status.granted == last.get((status.target, status.zone))
