"""The sense loop as a library: an idle tick, a failing check, a work order approved, delivered and executed."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from podium.app.app import Podium, open_podium
from podium.app.approvals import approve
from podium.config.configuration import load_configuration
from podium.jobs.sense import ORDERS, SENSE, tick
from podium.jobs.sense.composition import tick_deps
from podium.jobs.sense.models import TickOutcome
from podium.jobs.sense.options import order_queues
from podium.jobs.sense.orders.worker import inbox_tender
from podium.ports import RunQuery

RULES = """\
version: 1
rules:
  - name: note-what-fails
    when: {source: health, for_each: [checks], where: [{path: status, in: [failed]}]}
    item:
      type: health_fix
      priority: high
      target: "{name}"
      action: create_wo
      wo_suggestion:
        wo_id_hint: "NOTE-{name}"
        title: "Note that {name} fails"
        ops: [{op: append, path: g/reports/failing.md, content: "{name} fails\\n"}]
    examples:
      - sensed: [{content: {checks: [{name: api, status: failed}]}}]
        expect: ["Note that api fails"]
"""


def show(outcome: TickOutcome) -> None:
    print(outcome.summary())
    for candidate in outcome.candidates:
        print(
            f"  {candidate.wo_id} {candidate.state}: {candidate.title} ({candidate.tier or 'no tier'})"
        )


def report(health: Path, status: str) -> None:
    health.write_text(json.dumps({"checks": [{"name": "api", "status": status}]}))


async def watch(podium: Podium, health: Path) -> None:
    async with AsyncExitStack() as stack:
        deps = await tick_deps(podium, stack)
        report(health, "ok")
        show(await tick(deps, manual=True))
        show(await tick(deps, manual=False))  # nothing changed: nobody is asked

        report(health, "failed")
        asked = await tick(deps, manual=False)
        show(asked)
        store, approval = await podium.store(), asked.candidates[0].approval_id
        await approve(store, podium.clock, podium.ids, approval, by="ann")
        show(await tick(deps, manual=False))


async def work(podium: Podium) -> None:
    """Do what `podium worker` does: turn the orders of the inbox into runs, and perform them."""
    engine = await podium.hosting_engine()
    async with engine.serve(
        [queue for queue in order_queues(podium.configuration) if queue.name == ORDERS]
    ):
        await (await inbox_tender(podium)).tend()
        for run in await engine.runs(RunQuery(queue=ORDERS)):
            ended = await engine.finish(run.id)
            print(f"{ended.result['wo_id']} {ended.result['status']}")


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        environ = {**os.environ, "PODIUM_HOME": str(Path(name) / "home")}
        root = Path(name) / "root"
        (root / "g" / "telemetry").mkdir(parents=True)
        (root / "rules.yaml").write_text(RULES)
        sense = {"planner": "rules", "rules": "rules.yaml", "mode": "supervised"}
        (root / "podium.yaml").write_text(json.dumps({"flows": {SENSE: sense}}))
        async with open_podium(load_configuration(environ, project=root), environ) as podium:
            await watch(podium, root / "g" / "telemetry" / "health_check_latest.json")
            await work(podium)
        print((root / "g" / "reports" / "failing.md").read_text(), end="")


if __name__ == "__main__":
    asyncio.run(main())
