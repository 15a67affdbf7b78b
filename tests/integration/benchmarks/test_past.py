from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from benchmarks.machine_costs import opened_engine, opened_store
from benchmarks.past import add_past
from podium.app.databases import prune
from podium.app.run_list import list_runs
from podium.app.run_report import show_run
from podium.core.ids import short_id
from podium.engine import FlowDefinition
from podium.engine.distributed.database import migrate
from podium.ports import FlowContext, RunQuery, StepContext

RUNS = 40


async def answer(step: StepContext) -> str:
    return "done"


async def two(ctx: FlowContext, _: Any) -> None:
    for index in range(2):
        await ctx.step("answer", answer, index=index)


async def test_a_copied_past_reads_like_runs_that_ran_and_is_forgotten_oldest_first(
    postgres_url: str, tmp_path: Path
) -> None:
    await asyncio.to_thread(migrate, postgres_url)
    async with (
        opened_store(postgres_url, tmp_path) as store,
        opened_engine(store, postgres_url) as engine,
    ):
        engine.register(FlowDefinition("two", two))
        real = await engine.finish((await engine.start("two", task="a task")).id)
        past = await asyncio.to_thread(add_past, postgres_url, real.id, RUNS)
        ids = past.ids

        newest = await list_runs(store, RunQuery(limit=100))
        assert [run.id for run in newest] == [real.id, *reversed(ids)]
        shown, template = await show_run(store, short_id(ids[3])), await show_run(store, real.id)
        assert shown.run.created_at < template.run.created_at
        assert [(step.key, step.run_id) for step in shown.steps] == [
            (step.key, ids[3]) for step in template.steps
        ]
        assert [event.body.type for event in shown.events] == [
            event.body.type for event in template.events
        ]

        oldest = await prune(store, past.age_of(4))
        assert oldest.runs == 4
        left = await list_runs(store, RunQuery(limit=100))
        assert [run.id for run in left] == [real.id, *reversed(ids[4:])]
        # What comes after a past that was copied is still kept after it.
        again = await engine.finish((await engine.start("two")).id)
        assert again.status == real.status
