"""The pipeline: a task becomes a reviewed branch and a pull request."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.jobs.pipeline.flow import pipeline
    from podium.jobs.pipeline.spec import (
        PLACEHOLDER,
        PLACEHOLDERS,
        PipelineOptions,
        PipelineSpec,
        Stage,
    )
    from podium.jobs.pipeline.state import PipelineDeps, PipelineJob

__all__ = [
    "PLACEHOLDER",
    "PLACEHOLDERS",
    "PipelineDeps",
    "PipelineJob",
    "PipelineOptions",
    "PipelineSpec",
    "Stage",
    "pipeline",
]

export_lazily(
    __name__,
    {
        "PLACEHOLDER": "spec",
        "PLACEHOLDERS": "spec",
        "PipelineJob": "state",
        "PipelineDeps": "state",
        "PipelineOptions": "spec",
        "PipelineSpec": "spec",
        "Stage": "spec",
        "pipeline": "flow",
    },
)
