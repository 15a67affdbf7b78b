"""The operator's runs for any door: the answer that one stands at, and the plan that takes a receipt back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.domain.errors import NotPossibleNow, UnknownId
from podium.domain.operating import OperatorAnswer, OperatorJob, OperatorMode
from podium.domain.work import Run
from podium.flows.operator import OPERATOR
from podium.flows.operator.answers import Answers
from podium.flows.operator.brain import results_of
from podium.ports import View
from podium.usecases import find_undoable

if TYPE_CHECKING:
    from podium.wiring.podium import Podium


async def answer_of_run(podium: Podium, run: Run) -> OperatorAnswer:
    """How far the plan of a run has come by now, by its receipts, as the answer that tells it."""
    plan = OperatorJob.model_validate(run.input).plan
    store = await podium.store()
    results, approvals = await store.read(
        lambda view: (results_of(view, run.id, plan), view.approvals(run_id=run.id))
    )
    mode = OperatorMode.EXECUTE
    return Answers(plan.pack).ended(run, plan, mode, None, results, approvals)


async def pack_of_receipt(podium: Podium, receipt: str) -> str:
    """The pack whose tool a receipt is of. Raises as `find_undoable`, also for what no operator did."""
    store = await podium.store()
    found = await find_undoable(store, receipt)
    run = await store.read(lambda view: _operator_run(view, found.run_id, receipt))
    return OperatorJob.model_validate(run.input).plan.pack


async def undo(podium: Podium, receipt: str, *, mode: str, by: str) -> OperatorAnswer:
    """The plan that takes back what `RUN#NUMBER` proves, as far as the mode says. Gated like any other."""
    from podium.wiring.operating import OperatorWish, build_operator

    pack = await pack_of_receipt(podium, receipt)
    operator = await build_operator(podium, OperatorWish(pack, user=by))
    found = await find_undoable(await podium.store(), receipt)
    return await operator.undo(found, mode, explicit_approval=False)


def operator_run(view: View, run_id: str) -> Run:
    """The run of an operator's plan. Raises `UnknownId`."""
    run = view.run(run_id)
    if run is None or run.flow != OPERATOR:
        raise UnknownId("run of the operator", run_id)
    return run


def _operator_run(view: View, run_id: str, receipt: str) -> Run:
    try:
        return operator_run(view, run_id)
    except UnknownId:
        raise NotPossibleNow(
            f"receipt {receipt!r} is of no plan of the operator; `podium show` tells of its run"
        ) from None
