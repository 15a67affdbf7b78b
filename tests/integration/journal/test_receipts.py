"""An untouched chain is sound; any tampering with it is found."""

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from podium.core.decisions import Receipt, Tier, Usage
from podium.core.errors import BadInput, StoreUnusable, UserMustAct
from podium.store.receipts import (
    Anchors,
    ChainHead,
    FindingKind,
    Sealer,
    load_or_create_key,
    verify,
)
from tests.soaking import examples

RUN = "run_one"
OTHER_RUN = "run_two"
SEALER = Sealer(bytes(range(32)))
TIMESTAMP = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

Chain = list[Receipt]


def a_receipt(**changes: Any) -> Receipt:
    draft: dict[str, Any] = {
        "run_id": RUN,
        "number": 0,
        "call_key": f"{RUN}:build:0",
        "tool": "write_file",
        "digest": "sha256:" + "a" * 64,
        "status": "completed",
        "tier": Tier.T1,
        "rule": "workspace-writes",
        "requested_at": TIMESTAMP,
        "settled_at": TIMESTAMP + timedelta(seconds=1),
    }
    return Receipt(**{**draft, **changes})


def chained(drafts: list[Receipt], sealer: Sealer = SEALER) -> Chain:
    chain: Chain = []
    for number, draft in enumerate(drafts, start=1):
        chain.append(sealer.seal(draft, chain[-1].seal if chain else "", number))
    return chain


def a_chain(length: int, run_id: str = RUN) -> Chain:
    return chained([a_receipt(run_id=run_id, call_key=f"{run_id}:s:{n}") for n in range(length)])


def anchored(folder: Path, chain: Chain) -> Anchors:
    anchors = Anchors(folder)
    for receipt in chain:
        anchors.write(RUN, receipt.number, receipt.seal)
    return anchors


def kinds(chain: Chain, anchors: Anchors, run_id: str = RUN) -> set[FindingKind]:
    return {finding.kind for finding in verify({run_id: chain}, SEALER, anchors)}


json_values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10)
drafts = st.builds(
    a_receipt,
    status=st.sampled_from(["completed", "failed", "in_doubt", "abandoned"]),
    tier=st.sampled_from(Tier),
    error=st.text(max_size=10),
    approved_by=st.lists(st.text(max_size=5), max_size=2).map(tuple),
    fields=st.dictionaries(st.text(max_size=5), json_values | st.lists(json_values, max_size=2)),
    undo=st.none() | st.dictionaries(st.text(max_size=5), json_values, max_size=2),
    usage=st.builds(Usage, usd=st.floats(0, 10), input_tokens=st.integers(0, 10**12)),
)
chains = st.lists(drafts, min_size=1, max_size=6).map(chained)


@settings(max_examples=examples(50))
@given(chains, st.data())
def test_an_untouched_chain_has_no_findings_also_when_the_anchor_is_behind(
    chain: Chain, data: st.DataObject
) -> None:
    anchor_length = data.draw(st.integers(1, len(chain)))
    stored = [Receipt.model_validate_json(receipt.model_dump_json()) for receipt in chain]
    with tempfile.TemporaryDirectory() as folder:
        anchors = anchored(Path(folder), chain[:anchor_length])
        assert verify({RUN: stored}, SEALER, anchors) == []


