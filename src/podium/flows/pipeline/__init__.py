"""The pipeline: a task becomes a reviewed branch and a pull request."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.flows.pipeline.briefing import PLACEHOLDER, PLACEHOLDERS
    from podium.flows.pipeline.check_detection import detect_all
    from podium.flows.pipeline.checks import Check, CheckResult, Detection
    from podium.flows.pipeline.kit import PipelineJob, PipelineKit, RunCheck
    from podium.flows.pipeline.options import PipelineOptions
    from podium.flows.pipeline.spec import PipelineSpec, Stage
    from podium.flows.pipeline.story import pipeline
    from podium.flows.pipeline.zero_tests import ran_no_tests

__all__ = [
    "PLACEHOLDER",
    "PLACEHOLDERS",
    "Check",
    "CheckResult",
    "Detection",
    "PipelineJob",
    "PipelineKit",
    "PipelineOptions",
    "PipelineSpec",
    "RunCheck",
    "Stage",
    "detect_all",
    "pipeline",
    "ran_no_tests",
]

export_lazily(
    __name__,
    {
        "PLACEHOLDER": "briefing",
        "PLACEHOLDERS": "briefing",
        "detect_all": "check_detection",
        "Check": "checks",
        "CheckResult": "checks",
        "Detection": "checks",
        "PipelineJob": "kit",
        "PipelineKit": "kit",
        "RunCheck": "kit",
        "PipelineOptions": "options",
        "PipelineSpec": "spec",
        "Stage": "spec",
        "pipeline": "story",
        "ran_no_tests": "zero_tests",
    },
)
