"""A pack that nobody trusts yet is only looked at: it fetches, hangs, crashes and swaps nothing."""

from __future__ import annotations

import importlib.util
import marshal
import os
import shutil
import socket
import struct
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from podium.core.errors import PackInvalid
from podium.store import SqlStore
from podium.testing import FixedClock, SteadyIds
from podium.tools.packs import load_pack, pack_digest, shipped_packs
from podium.tools.packs.checks.schemas import reference_problems
from podium.tools.packs.files import PackSnapshot, snapshot_of
from tests.integration.packs.test_pack_calls import open_workshop
from tests.unit.packs.bikes import registry_with, write_pack
from tests.unit.packs.test_pack_registry import faults, only_fault

BIKE = "/tools/0/input_schema/properties/bike"


def with_bike(schema: Any, example: Any, **beside: Any) -> dict[str, Any]:
    """The registry with another schema for `bike`, and an example that is held against it."""
    registry = registry_with(BIKE, schema)
    registry["tools"][0]["input_schema"] |= beside
    registry["tools"][0]["examples"][0]["arguments"]["bike"] = example
    return registry


@pytest.mark.parametrize(
    "hidden",
    [
        lambda ref: {"properties": {"default": ref}},
        lambda ref: {"properties": {"enum": {"properties": {"const": ref}}}},
        lambda ref: {"dependentSchemas": {"examples": ref}},
        lambda ref: {"patternProperties": {"^default$": ref}},
        lambda ref: {"unevaluatedProperties": ref},
        lambda ref: {"allOf": [True, ref]},
        lambda ref: {"$ref": "#/$defs/default", "$defs": {"default": ref}},
    ],
)
@pytest.mark.parametrize("scheme", ["http", "file"])
def test_no_reference_is_ever_fetched_wherever_it_appears(
    tmp_path: Path, scheme: str, hidden: Callable[[Any], Any]
) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        where = f"http://127.0.0.1:{listener.getsockname()[1]}/x.json"
        (tmp_path / "x.json").write_text("true")
        reference = {"$ref": where if scheme == "http" else (tmp_path / "x.json").as_uri()}
        schema = hidden(reference)
        registry = with_bike(schema, {"default": 1}, **{"$defs": schema.pop("$defs", {})})

        found = faults(write_pack(tmp_path / "bikes", registry))

        with pytest.raises(BlockingIOError):
            listener.accept()
    assert ["does not refer to a schema inside" in fault.problem for fault in found] == [True]
    assert found[0].pointer.endswith("/$ref")


@pytest.mark.parametrize(
    ("schema", "place", "words"),
    [
        ({"$ref": f"#{BIKE[21:]}"}, f"{BIKE}/$ref", "is a circular reference"),
        ({"items": {"$ref": "#"}}, f"{BIKE}/items/$ref", "is a circular reference"),
        ({"$ref": "#/properties/owner/x-ask"}, f"{BIKE}/$ref", "does not refer to a schema"),
        ({"$ref": "#/$defs/a%41"}, f"{BIKE}/$ref", "does not refer to a schema"),
        ({"$dynamicRef": "#x"}, f"{BIKE}/$dynamicRef", "is not supported in packs"),
        ({"$id": "http://127.0.0.1/"}, f"{BIKE}/$id", "is not supported in packs"),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#"},
            f"{BIKE}/$schema",
            "is not supported",
        ),
        ({"pattern": "^(a+)+$"}, f"{BIKE}/pattern", "a repetition inside a repetition"),
        ({"pattern": "("}, f"{BIKE}/pattern", "not a valid regular expression"),
        (
            {"patternProperties": {"(": {}}},
            f"{BIKE}/patternProperties/(",
            "not a valid regular expression",
        ),
        ({"patternProperties": {".*,": {}}}, f"{BIKE}/patternProperties/.*,", "can be slow"),
    ],
    ids=lambda part: str(part)[:40],
)
def test_what_could_hang_or_crash_a_check_is_a_fault_with_its_place(
    tmp_path: Path, schema: Any, place: str, words: str
) -> None:
    registry = with_bike(schema, "a" * 40 + "!", **{"$defs": {"a%41": {}, "unused": {}}})

    found = only_fault(write_pack(tmp_path / "bikes", registry))

    assert found.pointer == place
    assert words in found.problem


def levels(number: int, item: Callable[[Any], Any]) -> dict[str, Any]:
    made = {f"l{at}": item({"$ref": f"#/$defs/l{at + 1}"}) for at in range(number)}
    return made | {f"l{number}": {}}


