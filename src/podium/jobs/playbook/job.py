"""Playbook: a function-calling agent without direct access follows a playbook."""

from podium.core.job import Command, FlowSpec, Job

JOB = Job(
    name="playbook",
    flows={
        "playbook": FlowSpec(
            "podium.jobs.playbook.composition:build_playbook",
            "podium.jobs.playbook.models:PlaybookJob",
            "podium.jobs.playbook.flow:follow_playbook",
        ),
    },
    events={
        "playbook_began": "podium.jobs.playbook.events:PlaybookBegan",
        "tools_given": "podium.jobs.playbook.events:ToolsGiven",
        "playbook_ended": "podium.jobs.playbook.events:PlaybookEnded",
    },
    event_view="podium.jobs.playbook.events:view_event",
    metrics="podium.jobs.playbook.metrics:PlaybookMetrics",
    options="podium.jobs.playbook.models:PlaybookOptions",
    run_view="podium.jobs.playbook.run_view:PlaybookRunView",
    request_label="Playbook: a file in the project",
    choices="podium.jobs.playbook.composition:option_choices",
    request="podium.jobs.playbook.composition:PlaybookRequest",
    submit="podium.jobs.playbook.composition:submit",
    guarded_files="podium.jobs.playbook.models:GUARDED_FILES",
    commands={
        "playbook": Command(
            "podium.jobs.playbook.commands.app:app",
            "Run or check a playbook: instructions for an agent without tools of its own.",
        ),
        "replay": Command(
            "podium.jobs.playbook.commands.replay:app",
            "Replay a playbook run without its model and compare every event.",
            "Advanced",
        ),
    },
)
