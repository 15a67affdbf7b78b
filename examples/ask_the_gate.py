"""Your own policy, and its decisions on some calls. Nothing is executed."""

from __future__ import annotations

from datetime import UTC, datetime

from podium.core.decisions import Call, Decision, GateContext
from podium.policy import Policy, PolicyLayer, compile_policy, default_policy, split_command
from podium.tools import Registry, builtin_tools

POLICY = {
    "rules": [
        {
            "name": "no-fridays",
            "tool": "run_command",
            "command": "make deploy **",
            "decision": "deny",
            "why": "we deploy on other days",
            "match": ["make deploy"],
            "not_match": ["make test"],
        }
    ]
}


def main() -> None:
    built_in = PolicyLayer(origin="built-in", policy=default_policy())
    mine = PolicyLayer(origin="user", policy=Policy.model_validate(POLICY))
    gate = compile_policy([built_in, mine])
    tools = Registry(builtin_tools())
    context = GateContext(tool=tools.spec("run_command"), root="/project", now=datetime.now(UTC))
    for line in ("make test", "make deploy", "git checkout main", "echo $(id)", "curl x.example"):
        split = split_command(line)
        decision: Decision = gate.decide(
            Call(
                run_id="run_example",
                step_key="only",
                index=0,
                tool="run_command",
                arguments={"command": line},
                commands=split.commands,
                undecidable=split.undecidable,
            ),
            context,
        )
        print(f"{line:<20} {decision.effect:<6} {decision.tier} {decision.rule}: {decision.reason}")


if __name__ == "__main__":
    main()
