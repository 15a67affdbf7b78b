"""Sense: a loop reads a system's state and proposes, later performs, work orders."""

from podium.core.job import Command, FlowSpec, Job

SENSE = "sense"
"""The flow of a tick that plans, the role of its calls, and the queue of its candidates."""
CANDIDATE = "candidate"
"""The flow that takes a candidate from approval to its result."""
WORK_ORDER = "work_order"
"""The flow that performs one order of the inbox."""

JOB = Job(
    name=SENSE,
    flows={
        SENSE: FlowSpec(
            "podium.jobs.sense.composition:build_sense",
            "podium.jobs.sense.deps:SenseJob",
            "podium.jobs.sense.flow:sense",
        ),
        CANDIDATE: FlowSpec(
            "podium.jobs.sense.orders.worker:build_candidate",
            "podium.jobs.sense.deps:CandidateJob",
            "podium.jobs.sense.flow:candidate",
        ),
        WORK_ORDER: FlowSpec(
            "podium.jobs.sense.orders.worker:build_work_order",
            "podium.jobs.sense.orders.work_order:OrderJob",
            "podium.jobs.sense.orders.flow:work_order",
        ),
    },
    options="podium.jobs.sense.options:SenseOptions",
    queues="podium.jobs.sense.options:order_queues",
    approvals="podium.jobs.sense.candidate_approvals:CandidateApprovals",
    uninstall="podium.jobs.sense.io.installation:ScheduledLoops",
    pages="podium.jobs.sense.page:router",
    api="podium.jobs.sense.api:router",
    guarded_files="podium.jobs.sense.orders.policy:LAUNCHERS",
    planned_call="podium.jobs.sense.orders.work_order:planned_call",
    request_label="",
    worker="podium.jobs.sense.worker_hooks:SenseWorker",
    steering="podium.jobs.sense.composition:project_sources",
    request="podium.jobs.sense.composition:TickRequest",
    submit="podium.jobs.sense.composition:submit",
    commands={
        "sense": Command(
            "podium.jobs.sense.commands.sense:app",
            "Watch a system and propose work orders, or carry them out.",
        ),
        "candidates": Command(
            "podium.jobs.sense.commands.candidates:app",
            "List the work orders that `sense` proposes.",
            "Advanced",
        ),
        "deploy": Command(
            "podium.jobs.sense.commands.candidates:deploy_app",
            "Approve a candidate of `sense` and deliver it.",
            "Advanced",
        ),
        "plan": Command(
            "podium.jobs.sense.commands.plan:app",
            "Parse a plan for `sense`, or check the planning rules.",
            "Advanced",
        ),
    },
)
