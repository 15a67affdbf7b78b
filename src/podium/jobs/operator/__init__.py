"""Operator: plain words become a validated, approved, receipted run of registered tools."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.jobs.operator.brain import Brain, results_of
    from podium.jobs.operator.deps import OPERATOR, Bench, OperatorFlowDeps
    from podium.jobs.operator.flow import operator
    from podium.jobs.operator.operator import Operator, OperatorDeps
    from podium.jobs.operator.options import OperatorOptions

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
        "Brain": "brain",
        "results_of": "brain",
        "OPERATOR": "deps",
        "Bench": "deps",
        "OperatorFlowDeps": "deps",
        "Operator": "operator",
        "OperatorDeps": "operator",
        "OperatorOptions": "options",
        "operator": "flow",
    },
)
