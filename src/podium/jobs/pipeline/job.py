"""Pipeline: a task becomes a reviewed, tested branch and a pull request."""

from podium.core.job import ChatVerb, Command, FlowSpec, Job

JOB = Job(
    name="pipeline",
    flows={
        "pipeline": FlowSpec(
            "podium.jobs.pipeline.composition:build_pipeline",
            "podium.jobs.pipeline.state:PipelineJob",
            "podium.jobs.pipeline.flow:pipeline",
            check="podium.jobs.pipeline.spec:pipeline_spec",
        ),
        "batch": FlowSpec(
            "podium.jobs.pipeline.composition:build_batch",
            "podium.jobs.pipeline.batch:BatchJob",
            "podium.jobs.pipeline.batch:batch",
        ),
    },
    events={
        "base_checked": "podium.jobs.pipeline.events:BaseChecked",
        "stage_began": "podium.jobs.pipeline.events:StageBegan",
        "stage_ended": "podium.jobs.pipeline.events:StageEnded",
        "batch_task": "podium.jobs.pipeline.events:BatchTaskChanged",
    },
    event_view="podium.jobs.pipeline.events:view_event",
    options="podium.jobs.pipeline.spec:PipelineOptions",
    run_view="podium.jobs.pipeline.batch_view:view_of",
    report="podium.jobs.pipeline.batch_view:look_back",
    request_label="Task: what to build or fix",
    choices="podium.jobs.pipeline.submission:option_choices",
    webhooks="podium.jobs.pipeline.webhook:webhook_router",
    branch="podium.jobs.pipeline.submission:branch_work",
    request="podium.jobs.pipeline.submission:PipelineRequest",
    submit="podium.jobs.pipeline.submission:submit",
    chat={
        "run": ChatVerb(
            "podium.jobs.pipeline.submission:answer_chat", "TASK", "turn a task into a branch"
        ),
    },
    commands={
        "run": Command(
            "podium.jobs.pipeline.commands.run:app",
            "Turn a task into a reviewed, tested branch and a pull request.",
        ),
        "intake": Command(
            "podium.jobs.pipeline.commands.intake:app",
            "Turn labelled GitHub issues into queued runs.",
        ),
        "prompts": Command(
            "podium.jobs.pipeline.commands.prompts:app",
            "Show the prompts of the pipeline, or those that a run sent, with their sizes.",
            "Advanced",
        ),
        "demo": Command(
            "podium.jobs.pipeline.commands.demo:app",
            "Watch Podium fix a bug, offline and without keys, in under a minute.",
            "Project",
        ),
    },
)
