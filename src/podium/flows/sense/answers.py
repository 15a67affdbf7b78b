"""What the answer to an order says of its operations, by what the record has of them."""

from __future__ import annotations

from collections.abc import Sequence

from podium.domain.errors import NotPossibleNow
from podium.domain.gating import Receipt
from podium.domain.orders import LONGEST_OUTPUT, Ack, Operation, OpResult
from podium.ports import Inbox, View

RUN_TOOL = "run_command"


def answer_to(inbox: Inbox, wo_id: str) -> Ack | None:
    """What was said of an order of this name. May block."""
    try:
        return inbox.answered(wo_id)
    except NotPossibleNow:
        return None  # what lies there in place of an answer is none


def was_done(inbox: Inbox, wo_id: str) -> bool:
    found = answer_to(inbox, wo_id)
    return found is not None and found.status == "done"


def op_results(
    view: View, run_id: str, ops: Sequence[Operation], *, stopped: int = 0, why: str = ""
) -> tuple[OpResult, ...]:
    """How each ended. `stopped` is the number of the one that ended the order, and `why` its reason."""
    latest = {_number_of(each): each for each in view.receipts(run_id)}
    results = []
    for number, op in enumerate(ops, start=1):
        receipt = latest.get(str(number))
        found = _by_receipt(view, number, op, receipt) if receipt else None
        if number == stopped:
            failed = found or OpResult(number=number, op=op.line, status="failed")
            found = failed.model_copy(update={"status": "failed", "error": why})
        results.append(found or OpResult(number=number, op=op.line, status="skipped"))
    return tuple(results)


def _number_of(receipt: Receipt) -> str:
    """Of the operation that a receipt proves: its step is `call#NUMBER`, or `call.again-TRY#NUMBER`."""
    step = receipt.call_key.removeprefix(f"{receipt.run_id}:").rpartition(":")[0]
    name, _, number = step.partition("#")
    return number if name.startswith("call") else ""


def _by_receipt(view: View, number: int, op: Operation, receipt: Receipt) -> OpResult:
    return OpResult(
        number=number,
        op=op.line,
        status="done" if receipt.status == "completed" else "failed",
        receipt=receipt.number,
        fields=receipt.fields,
        output=_output(view, receipt),
        error=receipt.error,
    )


def _output(view: View, receipt: Receipt) -> str:
    """The end of what a program said; the record has it without its secrets."""
    call = view.call(receipt.call_key) if receipt.tool == RUN_TOOL else None
    result = call.outcome.result if call is not None and call.outcome is not None else None
    if not isinstance(result, dict):
        return ""
    said = (str(result.get(stream) or "").rstrip("\n") for stream in ("stdout", "stderr"))
    return "\n".join(each for each in said if each)[-LONGEST_OUTPUT:]