def _another(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case Tier():
            return Tier.T4 if value is not Tier.T4 else Tier.T0
        case datetime():
            return value + timedelta(microseconds=1)
        case Usage():
            return value.model_copy(update={"usd": value.usd + 1})
        case "completed":
            return "failed"
        case str():
            return value + "x"
        case int():
            return value + 1
        case None:
            return {}
        case tuple():
            return (*value, "eve")
        case dict():
            return {**value, "more": 1}
    raise AssertionError(value)


def _edit(chain: Chain, data: st.DataObject) -> Chain:
    at = data.draw(st.integers(0, len(chain) - 1))
    field = data.draw(st.sampled_from(sorted(Receipt.model_fields)))
    changed = _another(getattr(chain[at], field)) if field != "approval_id" else "approval_of_eve"
    if field == "status" and chain[at].status != "completed":
        changed = "completed"
    edited = chain[at].model_copy(update={field: changed})
    return [*chain[:at], edited, *chain[at + 1 :]]


def _remove(chain: Chain, data: st.DataObject) -> Chain:
    at = data.draw(st.integers(0, len(chain) - 1))
    return chain[:at] + chain[at + 1 :]


def _remove_and_renumber(chain: Chain, data: st.DataObject) -> Chain:
    left = _remove(chain, data)
    return [one.model_copy(update={"number": n}) for n, one in enumerate(left, start=1)]


def _cut_the_end(chain: Chain, data: st.DataObject) -> Chain:
    return chain[: data.draw(st.integers(0, len(chain) - 1))]


def _reseal_with_another_key(chain: Chain, data: st.DataObject) -> Chain:
    key = data.draw(st.binary(min_size=32, max_size=32))
    assume(key != bytes(range(32)))
    return chained(chain, Sealer(key))


def _swap(chain: Chain, data: st.DataObject) -> Chain:
    assume(len(chain) > 1)
    at = data.draw(st.integers(0, len(chain) - 2))
    to = data.draw(st.integers(at + 1, len(chain) - 1))
    swapped = list(chain)
    swapped[at], swapped[to] = chain[to], chain[at]
    return swapped


def _swap_and_renumber(chain: Chain, data: st.DataObject) -> Chain:
    swapped = enumerate(_swap(chain, data), start=1)
    return [one.model_copy(update={"number": number}) for number, one in swapped]


def _insert_a_copy(chain: Chain, data: st.DataObject) -> Chain:
    at = data.draw(st.integers(0, len(chain) - 1))
    return [*chain[: at + 1], *chain[at:]]


def _take_one_of_another_run(chain: Chain, data: st.DataObject) -> Chain:
    at = data.draw(st.integers(0, len(chain) - 1))
    stranger = a_chain(len(chain), OTHER_RUN)[at]
    return [*chain[:at], stranger, *chain[at + 1 :]]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "tamper",
    [
        _edit,
        _remove,
        _remove_and_renumber,
        _cut_the_end,
        _reseal_with_another_key,
        _swap,
        _swap_and_renumber,
        _insert_a_copy,
        _take_one_of_another_run,
    ],
)
@settings(max_examples=examples(40))
@given(chain=chains, data=st.data())
def test_any_single_tampering_is_found(
    tamper: Callable[[Chain, st.DataObject], Chain], chain: Chain, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        anchors = anchored(Path(folder), chain)
        assert verify({RUN: tamper(chain, data)}, SEALER, anchors)


def test_a_changed_field_is_an_edit(tmp_path: Path) -> None:
    chain = a_chain(3)
    anchors = anchored(tmp_path, chain)
    chain[1] = chain[1].model_copy(update={"status": "failed"})
    (finding,) = verify({RUN: chain}, SEALER, anchors)
    assert (finding.run_id, finding.number, finding.kind) == (RUN, 2, "edited")


def test_deleted_receipts_at_the_end_are_a_cut(tmp_path: Path) -> None:
    chain = a_chain(5)
    (finding,) = verify({RUN: chain[:3]}, SEALER, anchored(tmp_path, chain))
    assert (finding.number, finding.kind) == (4, "cut_off")
    assert "ends at 3" in finding.problem
    assert "head is 5" in finding.problem


def test_a_run_whose_receipts_are_all_deleted_is_found(tmp_path: Path) -> None:
    (finding,) = verify({}, SEALER, anchored(tmp_path, a_chain(4)))
    assert (finding.run_id, finding.number, finding.kind) == (RUN, None, "removed")


def test_a_deleted_receipt_in_the_middle_is_found_and_after_renumbering_too(tmp_path: Path) -> None:
    chain = a_chain(4)
    anchors = anchored(tmp_path, chain)
    left = [chain[0], chain[2], chain[3]]
    assert kinds(left, anchors) == {FindingKind.REMOVED}
    renumbered = [one.model_copy(update={"number": n}) for n, one in enumerate(left, start=1)]
    assert FindingKind.EDITED in kinds(renumbered, anchors)
    assert FindingKind.CUT_OFF in kinds(renumbered, anchors)


def test_two_swapped_receipts_are_found(tmp_path: Path) -> None:
    chain = a_chain(4)
    anchors = anchored(tmp_path, chain)
    assert kinds([chain[0], chain[2], chain[1], chain[3]], anchors) == {FindingKind.REORDERED}


def test_a_chain_sealed_with_another_key_is_forged(tmp_path: Path) -> None:
    chain = a_chain(3)
    forged = chained(chain, Sealer(b"e" * 32))
    found = kinds(forged, anchored(tmp_path, chain))
    assert FindingKind.FORGED in found
    assert FindingKind.EDITED not in found


def test_a_chain_rewritten_with_the_stolen_key_is_found_by_its_heads(tmp_path: Path) -> None:
    chain = a_chain(3)
    rewritten = chained([a_receipt(rule="made-up") for _ in chain])
    assert kinds(rewritten, anchored(tmp_path, chain)) == {FindingKind.REPLACED}


def test_a_receipt_moved_to_another_run_is_found(tmp_path: Path) -> None:
    chain = a_chain(2)
    anchors = anchored(tmp_path, chain)
    assert FindingKind.MOVED in kinds([*chain, a_chain(3, OTHER_RUN)[2]], anchors)


def test_a_receipt_without_a_seal_is_found(tmp_path: Path) -> None:
    chain = a_chain(2)
    anchors = anchored(tmp_path, chain)
    assert FindingKind.UNSEALED in kinds(
        [chain[0], chain[1].model_copy(update={"seal": ""})], anchors
    )


def test_chain_without_any_head_is_reported_unless_a_crash_explains_it(tmp_path: Path) -> None:
    assert kinds(a_chain(2), Anchors(tmp_path)) == {FindingKind.HEAD_MISSING}
    assert kinds(a_chain(1), Anchors(tmp_path)) == set()


def test_a_run_id_made_up_by_a_tamperer_does_not_stop_the_check(tmp_path: Path) -> None:
    anchors = anchored(tmp_path, a_chain(1))
    (tmp_path / "planted").write_bytes((tmp_path / "heads" / RUN).read_bytes())
    assert anchors.heads("../planted") == []
    strange = [a_receipt(run_id="../planted", seal="0" * 64, number=1)]
    assert FindingKind.FORGED in kinds(strange, anchors, "../planted")


def test_seal_is_the_same_for_the_same_instant_in_any_time_zone() -> None:
    elsewhere = TIMESTAMP.astimezone(timezone(timedelta(hours=5)))
    assert SEALER.seal_of(a_receipt(requested_at=elsewhere)) == SEALER.seal_of(a_receipt())


def test_seals_of_released_versions_stay_valid() -> None:
    sealed = SEALER.seal(a_receipt(fields={"path": "a.txt", "bytes": 12}), "", 1)
    assert sealed.seal == "1b38fa90afdc5f057579d4d8a1d3a4011569f331a1425c14b97ed87f580f8026"


def test_a_key_of_the_wrong_size_is_refused_by_the_sealer() -> None:
    with pytest.raises(BadInput, match="32 bytes, not 3"):
        Sealer(b"abc")


def test_the_key_is_made_once_for_this_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "vault" / "receipt.key"
    key = load_or_create_key(path)
    assert len(key) == 32
    assert load_or_create_key(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["receipt.key"]


def test_processes_that_race_for_the_key_get_the_same_one(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from podium.store.receipts import load_or_create_key\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for n in range(20): print(load_or_create_key(Path(sys.argv[1]) / str(n) / 'key').hex())\n"
    )
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for racer in racers:
        assert racer.stdout
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("go\n")
        racer.stdin.flush()
    keys = [racer.communicate()[0].split() for racer in racers]
    assert len(keys[0]) == 20
    assert keys[0] == keys[1] == keys[2]


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_a_file_that_is_no_key_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "receipt.key"
    path.write_bytes(content)
    with pytest.raises(UserMustAct, match="restore the file from a backup"):
        load_or_create_key(path)
    assert path.read_bytes() == content


def test_unreadable_key_is_reported(tmp_path: Path) -> None:
    (tmp_path / "receipt.key").mkdir()
    with pytest.raises(StoreUnusable, match="cannot be read or created"):
        load_or_create_key(tmp_path / "receipt.key")


def test_a_lost_key_is_not_replaced_while_heads_stand_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "receipt.key"
    load_or_create_key(path)
    anchored(tmp_path, a_chain(1))
    path.unlink()
    with pytest.raises(StoreUnusable, match="restore the key from a backup"):
        load_or_create_key(path)
    assert not path.exists()


def test_heads_are_kept_by_run(tmp_path: Path) -> None:
    anchors = Anchors(tmp_path)
    assert anchors.runs() == []
    anchors.write("run_b", 1, "b" * 64)
    anchors.write("run_a", 1, "a" * 64)
    anchors.write("run_a", 2, "c" * 64)
    assert anchors.runs() == ["run_a", "run_b"]
    assert anchors.head("run_a") == ChainHead(2, "c" * 64)
    assert anchors.head("run_c") is None
    assert stat.S_IMODE((tmp_path / "heads").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "heads" / "run_a").stat().st_mode) == 0o600


def test_a_head_that_is_noted_late_does_not_take_the_chain_back(tmp_path: Path) -> None:
    anchors = Anchors(tmp_path)
    anchors.write(RUN, 2, "b" * 64)
    anchors.write(RUN, 1, "a" * 64)
    assert anchors.head(RUN) == ChainHead(2, "b" * 64)


def test_a_line_torn_at_any_byte_spoils_itself_alone(tmp_path: Path) -> None:
    anchors = anchored(tmp_path, a_chain(2))
    path = tmp_path / "heads" / RUN
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for length in range(first, len(whole)):
        path.write_bytes(whole[:length])
        head = anchors.head(RUN)
        assert head
        assert head.number == 1
        anchors.write(RUN, 3, "d" * 64)
        assert anchors.heads(RUN)[0] == head
        assert anchors.head(RUN) == ChainHead(3, "d" * 64)


@pytest.mark.parametrize("run_id", ["", ".", "..", "../x", "a/b", "a\0b", ".hidden", "x" * 200])
def test_a_run_id_that_is_no_plain_name_writes_nothing(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(BadInput, match="cannot be a file name"):
        Anchors(tmp_path).write(run_id, 1, "a" * 64)
    assert list(tmp_path.iterdir()) == []


def test_a_head_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "heads").mkdir()
    target = tmp_path / "elsewhere"
    target.touch()
    os.symlink(target, tmp_path / "heads" / RUN)
    with pytest.raises(OSError):
        Anchors(tmp_path).write(RUN, 1, "a" * 64)
    assert target.read_bytes() == b""


def test_a_receipt_sealed_before_proofs_of_people_were_recorded_stays_sound() -> None:
    old = a_receipt(approved_by=("ann", "bob"))
    sealed_then = "b03369b02e41f720750ac59340bbb9a5143b80ae952caac5eab9fd8a6993ae80"
    assert SEALER.seal_of(old) == sealed_then
    proved = old.model_copy(update={"approved_how": ("os_user", "token")})
    forged = proved.model_copy(update={"approved_how": ("os_user", "os_user")})
    assert len({SEALER.seal_of(item) for item in (old, proved, forged)}) == 3
