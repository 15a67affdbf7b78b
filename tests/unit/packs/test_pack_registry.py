"""A registry loads whole or not at all, and every fault has its file, its pointer and its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from podium.core.errors import BadInput, PackInvalid, PackProblem
from podium.tools.packs import load_pack, pack_digest
from tests.unit.packs.bikes import REGISTRY, registry_with, write_pack


def faults(folder: Path) -> list[PackProblem]:
    with pytest.raises(PackInvalid) as raised:
        load_pack(folder)
    assert str(raised.value).splitlines() == [str(fault) for fault in raised.value.problems]
    return list(raised.value.problems)


def only_fault(folder: Path) -> PackProblem:
    found = faults(folder)
    assert len(found) == 1, [str(fault) for fault in found]
    return found[0]


def test_a_sound_pack_loads_with_its_words_and_schemas(tmp_path: Path) -> None:
    pack = load_pack(write_pack(tmp_path / "bikes"))

    assert pack.name == "bikes"
    assert pack.vocabulary == {"suburb": ("Fitzroy", "Brunswick East")}
    assert pack.context_schemas["check_in"]["type"] == "object"
    tool = pack.tool("repair.book")
    assert tool is not None
    assert tool.required == ("owner",)
    assert pack.digest == pack_digest(tmp_path / "bikes")


def test_loading_runs_nothing_of_the_pack(tmp_path: Path) -> None:
    code = "raise SystemExit\nasync def read_row(*a): ..."
    pack = load_pack(write_pack(tmp_path / "bikes", **{"ledger.py": code}))
    assert pack.tool("repair.book")


CASES: list[tuple[str, Any, str, str]] = [
    ("/tools/0/tier", "T7", "/tools/0/tier", "'T7' is not a tier; use one of T0, T1, T2, T3, T4"),
    ("/tools/0/tier", 1, "/tools/0/tier", "1 is not a tier; use one of T0, T1, T2, T3, T4"),
    ("/tools/0/tier", ..., "/tools/0/tier", "is missing"),
    ("/tools/0/timeout_seconds", "30", "/tools/0/timeout_seconds", "'30'"),
    ("/tools/0/timeout_seconds", 0, "/tools/0/timeout_seconds", "greater than 0"),
    ("/tools/0/descriptoin", "x", "/tools/0/descriptoin", "did you mean 'description'?"),
    ("/tools/0/cost", {"euro": 1}, "/tools/0/cost/euro", "known keys: usd, seconds"),
    ("/tools/0/name", "read_file", "/tools/0/name", "quote.finalize"),
    ("/tools/1/name", "repair.book", "/tools/1/name", "already exists, at /tools/0/name"),
    ("/skills/0/name", "repair.book", "/skills/0/name", "already exists, at /tools/0/name"),
    ("/domains/1/name", "repair", "/domains/1/name", "already exists, at /domains/0/name"),
    ("/settings/1/name", "BIKES_PARTS_URL", "/settings/1/name", "already exists"),
    ("/settings/0/name", "bikes url", "/settings/0/name", "SMTP_PASSWORD"),
    ("/pack", "Bikes!", "/pack", "lower-case letters"),
    ("/tools/0/handler", 3, "/tools/0/handler", "must be `module:function`"),
    ("/tools/0/handler", "desk", "/tools/0/handler", "is not a `module:function`"),
    ("/tools/0/handler", "desk.none:book", "/tools/0/handler", "no file 'desk/none.py'"),
    ("/tools/0/handler", "desk.repairs:buy", "/tools/0/handler", "has no function 'buy'"),
    ("/tools/0/handler", "ledger:entries", "/tools/0/handler", "must be an `async def`"),
    ("/tools/0/handler", "ledger:read_row", "/tools/0/handler", "must take 2 positional arguments"),
    ("/reader", "desk.repairs:book", "/reader", "must take 4 positional arguments"),
    ("/tools/0/handler", {"smtp": {}}, "/tools/0/handler", "must be `module:function`"),
    ("/tools/0/handler", {"http": {"url": "ftp://x"}}, "/tools/0/handler", "http.url"),
    ("/tools/2/handler/http/url", "${NOWHERE}/x", "/tools/2/handler", "${NOWHERE} is not among"),
    ("/tools/0/receipt_fields", [], "/tools/0/receipt_fields", "is empty"),
    ("/tools/2/receipt_fields", ["order", "order"], "/tools/2/receipt_fields/1", "listed twice"),
    (
        "/tools/2/receipt_fields",
        ["undoes"],
        "/tools/2/receipt_fields/0",
        "a field that Podium puts on every receipt",
    ),
    ("/tools/0/undo", "repair.forget", "/tools/0/undo", "no tool 'repair.forget'"),
    ("/tools/2/undo", "repair.drop", "/tools/2/undo", "repair.drop needs 'repair_id'"),
    ("/tools/0/domain", "bakery", "/tools/0/domain", "domains: parts, repair"),
    ("/tools/2/tier", "T1", "/tools/2/tier", "T1 is below T2: domain parts (parts.*) is T2"),
    ("/domains/0/patterns", ["fix.*"], "/tools/0/name", "matches no pattern of any domain"),
    ("/domains/0/patterns/0", "[rx]*", "/domains/0/patterns/0", "is not a pattern"),
    ("/tier_examples", [{"tool": "parts.steal", "tier": "T4"}], "/tier_examples/0/tool", "no tool"),
    ("/tier_examples", [{"tool": "parts.price", "tier": "T4"}], "/tools/3/tier", "the tier table"),
    (
        "/vocabulary",
        {"colour": "suburbs.txt"},
        "/vocabulary/colour",
        "is not a known kind of field",
    ),
    ("/vocabulary/suburb", "../x.txt", "/vocabulary/suburb", "inside the pack's folder"),
    ("/vocabulary/suburb", "/etc/passwd", "/vocabulary/suburb", "inside the pack's folder"),
    ("/vocabulary/suburb", "towns.txt", "/vocabulary/suburb", "has no file 'towns.txt'"),
    ("/contexts/0/schema_file", "no.json", "/contexts/0/schema_file", "has no file"),
    ("/tools/0/verify/0/where", {}, "/tools/0/verify/0/where", "name the row to look up"),
    ("/tools/0/verify/0/where/id", "$arg.id", "/tools/0/verify/0/where/id", "not an argument"),
    ("/tools/0/verify/0/expect/owner", "$result.x", "/tools/0/verify/0/expect/owner", "'x' is not"),
    ("/tools/0/verify/0/expect/owner", "$me", "/tools/0/verify/0/expect/owner", "must be `$arg."),
    ("/tools/0/verify/0/table", "a; drop", "/tools/0/verify/0/table", "not a table name"),
    ("/tools/0/verify/0/absent", True, "/tools/0/verify/0/expect", "has no values"),
    ("/skills/0/steps", [], "/skills/0/steps", "is empty"),
    ("/skills/0/steps/0/tool", "repair.x", "/skills/0/steps/0/tool", "no tool 'repair.x'"),
    ("/skills/0/steps/1/id", "book", "/skills/0/steps/1/id", "'book' is already used"),
    ("/skills/0/needs_context", ["packet"], "/skills/0/needs_context/0", "no context 'packet'"),
    ("/skills/0/steps/0/when", "$book.x", "/skills/0/steps/0/when", "must be `$message.NAME`"),
    ("/skills/0/steps/0/when", "$message.x", "/skills/0/steps/0/when", "'x' is not a property"),
    ("/contexts/0/check", "ledger:none", "/contexts/0/check", "has no function 'none'"),
    (
        "/contexts/0/check",
        "ledger:read_row",
        "/contexts/0/check",
        "must take 1 positional argument",
    ),
    ("/skills/0/steps/0/each", "$message.x", "/skills/0/steps/0/each", "`$context.PATH`"),
    (
        "/skills/0/steps/1/arguments/part",
        "$book.price",
        "/skills/0/steps/1/arguments/part",
        "'price' is not among the receipt_fields of repair.book",
    ),
    (
        "/skills/0/steps/0/arguments/owner",
        "$order.order",
        "/skills/0/steps/0/arguments/owner",
        "no earlier step has the ID 'order'",
    ),
    (
        "/skills/0/steps/0/arguments/owner",
        ["$message.name"],
        "/skills/0/steps/0/arguments/owner",
        "not a property of the skill's input_schema",
    ),
    ("/skills/0/steps/0/arguments/who", "x", "/skills/0/steps/0/arguments/who", "not an argument"),
    ("/skills/0/steps/0/arguments/bike", "$each.x", "/skills/0/steps/0/arguments/bike", "`each`"),
    (
        "/tools/0/examples/0/arguments/colour",
        "red",
        "/tools/0/examples/0/arguments/colour",
        "'colour' is not an argument",
    ),
    (
        "/tools/0/examples/0/arguments/owner",
        3,
        "/tools/0/examples/0/arguments/owner",
        "3 does not match the schema of 'owner'",
    ),
    ("/tools/0/input_schema/type", "array", "/tools/0/input_schema/type", 'must be "object"'),
    (
        "/tools/0/input_schema/additionalProperties",
        ...,
        "/tools/0/input_schema",
        '"additionalProperties": false',
    ),
    (
        "/tools/0/input_schema/required",
        ["owner", "colour"],
        "/tools/0/input_schema/required/1",
        "'colour' is not among the properties",
    ),
    (
        "/tools/0/input_schema/properties/owner/type",
        "strong",
        "/tools/0/input_schema/properties/owner/type",
        "strong",
    ),
    (
        "/tools/0/input_schema/properties/owner/x-kind",
        "person",
        "/tools/0/input_schema/properties/owner/x-kind",
        "'person' is not a known kind",
    ),
    (
        "/tools/0/input_schema/properties/owner/x-kind",
        "choice",
        "/tools/0/input_schema/properties/owner/x-kind",
        "needs an `enum`",
    ),
    (
        "/tools/0/input_schema/properties/owner/x-words",
        {"red": ["crimson"]},
        "/tools/0/input_schema/properties/owner/x-words",
        "'red' is not among the choices",
    ),
    (
        "/tools/0/input_schema/properties/owner/$ref",
        "https://example.org/x",
        "/tools/0/input_schema/properties/owner/$ref",
        "does not refer to a schema inside",
    ),
    (
        "/tools/0/input_schema/properties/bike/default",
        7,
        "/tools/0/input_schema/properties/bike/default",
        "does not match its own schema",
    ),
    (
        "/tools/0/depends_on",
        [{"tool": "parts.price", "fills": {"weight": "price"}}],
        "/tools/0/depends_on/0/fills/weight",
        "'weight' is not an argument of repair.book",
    ),
    (
        "/tools/0/depends_on",
        [{"tool": "parts.price", "fills": {"bike": "model"}}],
        "/tools/0/depends_on/0/fills/bike",
        "'model' is not among the receipt_fields of parts.price",
    ),
    (
        "/tools/0/safer_alternative",
        {"tool": "repair.wait", "because": "it may heal"},
        "/tools/0/safer_alternative/tool",
        "no tool 'repair.wait'",
    ),
]


@pytest.mark.sample(30)
@pytest.mark.parametrize(
    ("at", "value", "pointer", "words"), CASES, ids=lambda part: str(part)[:50]
)
def test_single_fault_is_reported_at_its_pointer(
    tmp_path: Path, at: str, value: Any, pointer: str, words: str
) -> None:
    folder = write_pack(tmp_path / "bikes", registry_with(at, value))

    found = [fault for fault in faults(folder) if fault.pointer == pointer]

    assert len(found) == 1, [str(fault) for fault in faults(folder)]
    assert words in found[0].problem
    assert found[0].file == str(folder / "tools.registry.json")


def test_every_fault_is_reported_at_once_with_its_line(tmp_path: Path) -> None:
    registry = registry_with("/tools/0/undo", "repair.forget")
    registry["tools"][2]["tier"] = "T1"
    registry["tools"][1]["receipt_fields"] = []
    folder = write_pack(tmp_path / "bikes", registry)
    lines = (folder / "tools.registry.json").read_text().splitlines()

    found = faults(folder)

    assert [fault.pointer for fault in found] == [
        "/tools/0/undo",
        "/tools/1/receipt_fields",
        "/tools/2/tier",
    ]
    shown = [lines[(fault.line or 0) - 1].strip() for fault in found]
    assert shown == ['"undo": "repair.forget",', '"receipt_fields": [],', '"tier": "T1",']


def test_a_fault_of_the_shape_does_not_hide_another(tmp_path: Path) -> None:
    registry = registry_with("/tools/0/tier", "high")
    registry["tools"][3]["timeout"] = 3
    del registry["version"]

    found = {fault.pointer for fault in faults(write_pack(tmp_path / "bikes", registry))}

    assert found == {"/tools/0/tier", "/tools/3/timeout", "/version"}


def test_a_circle_of_dependencies_is_named(tmp_path: Path) -> None:
    registry = registry_with("/tools/0/depends_on", [{"tool": "parts.order"}])
    registry["tools"][2]["depends_on"] = [{"tool": "parts.price"}]
    registry["tools"][3]["depends_on"] = [{"tool": "repair.book"}]

    fault = only_fault(write_pack(tmp_path / "bikes", registry))

    assert fault.pointer == "/tools/0/depends_on"
    assert "repair.book → parts.order → parts.price → repair.book" in fault.problem


def test_a_long_chain_of_dependencies_is_no_circle(tmp_path: Path) -> None:
    registry = registry_with("/skills", [])
    template = registry["tools"][3]
    names = [f"parts.step{number}" for number in range(300)]
    registry["tools"] = [
        {**template, "name": name, "depends_on": [{"tool": before}] if before else []}
        for before, name in zip(["", *names], names, strict=False)
    ]

    assert len(load_pack(write_pack(tmp_path / "bikes", registry)).registry.tools) == 300


def test_two_domains_that_fit_equally_well_are_reported(tmp_path: Path) -> None:
    registry = registry_with("/domains/1/patterns", ["parts.*", "repair.*"])

    found = faults(write_pack(tmp_path / "bikes", registry))

    assert "matches parts and repair equally well" in str(found[0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"pack": "bikes",}', ":1: is not valid JSON"),
        ('{"pack": "a",\n "pack": "b"}', ":2: /pack: this key is present twice"),
        ('{"tools": [{"x": {"name": 1, "name": 2}}]}', ": /tools/0/x/name: this key is present"),
        ('{"pack": NaN}', "NaN is not a JSON number"),
        ('{"pack": 1e999}', "1e999 is not a JSON number"),
        ("[]", "must be an object"),
        ("", ":1: is not valid JSON"),
        ("[" * 5000 + "]" * 5000, "nested more than 100 deep"),
        ('{"a": ' * 101 + "1" + "}" * 101, "nested more than 100 deep"),
        ('{"pack": "' + "x" * 5_000_000 + '"}', "larger than 5000000 bytes"),
    ],
    ids=lambda text: text[:20],
)
def test_file_that_is_no_registry_at_all_is_reported(tmp_path: Path, text: str, words: str) -> None:
    assert words in str(only_fault(write_pack(tmp_path / "bikes", text)))


def test_file_that_is_no_text_is_reported(tmp_path: Path) -> None:
    folder = write_pack(tmp_path / "bikes")
    (folder / "tools.registry.json").write_bytes(b'{"pack": "\xff"}')

    assert "not valid UTF-8 (byte 10)" in str(only_fault(folder))


def test_faults_of_other_files_name_those_files(tmp_path: Path) -> None:
    files = {
        "schemas/check_in.json": '{\n "type": "objekt"}',
        "desk/repairs.py": "async def book(:\n",
    }
    found = faults(write_pack(tmp_path / "bikes", **files))

    assert [fault.pointer for fault in found] == ["/tools/0/handler", "/tools/1/handler", "/type"]
    assert "desk/repairs.py:1: not valid Python" in found[0].problem
    assert str(found[2]).startswith(f"{tmp_path}/bikes/schemas/check_in.json:2: /type: ")


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    folder = write_pack(tmp_path / "bikes")
    (tmp_path / "secret.txt").write_text("hush")
    (folder / "extra.txt").symlink_to(tmp_path / "secret.txt")

    assert "leads out of the pack's folder" in str(only_fault(folder))


def test_a_folder_without_a_registry_is_no_pack(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"it has no tools\.registry\.json"):
        load_pack(tmp_path)


def test_the_key_by_which_editors_find_the_schema_is_allowed(tmp_path: Path) -> None:
    registry = {"$schema": "../tools.registry.schema.json", **REGISTRY}
    assert load_pack(write_pack(tmp_path / "bikes", registry)).tool("repair.book")


def test_any_edit_of_any_file_changes_the_digest(tmp_path: Path) -> None:
    folder = write_pack(tmp_path / "bikes")
    before = pack_digest(folder)
    (folder / "ledger.py").write_text((folder / "ledger.py").read_text() + "# more\n")
    edited = pack_digest(folder)
    (folder / "suburbs.txt").rename(folder / "towns.txt")

    assert len({before, edited, pack_digest(folder)}) == 3


def test_the_registry_may_not_say_a_domain_has_tools_it_has_not(tmp_path: Path) -> None:
    text = json.dumps(registry_with("/tools", []))

    assert {fault.pointer for fault in faults(write_pack(tmp_path / "bikes", text))} >= {"/tools"}
