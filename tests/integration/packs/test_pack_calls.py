"""A second pack, added without a line of Podium's code: performed, proved and receipted for real."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from podium.core.decisions import Call, CallOutcome, PlanPosition, Receipt, Tier
from podium.core.errors import CallInDoubt
from podium.store import SqlStore
from podium.testing import FixedClock, SteadyIds, retry_until
from podium.tools.packs import load_pack, pack_tools
from tests.soaking import in_soak
from tests.unit.packs.bikes import registry_with, write_pack
from tests.unit.tools.toolbox_harness import SECRET, Harness, make_harness

TOKEN = "tok-1234567"


@dataclass
class Supplier:
    """A parts supplier on loopback. `answers` says how it replies, and `heard` what it was sent."""

    requests: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200
    body: bytes = b'{"order": "A-17"}'
    location: str = ""
    url: str = ""
    drop: bool = False
    holding: threading.Event | None = None

    def reply(self, request: BaseHTTPRequestHandler) -> None:
        sent = request.rfile.read(int(request.headers["Content-Length"]))
        self.requests.append(
            {"path": request.path, "headers": dict(request.headers), "body": json.loads(sent)}
        )
        if self.holding is not None:
            self.holding.wait(120)
        if self.drop:
            request.connection.shutdown(socket.SHUT_RDWR)
            return
        moved = self.location and not request.path.endswith("/moved")
        request.send_response(307 if moved else self.status)
        if moved:
            request.send_header("Location", self.location)
        request.send_header("Content-Length", str(len(self.body)))
        request.end_headers()
        request.wfile.write(self.body)


@contextmanager
def open_for_orders(supplier: Supplier) -> Iterator[None]:
    class Request(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            supplier.reply(self)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Request)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    supplier.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def supplier() -> Iterator[Supplier]:
    made = Supplier()
    with open_for_orders(made):
        yield made


@dataclass
class Workshop:
    """The pack on the real toolbox, door and store."""

    harness: Harness
    state: Path

    async def use(self, tool: str, **arguments: Any) -> CallOutcome:
        return await self.harness.use(tool, **arguments)

    async def receipt(self) -> Receipt:
        return (await self.harness.receipts())[-1]


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[SqlStore]:
    folder = tmp_path / "store"
    folder.mkdir()
    store = await SqlStore.open(folder, clock=FixedClock(), ids=SteadyIds())
    yield store
    await store.close()


def open_workshop(
    tmp_path: Path,
    store: SqlStore,
    url: str = "http://127.0.0.1:9",
    registry: Any = None,
    **files: str,
) -> Workshop:
    pack = load_pack(write_pack(tmp_path / "packs/bikes", registry, **files))
    environ = {"BIKES_PARTS_URL": url, "BIKES_TOKEN": TOKEN, "HOME": "/root"}
    state = tmp_path / "state/packs/bikes"
    tools = pack_tools(pack, settings=environ, state=state)
    return Workshop(make_harness(tmp_path, tools, store=store), state)


async def test_a_python_tool_acts_and_its_row_is_on_the_receipt(
    tmp_path: Path, stores: SqlStore
) -> None:
    workshop = open_workshop(tmp_path, stores)
    assert not workshop.state.exists()

    outcome = await workshop.use("repair.book", owner="Kim")

    assert outcome.ok, outcome.error
    number = outcome.result["repair_id"]
    receipt = await workshop.receipt()
    assert receipt.status == "completed"
    assert receipt.fields == {
        "repair_id": number,
        "owner": "Kim",
        "verification": [
            {
                "table": "repairs",
                "where": {"id": number},
                "found": {"bike": "bike", "owner": "Kim"},
                "ok": True,
            }
        ],
    }
    assert receipt.undo == {"tool": "repair.drop", "arguments": {"repair_id": number}}
    assert stat.S_IMODE(workshop.state.stat().st_mode) == 0o700
    assert list(json.loads((workshop.state / "repairs.json").read_text())) == [number]


async def test_what_was_done_is_taken_back_and_the_receipts_are_linked(
    tmp_path: Path, stores: SqlStore
) -> None:
    workshop = open_workshop(tmp_path, stores)
    booked = await workshop.use("repair.book", owner="Kim")
    call = workshop.harness.call("repair.drop", **booked.result["undo"])
    undoing = call.model_copy(update={"plan": PlanPosition(step=1, undoes="run_1#1")})

    outcome = await workshop.harness.toolbox.perform(undoing)

    assert isinstance(outcome, CallOutcome)
    assert outcome.ok
    assert outcome.result["undoes"] == "run_1#1"
    receipt = await workshop.receipt()
    assert receipt.fields["undoes"] == "run_1#1"
    assert receipt.fields["verification"][0] == {
        "table": "repairs",
        "where": booked.result["undo"] and {"id": booked.result["repair_id"]},
        "found": None,
        "ok": True,
    }


async def test_what_the_rows_do_not_show_is_no_success(tmp_path: Path, stores: SqlStore) -> None:
    workshop = open_workshop(tmp_path, stores)

    outcome = await workshop.use("repair.book", owner="Kim", bike="ghost")

    assert not outcome.ok
    assert outcome.error == "done, but not verified: repairs does not have the row"
    assert outcome.result["owner"] == "Kim"
    receipt = await workshop.receipt()
    assert receipt.status == "failed"
    assert receipt.fields["verification"][0]["ok"] is False


async def test_a_row_with_another_value_is_no_proof(tmp_path: Path, stores: SqlStore) -> None:
    registry = registry_with("/tools/0/verify/0/expect", {"owner": "somebody else"})
    workshop = open_workshop(tmp_path, stores, registry=registry)

    outcome = await workshop.use("repair.book", owner="Kim")

    assert outcome.error.endswith("repairs.owner is 'Kim', not 'somebody else'")


async def test_a_reader_that_breaks_is_no_proof(tmp_path: Path, stores: SqlStore) -> None:
    ledger = "async def read_row(table, where, columns, scope):\n    raise OSError('gone')\n"
    handler = "async def book(arguments, scope):\n    return {'repair_id': '1', 'owner': 'Kim', 'undo': None}\n"
    registry = registry_with("/tools/1/handler", "desk.repairs:book")
    files = {"ledger.py": ledger, "desk/repairs.py": handler}
    workshop = open_workshop(tmp_path, stores, registry=registry, **files)

    outcome = await workshop.use("repair.book", owner="Kim")

    assert outcome.error == "done, but not verified: repairs could not be read: OSError"


async def test_a_result_without_its_receipt_fields_is_no_success(
    tmp_path: Path, stores: SqlStore
) -> None:
    registry = registry_with("/tools/0/receipt_fields", ["repair_id", "owner", "price"])
    workshop = open_workshop(tmp_path, stores, registry=registry)

    outcome = await workshop.use("repair.book", owner="Kim")

    assert not outcome.ok
    assert "repair.book lacks price, so there is no receipt" in outcome.error


@pytest.mark.parametrize("undo", ["'undo': {'number': 3}", "'undo': 'repair_1'", "'x': 1"])
async def test_undo_that_its_tool_rejects_is_reported(
    tmp_path: Path, stores: SqlStore, undo: str
) -> None:
    code = f"async def book(arguments, scope):\n    return {{'repair_id': '1', 'owner': 'Kim', {undo}}}\n"
    registry = registry_with("/tools/1/handler", "desk.repairs:book")
    workshop = open_workshop(tmp_path, stores, registry=registry, **{"desk/repairs.py": code})

    outcome = await workshop.use("repair.book", owner="Kim")

    assert "done, but repair.book returned no usable undo" in outcome.error


async def test_what_a_handler_raises_is_the_error_in_its_own_words(
    tmp_path: Path, stores: SqlStore
) -> None:
    workshop = open_workshop(tmp_path, stores)

    outcome = await workshop.use("repair.book", owner="nobody")

    assert outcome.error == "nobody has no bikes; say whose it is"


async def test_code_that_cannot_be_imported_is_reported_in_words(
    tmp_path: Path, stores: SqlStore
) -> None:
    files = {"ledger.py": "import no_such_thing\nasync def read_row(a, b, c, d): ..."}
    workshop = open_workshop(tmp_path, stores, **files)

    outcome = await workshop.use("repair.book", owner="Kim")

    assert "'desk.repairs' cannot be imported" in outcome.error
    assert "No module named 'no_such_thing'" in outcome.error


async def test_code_that_was_edited_after_loading_never_runs(
    tmp_path: Path, stores: SqlStore
) -> None:
    workshop = open_workshop(tmp_path, stores)
    file = tmp_path / "packs/bikes/desk/repairs.py"
    file.write_text(file.read_text() + "\n")

    outcome = await workshop.use("repair.book", owner="Kim")
    priced = await workshop.use("parts.price", part="bell")

    for item in (outcome, priced):
        assert not item.ok
        assert "have changed since it was loaded" in item.error
    assert not (workshop.state / "repairs.json").exists()


async def test_compiled_code_beside_the_source_is_not_run(tmp_path: Path, stores: SqlStore) -> None:
    workshop = open_workshop(tmp_path, stores)
    await workshop.use("repair.book", owner="Kim")

    assert not list((tmp_path / "packs").rglob("__pycache__"))


async def test_packs_whose_modules_have_equal_names_do_not_meet(
    tmp_path: Path, stores: SqlStore
) -> None:
    other = "async def book(arguments, scope):\n    return {'repair_id': 'other', 'owner': 'Kim', 'undo': None}\n"
    registry = registry_with("/tools/1/handler", "desk.repairs:book")
    registry["tools"][0]["verify"] = []
    first = open_workshop(tmp_path / "one", stores)
    second = open_workshop(
        tmp_path / "two", stores, registry=registry, **{"desk/repairs.py": other}
    )

    assert (await second.use("repair.book", owner="Kim", index=1)).result["repair_id"] == "other"
    assert (await first.use("repair.book", owner="Kim")).result["repair_id"] != "other"


async def test_the_key_is_the_same_when_the_same_call_is_made_again(
    tmp_path: Path, stores: SqlStore
) -> None:
    workshop = open_workshop(tmp_path, stores)

    first = await workshop.use("repair.book", owner="Kim")
    again = await workshop.use("repair.book", owner="Kim")
    other = await workshop.use("repair.book", owner="Kim", index=1)

    assert again.result == first.result
    assert len(json.loads((workshop.state / "repairs.json").read_text())) == 2
    assert other.ok


async def test_an_http_tool_gets_arguments_key_and_secrets_and_gives_its_result(
    tmp_path: Path, stores: SqlStore, supplier: Supplier
) -> None:
    workshop = open_workshop(tmp_path, stores, supplier.url)

    outcome = await workshop.use("parts.order", part="bell")

    assert outcome.ok, outcome.error
    (output,) = supplier.requests
    key = workshop.harness.call("parts.order", part="bell").key
    assert output["path"] == "/orders"
    assert output["body"] == {"arguments": {"part": "bell"}, "key": key}
    assert output["headers"]["Idempotency-Key"] == key
    assert output["headers"]["Authorization"] == f"Bearer {TOKEN}"
    assert output["headers"]["X-Door"] == SECRET
    receipt = await workshop.receipt()
    assert receipt.fields == {"order": "A-17", "verification": []}
    assert receipt.tier >= Tier.T0
    assert TOKEN not in repr(await workshop.harness.events())


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"status": 422, "body": b'{"error": "no bells left"}'}, "answered 422: no bells left"),
        ({"status": 500, "body": b"<h1>Oops</h1>"}, "answered 500: <h1>Oops</h1>"),
        ({"body": b"thanks!"}, "did not answer with JSON: 'thanks!'"),
        ({"body": b"[1]"}, "did not answer with a JSON object"),
        ({"body": b"[" * 100_000}, "did not answer with JSON"),
        ({"body": b'{"order": 1' + b" " * 1_000_001 + b"}"}, "more than 1000000 bytes"),
        ({"body": b"{}"}, "lacks order, so there is no receipt"),
        ({"location": "http://127.0.0.2:1/moved"}, "redirects to another host"),
        ({"location": "/orders"}, "redirects too often"),
        ({"status": 302, "body": b""}, "answered 302"),
    ],
    ids=lambda part: str(part)[:40],
)
async def test_a_bad_answer_of_an_endpoint_is_a_failure_in_words(
    tmp_path: Path, stores: SqlStore, supplier: Supplier, changes: dict[str, Any], words: str
) -> None:
    workshop = open_workshop(tmp_path, stores, supplier.url)
    for name, value in changes.items():
        setattr(supplier, name, value)

    outcome = await workshop.use("parts.order", part="bell")

    assert not outcome.ok
    assert words in outcome.error
    assert (await workshop.receipt()).status == "failed"


async def test_a_redirect_on_the_same_host_is_followed(
    tmp_path: Path, stores: SqlStore, supplier: Supplier
) -> None:
    supplier.location = "/orders/moved"
    workshop = open_workshop(tmp_path, stores, supplier.url)

    outcome = await workshop.use("parts.order", part="bell")

    assert outcome.ok, outcome.error
    assert [item["path"] for item in supplier.requests] == ["/orders", "/orders/moved"]


@pytest.mark.parametrize("url", ["", "ftp://parts", "http://", "http://a b/", "http://u:p@parts"])
async def test_uncallable_address_is_reported(tmp_path: Path, stores: SqlStore, url: str) -> None:
    workshop = open_workshop(tmp_path, stores, url)

    outcome = await workshop.use("parts.order", part="bell")

    assert not outcome.ok
    assert "BIKES_PARTS_URL is not set" in outcome.error or "is not an HTTP URL" in outcome.error
    assert "u:p" not in outcome.error


async def test_nobody_listening_means_that_nothing_was_done(
    tmp_path: Path, stores: SqlStore
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    workshop = open_workshop(tmp_path, stores, f"http://127.0.0.1:{port}")

    outcome = await workshop.use("parts.order", part="bell")

    assert "cannot be reached, so nothing was done" in outcome.error


async def test_a_cancelled_http_call_ends_its_thread_at_once(
    tmp_path: Path, stores: SqlStore, supplier: Supplier
) -> None:
    supplier.holding = threading.Event()
    workshop = open_workshop(tmp_path, stores, supplier.url)
    calling = asyncio.create_task(workshop.use("parts.order", part="bell"))
    await retry_until(lambda: bool(supplier.requests))

    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    supplier.holding.set()

    assert (await workshop.receipt()).status == "failed"


async def test_an_endpoint_that_says_nothing_is_given_up(
    tmp_path: Path, stores: SqlStore, supplier: Supplier
) -> None:
    supplier.holding = threading.Event()
    registry = registry_with("/tools/2/handler/http/timeout", 0.2)
    workshop = open_workshop(tmp_path, stores, supplier.url, registry=registry)

    with pytest.raises(CallInDoubt) as doubt:
        await workshop.use("parts.order", part="bell")
    supplier.holding.set()

    assert "did not answer within 0.2 s; it is unknown whether it acted" in str(
        doubt.value.__context__
    )


async def test_an_endpoint_that_hangs_up_leaves_the_call_in_doubt(
    tmp_path: Path, stores: SqlStore, supplier: Supplier
) -> None:
    supplier.drop = True
    workshop = open_workshop(tmp_path, stores, supplier.url)

    with pytest.raises(CallInDoubt):
        await workshop.use("parts.order", part="bell")

    assert (await workshop.receipt()).status == "in_doubt"


async def test_an_mcp_tool_is_asked_and_its_server_is_gone_afterwards(
    tmp_path: Path, stores: SqlStore
) -> None:
    workshop = open_workshop(tmp_path, stores)

    outcome = await workshop.use("parts.price", part="bell")
    as_text = await workshop.use("parts.price", part="text")

    assert outcome.ok, outcome.error
    assert outcome.result["price"] == 4
    assert outcome.result["city"] == "Fitzroy"
    assert outcome.result["key"] == workshop.harness.call("parts.price", part="bell").key
    assert as_text.result["price"] == 7
    assert (await workshop.receipt()).status == "completed"


async def test_failing_mcp_server_is_reported_in_its_own_words(
    tmp_path: Path, stores: SqlStore
) -> None:
    workshop = open_workshop(tmp_path, stores)

    outcome = await workshop.use("parts.price", part="unobtainium")

    assert not outcome.ok
    assert "'price' of the MCP server failed: nobody sells that" in outcome.error


async def test_an_mcp_server_that_dies_over_a_call_leaves_it_in_doubt(
    tmp_path: Path, stores: SqlStore
) -> None:
    workshop = open_workshop(tmp_path, stores)

    with pytest.raises(CallInDoubt) as doubt:
        await workshop.use("parts.price", part="crash")

    words = "ended (exit code 1) before it answered 'tools/call': the till is on fire"
    assert words in str(doubt.value.__context__)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("import time\nprint('hello')\ntime.sleep(600)", "timed out after"),
        ("while True: print('{}')", "talks without answering 'initialize'"),
        in_soak(
            "import json\ninput()\n"
            "print(json.dumps({'id': 1, 'error': {'code': 1, 'message': 'go away'}}), flush=True)\n"
            "input()",
            "with an error: go away",
        ),
        in_soak(
            "import json\nfor n in (1, 2):\n    input()\n    print(json.dumps({'id': n, 'result': 3}), flush=True)\n    n == 1 and input()",
            "returned no result",
        ),
    ],
    ids=["silent", "chatty", "error", "no object"],
)
async def test_hostile_mcp_server_is_ended_and_reported(
    tmp_path: Path, stores: SqlStore, server: str, words: str
) -> None:
    registry = registry_with("/tools/3/timeout_seconds", 20 if "timed" not in words else 1)
    workshop = open_workshop(tmp_path, stores, registry=registry, **{"price_server.py": server})

    outcome = await workshop.use("parts.price", part="bell")

    assert not outcome.ok
    assert words in outcome.error


async def test_missing_program_is_reported(tmp_path: Path, stores: SqlStore) -> None:
    registry = registry_with("/tools/3/handler/mcp/command", ["no-such-server"])
    workshop = open_workshop(tmp_path, stores, registry=registry)

    outcome = await workshop.use("parts.price", part="bell")

    assert not outcome.ok
    assert "no-such-server" in outcome.error


def test_a_tool_is_never_below_what_its_domain_says(tmp_path: Path) -> None:
    pack = load_pack(write_pack(tmp_path / "bikes"))
    tiers = {
        tool.spec.name: str(tool.spec.tier)
        for tool in pack_tools(pack, settings={}, state=tmp_path / "state")
    }

    assert tiers == {
        "repair.book": "T1",
        "repair.drop": "T2",
        "parts.order": "T3",
        "parts.price": "T2",
    }


def test_calls_of_a_pack_carry_no_setting(tmp_path: Path) -> None:
    pack = load_pack(write_pack(tmp_path / "bikes"))
    tools = pack_tools(pack, settings={"BIKES_TOKEN": TOKEN}, state=tmp_path / "state")

    assert TOKEN not in repr(tools)
    assert Call.model_fields.keys() & {"settings"} == set()


@pytest.mark.parametrize(
    "text",
    [
        "return {'repair_id': scope.settings['BIKES_TOKEN'], 'owner': ['x' + scope.settings['BIKES_TOKEN']], 'undo': None}",
        "raise ToolBroke('no entry with ' + scope.settings['BIKES_TOKEN'])",
        "raise KeyError(scope.settings['BIKES_TOKEN'])",
    ],
    ids=["result", "words", "error"],
)
async def test_a_declared_secret_comes_back_in_no_result_and_no_error(
    tmp_path: Path, stores: SqlStore, text: str
) -> None:
    code = (
        f"from podium.core.errors import ToolBroke\nasync def book(arguments, scope):\n    {text}\n"
    )
    registry = registry_with("/tools/1/handler", "desk.repairs:book")
    registry["tools"][0]["verify"] = []
    workshop = open_workshop(tmp_path, stores, registry=registry, **{"desk/repairs.py": code})

    outcome = await workshop.use("repair.book", owner="Kim")

    output_text = repr([outcome, await workshop.receipt(), await workshop.harness.events()])
    assert "[redacted:BIKES_TOKEN]" in output_text
    assert TOKEN not in output_text
