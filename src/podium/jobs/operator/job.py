"""Operator: a message becomes a validated, approved run of tools, with receipts."""

from podium.core.job import ChatVerb, Command, FlowSpec, Job

JOB = Job(
    name="operator",
    flows={
        "operator": FlowSpec(
            "podium.jobs.operator.composition:operator_body",
            "podium.jobs.operator.models:OperatorJob",
            "podium.jobs.operator.flow:operator",
        ),
    },
    options="podium.jobs.operator.options:OperatorOptions",
    run_view="podium.jobs.operator.run_view:OperatorRunView",
    api="podium.jobs.operator.api:router",
    pages="podium.jobs.operator.page:router",
    chat={
        "ask": ChatVerb(
            "podium.jobs.operator.submission:answer_chat",
            "MESSAGE",
            "the operator plans it and asks before it acts",
        ),
    },
    mcp_tools="podium.jobs.operator.mcp_tools:TOOLS",
    approvals="podium.jobs.operator.plan_edit:PlanApprovals",
    planned_call="podium.jobs.operator.models:planned_call",
    benches={"operator": "podium.jobs.operator.bench.command:app"},
    request_label="Message to the operator",
    choices="podium.jobs.operator.submission:option_choices",
    request="podium.jobs.operator.submission:OperatorRequest",
    submit="podium.jobs.operator.submission:submit",
    commands={
        "ask": Command(
            "podium.jobs.operator.commands.ask:app",
            "Turn a sentence into approved tool calls, each with a receipt.",
        ),
        "pack": Command(
            "podium.jobs.operator.commands.pack:app",
            "Check, score, list, show, trust or create tool packs.",
            "Agents and policy",
        ),
        "undo": Command(
            "podium.jobs.operator.commands.undo:app",
            "Undo a call of `ask` by its receipt, gated like any other call.",
            "Advanced",
        ),
        "habits": Command(
            "podium.jobs.operator.commands.habits:app",
            "List or erase what `ask` remembers of messages.",
            "Advanced",
        ),
    },
)
