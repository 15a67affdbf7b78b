"""Rehearsal: scenes of podium.yaml played against the gate."""

from podium.core.job import Command, FlowSpec, Job

JOB = Job(
    name="rehearsal",
    flows={
        "rehearsal": FlowSpec(
            "podium.jobs.rehearsal.flow:build_rehearsal",
            "podium.jobs.rehearsal.flow:RehearsalPlan",
            "podium.jobs.rehearsal.flow:rehearsal",
        ),
    },
    options="podium.jobs.rehearsal.flow:RehearsalOptions",
    commands={
        "rehearse": Command(
            "podium.jobs.rehearsal.commands:app",
            "Run the scenes of podium.yaml to try out a policy.",
            "Agents and policy",
        ),
    },
)
