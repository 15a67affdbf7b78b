"""Duet: two live terminal agents, planner and executer, exchange messages in tmux."""

from podium.core.job import Command, FlowSpec, Job

JOB = Job(
    name="duet",
    flows={
        "duet": FlowSpec(
            "podium.jobs.duet.composition:build_duet",
            "podium.jobs.duet.models:DuetJob",
            "podium.jobs.duet.flow:play_duet",
        ),
    },
    events={
        "pair_seated": "podium.jobs.duet.events:PairSeated",
        "leg_opened": "podium.jobs.duet.events:LegOpened",
        "message_heard": "podium.jobs.duet.events:MessageHeard",
        "block_ignored": "podium.jobs.duet.events:BlockIgnored",
        "side_nudged": "podium.jobs.duet.events:SideNudged",
        "keyboard_taken": "podium.jobs.duet.events:KeyboardTaken",
        "keyboard_returned": "podium.jobs.duet.events:KeyboardReturned",
    },
    event_view="podium.jobs.duet.events:view_event",
    options="podium.jobs.duet.models:DuetOptions",
    run_view="podium.jobs.duet.run_view:DuetRunView",
    queues="podium.jobs.duet.pairs:duet_queues",
    pages="podium.jobs.duet.duet_page:router",
    uninstall="podium.jobs.duet.claims:RunningPairs",
    sockets="podium.jobs.duet.pane_socket:router",
    benches={"duet": "podium.jobs.duet.bench.handoffs:app"},
    request_label="Task for the pair",
    choices="podium.jobs.duet.pairs:option_choices",
    request="podium.jobs.duet.task_control:DuetRequest",
    submit="podium.jobs.duet.task_control:submit",
    commands={
        "duet": Command(
            "podium.jobs.duet.commands.app:app",
            "Let two terminal agents, planner and executer, work on a task together.",
        ),
    },
)