@pytest.mark.parametrize(
    ("definitions", "words"),
    [
        (levels(9, lambda ref: {"allOf": [ref] * 10}), "has more than 10000 subschemas"),
        (levels(60, lambda ref: ref), "more than 50 deep"),
        (
            levels(12, lambda ref: {"allOf": [ref], "unevaluatedProperties": False}),
            "has more than 10000 subschemas",
        ),
    ],
    ids=["wide", "deep", "unevaluated"],
)
def test_references_that_blow_up_are_a_fault(
    tmp_path: Path, definitions: dict[str, Any], words: str
) -> None:
    registry = with_bike({"$ref": "#/$defs/l0"}, {"x": 1}, **{"$defs": definitions})

    found = only_fault(write_pack(tmp_path / "bikes", registry))

    assert found.pointer.startswith("/tools/0/input_schema/$defs/l")
    assert words in found.problem


def test_references_that_meet_again_are_no_circle() -> None:
    point = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/n"}, "y": {"$ref": "#/$defs/n"}},
    }
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "line.json",
        "prefixItems": [
            {"$ref": "#/$defs/a%20b~1c"},
            {"$ref": "#/$defs/a b~1c"},
            {"$ref": "#/prefixItems/0"},
        ],
        "$defs": {"a b/c": point, "n": {"type": "number"}},
    }

    assert list(reference_problems(schema)) == []


def test_examples_that_would_take_too_long_together_are_a_fault(tmp_path: Path) -> None:
    registry = with_bike({"pattern": "^.*,.*,.*x$"}, "," * 200)
    tool = registry["tools"][0]
    tool["examples"] = [{**tool["examples"][0], "say": f"book {at}"} for at in range(100)]
    good = {"say": "book a blue one", "arguments": {"bike": "a,b,x"}}

    found = faults(write_pack(tmp_path / "bikes", registry))
    tool["examples"] = [good] * 100
    load_pack(write_pack(tmp_path / "bikes", registry))

    assert any("takes too long to check" in fault.problem for fault in found)
    assert len(found) < 100


def test_a_schema_nested_deeper_than_python_goes_is_a_fault(tmp_path: Path) -> None:
    schema: Any = {"multipleOf": 1}
    for _ in range(80):
        schema = {"not": schema}

    (found, *_) = faults(write_pack(tmp_path / "bikes", with_bike(schema, 1)))

    assert "deep" in found.problem


def test_more_faults_than_anybody_reads_are_cut_short(tmp_path: Path) -> None:
    found = faults(write_pack(tmp_path / "bikes", {f"k{at}": 1 for at in range(5_000)}))

    assert len(found) == 501
    assert "more problems than these 500" in found[-1].problem


@pytest.mark.parametrize("code", ["(" * 200_000, "-" * 100_000 + "1", "x = 1\0", "a" * 5_000_001])
def test_code_that_no_parser_gets_through_is_a_fault(tmp_path: Path, code: str) -> None:
    found = faults(write_pack(tmp_path / "bikes", **{"ledger.py": code}))

    assert "/reader" in {fault.pointer for fault in found}


@pytest.mark.parametrize("name", ["__pycache__", "desk/__pycache__", ".git"])
def test_folders_that_a_digest_cannot_hold_are_reported_for_removal(
    tmp_path: Path, name: str
) -> None:
    folder = write_pack(tmp_path / "bikes")
    (folder / name).mkdir()

    found = only_fault(folder)

    assert found.file == str(folder / name)
    assert "delete this folder" in found.problem or "keep the repository elsewhere" in found.problem


