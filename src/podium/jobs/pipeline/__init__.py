"""The pipeline: a task becomes a reviewed branch and a pull request."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.jobs.pipeline.deps import PipelineDeps, PipelineJob
    from podium.jobs.pipeline.flow import pipeline
    from podium.jobs.pipeline.spec import PipelineOptions, PipelineSpec, Stage
    from podium.jobs.pipeline.stage_prompt import PLACEHOLDER, PLACEHOLDERS

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
        "PLACEHOLDER": "stage_prompt",
        "PLACEHOLDERS": "stage_prompt",
        "PipelineJob": "deps",
        "PipelineDeps": "deps",
        "PipelineOptions": "spec",
        "PipelineSpec": "spec",
        "Stage": "spec",
        "pipeline": "flow",
    },
)
