"""Progress of a candidate in each mode, by the real gate and in real files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import yaml

from podium.config.configuration import load_configuration
from podium.core.decisions import Tier
from podium.core.work import Mode
from podium.jobs.sense.models import CandidateStatus, lower_mode
from podium.jobs.sense.options import sense_mode
from podium.jobs.sense.trust import TrustEntry
from podium.testing import retry_until
from tests.unit.sense.sense_harness import CANDIDATES, INBOX, REPORT, Post, Station, item, plan

TRASH = {"op": "trash", "path": "g/reports/old.md"}
NOTE = {"op": "write", "path": "g/docs/note.md", "content": "hello\n"}
WEEK = 7 * 86_400


async def only(post: Post) -> CandidateStatus:
    """The one candidate of a tick that was asked for."""
    [status] = (await post.tick(manual=True)).candidates
    return status


def trusted(post: Post, zone: str, tier: Tier = Tier.T1, kind: str = "promoted") -> None:
    payload = {"kind": kind, "target": "api", "zone": zone, "tier": tier, "by": "ann"}
    post.trust.add(TrustEntry.model_validate({**payload, "at": post.podium.clock.now()}))


async def test_sensing_reports_a_candidate_and_writes_no_file(tmp_path: Path) -> None:
    station = Station(tmp_path, [plan(item("FIX-A", REPORT))])
    before = station.tree()
    async with station.open() as post:
        status = await only(post)
        assert await post.waiting_approvals() == []
    assert (status.state, status.tier, status.file) == ("logged", "T1", "")
    assert "sensing only reads" in status.why
    new = set(station.tree()) - set(before)
    assert new == {
        "logs/gmx_clc_orchestrator.log",
        "logs/gmx_clc_parse_plan.log",
        "g/telemetry/gmx_clc_orch.jsonl",
    }
    assert {path: station.tree()[path] for path in before} == before


async def test_a_dry_run_files_it_records_a_yes_and_moves_nothing(tmp_path: Path) -> None:
    station = Station(tmp_path, [plan(item("FIX-A", REPORT))], mode="dry-run")
    async with station.open() as post:
        status = await only(post)
        [filed] = station.files(CANDIDATES)
        assert status.state == "waiting"
        assert filed == f"{status.wo_id}.yaml"
        assert yaml.safe_load(station.read(f"{CANDIDATES}/{filed}"))["ops"] == [REPORT]
        await post.say_yes(status.approval_id)
        ended = await post.status(status.run_id)
    assert ended.state == "approved"
    assert f"mv {CANDIDATES}/{filed} {INBOX}/" in ended.why
    assert station.files(INBOX) == []
    assert station.files(CANDIDATES) == [filed]


async def test_a_no_to_a_dry_run_is_recorded_too(tmp_path: Path) -> None:
    station = Station(tmp_path, [plan(item("FIX-A", REPORT))], mode="dry-run")
    async with station.open() as post:
        status = await only(post)
        await post.say_no(status.approval_id, "too early")
        ended = await post.status(status.run_id)
        [entry] = post.trust.entries()
    assert (ended.state, ended.why) == ("rejected", "too early")
    assert (entry.kind, entry.zone, entry.by) == ("disagreed", "g/reports", "ann")


async def test_supervised_delivers_once_after_a_yes(tmp_path: Path) -> None:
    station = Station(tmp_path, [plan(item("FIX-A", REPORT))], mode="supervised")
    async with station.open() as post:
        status = await only(post)
        assert status.state == "waiting"
        assert station.files(INBOX) == []
        await post.say_yes(status.approval_id)
        ended = await post.status(status.run_id)
        delivered = [
            element
            for element in await post.receipts(status.run_id)
            if element.tool == "deliver_order"
        ]
        [entry] = post.trust.entries()
    file = f"{INBOX}/{status.wo_id}.yaml"
    assert (ended.state, ended.file) == ("delivered", file)
    assert station.files(INBOX) == [f"{status.wo_id}.yaml"]
    [receipt] = delivered
    digest = hashlib.sha256((station.root / file).read_bytes()).hexdigest()
    assert (receipt.fields["sha256"], receipt.approved_by) == (digest, ("ann",))
    assert (entry.kind, entry.target, entry.tier) == ("agreed", "api", Tier.T1)


async def test_supervised_never_delivers_after_a_no(tmp_path: Path) -> None:
    again = plan(item("FIX-A", REPORT))
    station = Station(tmp_path, [plan(item("FIX-A", REPORT)), again], mode="supervised")
    async with station.open() as post:
        status = await only(post)
        await post.say_no(status.approval_id)
        assert (await post.status(status.run_id)).state == "rejected"
        assert station.files(INBOX) == []
        second = await post.tick(manual=True)
    assert [candidate.state for candidate in second.candidates] == ["rejected", "held back"]
    assert "was recently rejected" in second.candidates[1].why


async def test_what_nobody_answered_in_time_may_be_proposed_again(tmp_path: Path) -> None:
    again = plan(item("FIX-A", REPORT))
    station = Station(tmp_path, [plan(item("FIX-A", REPORT)), again], mode="supervised")
    async with station.open() as post:
        status = await only(post)
        station.pass_time(WEEK)
        assert (await post.status(status.run_id)).state == "expired"
        expired, second = (await post.tick(manual=True)).candidates
    assert (expired.state, second.state) == ("expired", "waiting")
    assert second.wo_id != status.wo_id
    assert station.files(INBOX) == []


async def test_a_subject_that_waits_is_not_asked_about_a_second_time(tmp_path: Path) -> None:
    again = plan(item("FIX-A", REPORT))
    station = Station(tmp_path, [plan(item("FIX-A", REPORT)), again], mode="supervised")
    async with station.open() as post:
        await only(post)
        [held] = (await post.tick(manual=True)).candidates
        assert len(await post.waiting_approvals()) == 1
    assert held.state == "held back"
    assert "is already waiting" in held.why


@pytest.mark.soak
async def test_the_third_delivery_of_a_limit_of_two_waits_for_its_hour(tmp_path: Path) -> None:
    items = [item(f"FIX-{name}", REPORT) for name in "ABC"]
    station = Station(tmp_path, [plan(*items)], mode="supervised", orders_per_hour=2)
    async with station.open() as post:
        standings = (await post.tick(manual=True)).candidates
        for entry in standings:
            await post.say_yes(entry.approval_id)

        async def one_sleeps() -> str:
            runs = [await post.run(entry.run_id) for entry in standings]
            slept = [run.id for run in runs if "timer:later" in (run.waiting_for or "")]
            return slept[0] if len(slept) == 1 and sum(run.status.ended for run in runs) == 2 else ""  # fmt: skip

        asleep = await retry_until(one_sleeps)
        assert len(station.files(INBOX)) == 2
        station.pass_time(3_601)
        assert (await post.status(asleep)).state == "delivered"
    assert len(station.files(INBOX)) == 3


async def test_autonomous_asks_where_nothing_was_granted(tmp_path: Path) -> None:
    station = Station(tmp_path, [plan(item("FIX-A", REPORT))], mode="autonomous")
    async with station.open() as post:
        assert (await only(post)).state == "waiting"
    assert station.files(INBOX) == []


async def test_autonomous_delivers_unasked_what_was_granted(tmp_path: Path) -> None:
    station = Station(tmp_path, [plan(item("FIX-A", REPORT))], mode="autonomous")
    async with station.open() as post:
        trusted(post, "g/reports")
        outcome = await post.tick(manual=True)
        assert await post.waiting_approvals() == []
    [status] = outcome.candidates
    assert status.state == "delivered"
    assert outcome.created == (status.wo_id,)
    assert f"WOs_Created=1, WO_IDs=[{status.wo_id}]" in station.log()


@pytest.mark.parametrize(
    ("suggested", "why"),
    [
        (item("FIX-A", REPORT, target="other"), "another target"),
        (item("FIX-A", REPORT, NOTE), "one zone more than granted"),
        (item("FIX-A", TRASH), "a tier above the granted one"),
        (item("FIX-A"), "words alone"),
    ],
)
async def test_autonomous_asks_about_whatever_goes_beyond_what_was_granted(
    tmp_path: Path, suggested: dict[str, object], why: str
) -> None:
    station = Station(tmp_path, [plan(suggested)], mode="autonomous")
    station.write("g/reports/old.md", "old")
    async with station.open() as post:
        trusted(post, "g/reports")
        assert (await only(post)).state == "waiting", why
    assert station.files(INBOX) == []


async def test_supervised_asks_although_autonomy_was_granted(tmp_path: Path) -> None:
    station = Station(tmp_path, [plan(item("FIX-A", REPORT))], mode="supervised")
    async with station.open() as post:
        trusted(post, "g/reports", Tier.T4)
        assert (await only(post)).state == "waiting"


async def test_an_incident_takes_autonomy_back_and_people_are_asked_again(tmp_path: Path) -> None:
    plans = [plan(item("FIX-A", REPORT)), plan(item("FIX-B", REPORT))]
    station = Station(tmp_path, plans, mode="autonomous")
    async with station.open() as post:
        trusted(post, "g/reports")
        assert (await only(post)).state == "delivered"
        trusted(post, "g/reports", kind="incident")
        assert (await only(post)).state == "waiting"
        [status] = post.standings
    assert status.granted is None
    assert status.incidents == 1


async def test_agreements_propose_a_promotion_which_only_a_person_gives(tmp_path: Path) -> None:
    plans = [plan(item(f"FIX-{name}", REPORT)) for name in "AB"]
    station = Station(tmp_path, plans, mode="supervised", promote_after=2)
    async with station.open() as post:
        for _ in range(2):
            *_, status = (await post.tick(manual=True)).candidates
            await post.say_yes(status.approval_id)
            await post.status(status.run_id)
        [earned] = post.standings
    assert earned.proposes(2)
    assert (earned.agreed, earned.highest_agreed, earned.granted) == (2, Tier.T1, None)


async def test_an_order_that_could_never_be_done_is_refused_and_nobody_is_asked(
    tmp_path: Path,
) -> None:
    forbidden = {"op": "write", "path": "CLC/rules.md", "content": "mine now"}
    station = Station(tmp_path, [plan(item("FIX-A", forbidden))], mode="supervised")
    async with station.open() as post:
        status = await only(post)
        assert await post.waiting_approvals() == []
    assert status.state == "refused"
    assert status.why.startswith("op 1 (write CLC/rules.md): ")
    assert station.files(CANDIDATES) == station.files(INBOX) == []


@pytest.mark.parametrize(
    ("configured", "wished", "found"),
    [
        ("autonomous", "", "autonomous"),
        ("autonomous", "supervised", "supervised"),
        ("autonomous", "sensing", "sensing"),
        ("sensing", "autonomous", "sensing"),
        ("dry-run", "supervised", "dry-run"),
        ("supervised", "dry-run", "dry-run"),
        ("autonomous", "AUTONOMOUS", "sensing"),
        ("autonomous", "no such mode", "sensing"),
    ],
)
def test_request_lowers_the_mode_and_never_raises_it(
    configured: Mode, wished: str, found: Mode
) -> None:
    assert lower_mode(configured, wished) == found


@pytest.mark.parametrize(
    ("flag", "option", "top", "wished", "found"),
    [
        (None, None, None, None, "sensing"),
        (None, None, "autonomous", None, "autonomous"),
        (None, "dry-run", "autonomous", None, "dry-run"),
        (None, "supervised", "sensing", None, "sensing"),
        ("autonomous", "dry-run", "sensing", None, "autonomous"),
        ("sensing", "supervised", None, None, "sensing"),
        (None, "supervised", None, "dry-run", "dry-run"),
        (None, "dry-run", None, "autonomous", "dry-run"),
        ("autonomous", None, None, " supervised ", "supervised"),
        ("dry-run", None, None, "autonomous", "dry-run"),
        ("autonomous", None, None, "nonsense", "sensing"),
    ],
)
def test_a_persons_flag_counts_alone_and_else_the_strictest_that_is_configured(
    tmp_path: Path,
    flag: str | None,
    option: str | None,
    top: str | None,
    wished: str | None,
    found: str,
) -> None:
    station = Station(tmp_path, settings={"mode": top} if top else {}, mode=option)
    if wished is not None:
        station.variables["GMX_ORCH_MODE"] = wished
    flags = {"mode": flag} if flag else {}
    configuration = load_configuration(station.environ, project=station.root, flags=flags)
    assert sense_mode(configuration, station.environ) == found


async def test_the_variable_stops_a_delivery_until_it_is_taken_away_and_the_yes_is_not_lost(
    tmp_path: Path,
) -> None:
    station = Station(tmp_path, [plan(item("FIX-A", REPORT))], mode="supervised")
    async with station.open() as post:
        asked = await only(post)
    station.variables["GMX_ORCH_MODE"] = "sensing"
    async with station.open() as post:
        await post.serve()
        await post.say_yes(asked.approval_id)

        async def put_off() -> bool:
            return "timer:later" in ((await post.run(asked.run_id)).waiting_for or "")

        await retry_until(put_off)
    assert station.files(INBOX) == []
    del station.variables["GMX_ORCH_MODE"]
    async with station.open() as post:
        await post.serve()
        station.pass_time(301)
        ended = await post.status(asked.run_id)
    assert ended.state == "delivered"
    assert len(station.files(INBOX)) == 1


async def test_a_delivery_that_cannot_be_written_is_tried_again_and_not_lost(
    tmp_path: Path,
) -> None:
    station = Station(tmp_path, [plan(item("FIX-A", REPORT))], mode="autonomous")
    inbox = station.root / INBOX
    inbox.parent.mkdir(parents=True, exist_ok=True)
    if inbox.exists():
        inbox.rmdir()
    inbox.write_text("in the way")
    async with station.open() as post:
        trusted(post, "g/reports")
        put_off = await only(post)
        assert put_off.state == "waiting"
        inbox.unlink()
        station.pass_time(301)
        assert (await post.status(put_off.run_id)).state == "delivered"
    assert station.files(INBOX) == [f"{put_off.wo_id}.yaml"]


async def test_a_worker_whose_mode_was_lowered_leaves_orders_where_they_are(tmp_path: Path) -> None:
    station = Station(tmp_path, settings={"mode": "autonomous"})
    text = yaml.safe_dump({"id": "WO-1", "title": "a note", "ops": [NOTE]})
    station.write(f"{INBOX}/WO-1.yaml", text)
    station.variables["GMX_ORCH_MODE"] = "sensing"
    async with station.open() as post:
        assert await post.tend() == 0
    assert station.files(INBOX) == ["WO-1.yaml"]
    del station.variables["GMX_ORCH_MODE"]
    async with station.open() as post:
        assert await post.tend() == 1
    assert station.files(INBOX) == []
