"""The pipeline: a task becomes a reviewed branch and a pull request."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.jobs.pipeline.check_detection import detect_all
    from podium.jobs.pipeline.check_programs import (
        ADVICE,
        cannot_test,
        missing_programs,
        remedy_for,
    )
    from podium.jobs.pipeline.checks import Check, CheckResult, Detection, ran_no_tests
    from podium.jobs.pipeline.deps import PipelineJob, PipelineKit, RunCheck
    from podium.jobs.pipeline.flow import pipeline
    from podium.jobs.pipeline.spec import PipelineOptions, PipelineSpec, Stage
    from podium.jobs.pipeline.stage_prompt import PLACEHOLDER, PLACEHOLDERS

__all__ = [
    "ADVICE",
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
    "cannot_test",
    "detect_all",
    "missing_programs",
    "pipeline",
    "ran_no_tests",
    "remedy_for",
]

export_lazily(
    __name__,
    {
        "ADVICE": "check_programs",
        "cannot_test": "check_programs",
        "missing_programs": "check_programs",
        "remedy_for": "check_programs",
        "PLACEHOLDER": "stage_prompt",
        "PLACEHOLDERS": "stage_prompt",
        "detect_all": "check_detection",
        "Check": "checks",
        "CheckResult": "checks",
        "Detection": "checks",
        "PipelineJob": "deps",
        "PipelineKit": "deps",
        "RunCheck": "deps",
        "PipelineOptions": "spec",
        "PipelineSpec": "spec",
        "Stage": "spec",
        "pipeline": "flow",
        "ran_no_tests": "checks",
    },
)