def test_every_other_file_counts_whatever_it_is_called(tmp_path: Path) -> None:
    folder = write_pack(tmp_path / "bikes")
    digests = {pack_digest(folder)}
    for name in (".git", ".ledger.py.swp", "ledger.pyc", ".venv/x.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
        digests.add(pack_digest(folder))

    assert len(digests) == 5


def test_what_an_installer_compiles_beside_shipped_packs_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The real folder of shipped packs is not written to by tests.
    monkeypatch.setattr("podium.tools.packs.files.shipped_packs", lambda: tmp_path)
    folder = write_pack(tmp_path / "bikes")
    before = pack_digest(folder)
    (folder / "desk/__pycache__").mkdir()
    (folder / "desk/__pycache__/repairs.cpython-311.pyc").write_text("x")

    assert pack_digest(folder) == before


def test_what_is_swapped_while_a_pack_is_read_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The swap comes between hashing and reading, for each file that is read."""
    read = PackSnapshot.content

    def swapped(files: PackSnapshot, name: str) -> bytes:
        path = files.folder / name
        good = path.read_bytes()
        path.write_bytes(good + b"\n")
        try:
            return read(files, name)
        finally:
            path.write_bytes(good)

    for name in ("tools.registry.json", "ledger.py", "suburbs.txt", "schemas/check_in.json"):
        folder = write_pack(tmp_path / name / "bikes")
        monkeypatch.setattr(
            PackSnapshot,
            "content",
            lambda files, asked, at=name: (swapped if asked == at else read)(files, asked),
        )

        with pytest.raises(PackInvalid, match="was changed while the pack was read; try again"):
            load_pack(folder)
        monkeypatch.undo()
        assert load_pack(folder).digest == pack_digest(folder)


def test_a_pipe_that_takes_a_files_place_keeps_nobody_waiting(tmp_path: Path) -> None:
    folder = write_pack(tmp_path / "bikes")
    files = snapshot_of(folder)
    (folder / "ledger.py").unlink()
    os.mkfifo(folder / "ledger.py")

    with pytest.raises(PackInvalid, match="not a regular file"):
        files.content("ledger.py")
    assert "not a regular file" in str(only_fault(folder))


def test_a_pack_is_called_like_its_folder(tmp_path: Path) -> None:
    found = only_fault(write_pack(tmp_path / "wheels"))

    assert found.pointer == "/pack"
    assert "pack 'bikes' is in a folder named 'wheels'" in found.problem


def test_a_pack_does_not_take_the_name_of_one_that_comes_with_podium(tmp_path: Path) -> None:
    copy = tmp_path / "packs/roofing"
    shutil.copytree(shipped_packs() / "roofing", copy, ignore=shutil.ignore_patterns("__pycache__"))
    load_pack(copy)

    (copy / "more.txt").write_text("more")

    found = only_fault(copy)
    assert found.pointer == "/pack"
    assert "'roofing' ships with Podium" in found.problem


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    (tmp_path / "store").mkdir()
    made = await SqlStore.open(tmp_path / "store", clock=FixedClock(), ids=SteadyIds())
    yield made
    await made.close()


async def test_an_mcp_server_runs_its_source_and_writes_no_compiled_code(
    tmp_path: Path, store: SqlStore
) -> None:
    server = "import sys, prices\n" + SERVER
    files = {"price_server.py": server, "prices.py": "PRICE = 3\n"}
    workshop = open_workshop(tmp_path, store, **files)

    outcome = await workshop.use("parts.price", part="bell")

    assert outcome.ok, outcome.error
    assert outcome.result["price"] == 3
    assert outcome.result["prefix"] is True
    assert not list((tmp_path / "packs").rglob("__pycache__"))


async def test_compiled_code_that_is_slipped_in_after_trust_does_not_run(
    tmp_path: Path, store: SqlStore
) -> None:
    server = "import sys, prices\n" + SERVER
    files = {"price_server.py": server, "prices.py": "PRICE = 3\n"}
    workshop = open_workshop(tmp_path, store, **files)
    source = tmp_path / "packs/bikes/prices.py"
    slip_in(source, "PRICE = 666\n")

    outcome = await workshop.use("parts.price", part="bell")

    assert not outcome.ok
    assert "contains compiled code" in outcome.error


def slip_in(source: Path, code: str) -> None:
    """Compiled code that Python takes for that of the source: its time and size fit."""
    stat = source.stat()
    name = importlib.util.cache_from_source(str(source))
    header = struct.pack("<III", 0, int(stat.st_mtime), stat.st_size)
    compiled = marshal.dumps(compile(code, str(source), "exec"))
    Path(name).parent.mkdir()
    Path(name).write_bytes(importlib.util.MAGIC_NUMBER + header + compiled)


SERVER = """
import json, os
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        print(json.dumps({"id": asked["id"], "result": {}}), flush=True)
    elif asked["method"] == "tools/call":
        own = os.environ.get("PYTHONPYCACHEPREFIX", "")
        found = {"price": prices.PRICE, "prefix": bool(own) and not os.listdir(own)}
        result = {"content": [], "structuredContent": found}
        print(json.dumps({"id": asked["id"], "result": result}), flush=True)
"""
