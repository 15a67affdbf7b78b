"""The operator as a library: a request is analyzed, planned, stopped for approval, approved, and verified."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from podium.app.app import open_podium
from podium.app.receipts import verify_receipts
from podium.config.configuration import load_configuration
from podium.jobs.operator import Operator
from podium.jobs.operator.composition import OperatorSetup, build_operator
from podium.jobs.operator.models import OperatorAnswer


def show(answer: OperatorAnswer) -> None:
    tools = " → ".join(answer.plan.tool_sequence) if answer.plan else "no tool"
    print(f"{answer.message!r}\n  {answer.status}: {tools} (exit {answer.exit_code})")
    for result in answer.results:
        if result.receipt is not None:
            print(f"  {result.tool} {result.status}, receipt {result.receipt}")


async def converse(operator: Operator) -> None:
    # Looking changes nothing; what is missing is asked for.
    show(await operator.process("new lead: Sarah 0400123456"))

    made = await operator.process("new lead: Sarah 0400123456 in Clayton", "execute")
    show(made)
    lead = made.results[0].fields["lead_id"]

    # T2: the plan halts until a person says yes to exactly it.
    halted = await operator.process(
        "create a quote for this lead", "execute", context={"lead_id": lead}
    )
    show(halted)
    show(await operator.process(f"APPROVE: {halted.action_id}"))

    # No approval lifts a directive.
    refused = await operator.process("void all invoices", "execute", explicit_approval=True)
    show(refused)
    if refused.classification and refused.classification.conflict:
        print(f"  conflicts with {refused.classification.conflict.directive}")


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        environ = {**os.environ, "PODIUM_HOME": str(Path(name) / "home"), "PODIUM_USER": "ann"}
        project = Path(name) / "project"
        project.mkdir()
        async with open_podium(load_configuration(environ, project=project), environ) as podium:
            intent = OperatorSetup(pack="roofing", classifier="embedded")
            await converse(await build_operator(podium, intent))
            verdict = await verify_receipts(await podium.store(), await podium.verifier())
            print(f"{verdict.receipts} receipts, sound: {verdict.sound}")


if __name__ == "__main__":
    asyncio.run(main())
