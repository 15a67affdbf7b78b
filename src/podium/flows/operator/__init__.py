"""Operator: plain words become a validated, approved, receipted run of registered tools."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.flows.operator.brain import Brain, results_of
    from podium.flows.operator.kit import OPERATOR, Bench, OperatorKit
    from podium.flows.operator.operator import Operator, OperatorDesk
    from podium.flows.operator.options import OperatorOptions
    from podium.flows.operator.story import operator

__all__ = [
    "OPERATOR",
    "Bench",
    "Brain",
    "Operator",
    "OperatorDesk",
    "OperatorKit",
    "OperatorOptions",
    "operator",
    "results_of",
]

export_lazily(
    __name__,
    {
        "Brain": "brain",
        "results_of": "brain",
        "OPERATOR": "kit",
        "Bench": "kit",
        "OperatorKit": "kit",
        "Operator": "operator",
        "OperatorDesk": "operator",
        "OperatorOptions": "options",
        "operator": "story",
    },
)
