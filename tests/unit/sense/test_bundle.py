"""The bundle: everything that was found, or as much of it as fits, and a word for the rest."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.core.model import Json
from podium.jobs.sense.models import Look, Sensed
from podium.jobs.sense.planning.bundle import bundle_json, bundle_of
from tests.soaking import examples

NOON = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
PLENTY = 1_000_000


def look(source: str, *contents: Json, total: int | None = None) -> Look:
    found = tuple(
        Sensed(source=source, place=f"{source}/{number}", content=content)
        for number, content in enumerate(contents)
    )
    return Look(source=source, found=found, total=len(found) if total is None else total)


def size(text: str) -> int:
    return len(text.encode())


def test_bundle_names_the_origin_of_every_part() -> None:
    health = Look(
        source="health",
        found=(Sensed(source="health", place="health.json", condition="missing", why="it is not there"),),
    )  # fmt: skip
    ack = Sensed(source="acks", place="a.ack.json", content={"b": 1, "a": "ä"}, stale=True, seen_at=NOON)  # fmt: skip
    bundle = bundle_of("/srv/root", [health, Look(source="acks", found=(ack,), total=7)], limit_bytes=PLENTY)  # fmt: skip
    assert json.loads(bundle_json(bundle)) == {
        "root": "/srv/root",
        "sources": [
            {
                "source": "health",
                "total": 0,
                "found": [
                    {"provenance": "health:health.json", "condition": "missing", "why": "it is not there"}
                ],
            },
            {
                "source": "acks",
                "total": 7,
                "found": [
                    {
                        "provenance": "acks:a.ack.json",
                        "stale": True,
                        "changed_at": "2030-01-01T12:00:00+00:00",
                        "content": {"b": 1, "a": "ä"},
                    }
                ],
            },
        ],
    }  # fmt: skip
    assert '"a": "ä"' in bundle_json(bundle)
    assert bundle.left_out == ()


def test_oldest_of_the_largest_source_goes_first_and_is_named() -> None:
    looks = [look("health", "h" * 300), look("acks", *("a" * 400 for _ in range(5)))]
    bundle = bundle_of("/", looks, limit_bytes=1_900)
    assert bundle.left_out == ("acks:acks/4", "acks:acks/3", "acks:acks/2")
    assert [item.place for item in bundle.sensed_by("acks")] == ["acks/0", "acks/1"]
    assert bundle.sensed_by("health") == looks[0].found
    assert bundle.count("acks") == 5
    assert size(bundle_json(bundle)) <= 1_900


def test_the_only_thing_of_a_source_is_cut_and_says_so() -> None:
    bundle = bundle_of(
        "/", [look("health", {"x": "\n" * 5_000}), look("acks", 1)], limit_bytes=2_000
    )
    [cut] = bundle.sensed_by("health")
    assert cut.condition == "cut"
    assert cut.why.endswith("of 10012 characters")
    assert cut.content.startswith('{\n "x": "\\n')
    assert bundle.sensed_by("acks")[0].content == 1
    assert bundle.missing == (cut,)
    assert 1_950 < size(bundle_json(bundle)) <= 2_000


def test_what_is_cut_twice_still_says_how_long_it_was() -> None:
    looks = [look("one", "x" * 3_000), look("two", "y" * 2_900), look("three", "z" * 2_900)]
    bundle = bundle_of("/", looks, limit_bytes=2_500)
    for source in ("one", "two", "three"):
        for cut in bundle.sensed_by(source):
            assert cut.why.endswith(("of 3000 characters", "of 2900 characters"))
    assert size(bundle_json(bundle)) <= 2_500


def test_many_things_that_do_not_fit_are_counted() -> None:
    bundle = bundle_of("/", [look("acks", *("a" * 100 for _ in range(1_000)))], limit_bytes=3_000)
    shown = len(bundle.sensed_by("acks"))
    assert shown >= 5
    assert len(bundle.left_out) == 21
    assert bundle.left_out[-1] == f"{1_000 - shown - 20} more"


def test_without_room_for_anything_sources_and_counts_stay() -> None:
    bundle = bundle_of("/", [look("acks", *range(50)), look("health", {})], limit_bytes=1)
    assert (bundle.sensed_by("acks"), bundle.count("acks")) == ((), 50)
    assert bundle.left_out == ("51 more",)


def test_a_bundle_of_nothing_is_one() -> None:
    assert json.loads(bundle_json(bundle_of("/", [], limit_bytes=1))) == {
        "root": "/",
        "sources": [],
    }


def test_what_was_cut_differently_is_a_different_state() -> None:
    looks = [look("health", "x" * 5_000)]
    assert bundle_of("/", looks, limit_bytes=PLENTY).digest != bundle_of("/", looks, limit_bytes=2_000).digest  # fmt: skip


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=6), inner, max_size=6),
    max_leaves=20,
)  # fmt: skip
LOOKS = st.lists(
    st.builds(lambda name, values: look(name, *values), st.sampled_from(["health", "acks", "sessions"]), st.lists(VALUES, max_size=8)),
    max_size=4,
)  # fmt: skip


@pytest.mark.soak
@given(looks=LOOKS, limit=st.integers(600, 4_000))
@settings(max_examples=examples(80), deadline=None)
def test_a_bundle_fits_is_json_and_is_the_same_every_time(looks: list[Look], limit: int) -> None:
    bundle = bundle_of("/srv/root", looks, limit_bytes=limit)
    text = bundle_json(bundle)
    assert size(text) <= limit
    assert text == bundle_json(bundle_of("/srv/root", looks, limit_bytes=limit))
    document = json.loads(text)
    assert [source["source"] for source in document["sources"]] == [item.source for item in looks]
    shown = sum(len(source["found"]) for source in document["sources"])
    if not bundle.left_out:
        assert shown == sum(len(item.found) for item in looks)


@given(looks=LOOKS)
@settings(max_examples=examples(40), deadline=None)
def test_what_fits_is_left_as_it_is(looks: list[Look]) -> None:
    whole = bundle_of("/srv/root", looks, limit_bytes=PLENTY)
    assert whole.looks == tuple(looks)
    exact = size(bundle_json(whole))
    roomy = bundle_of("/srv/root", looks, limit_bytes=exact + 120)
    assert roomy == whole
