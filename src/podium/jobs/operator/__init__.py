"""Operator: a message becomes a validated, approved run of registered tools, with receipts."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.jobs.operator.flow import Brain, operator, results_of
    from podium.jobs.operator.operator import Operator, OperatorDeps
    from podium.jobs.operator.options import OperatorOptions
    from podium.jobs.operator.ports import OPERATOR, Bench, OperatorFlowDeps

__all__ = [
    "OPERATOR",
    "Bench",
    "Brain",
    "Operator",
    "OperatorDeps",
    "OperatorFlowDeps",
    "OperatorOptions",
    "operator",
    "results_of",
]

export_lazily(
    __name__,
    {
        "Brain": "flow",
        "results_of": "flow",
        "OPERATOR": "ports",
        "Bench": "ports",
        "OperatorFlowDeps": "ports",
        "Operator": "operator",
        "OperatorDeps": "operator",
        "OperatorOptions": "options",
        "operator": "flow",
    },
)
