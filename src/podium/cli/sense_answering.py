"""What comes after an answer to a candidate."""

from __future__ import annotations

from podium.cli.sense_next import Surroundings, look_around
from podium.domain.sensing import CandidateStanding
from podium.domain.work import Run
from podium.usecases import see_queues, wo_id_of
from podium.wiring import Podium
from podium.wiring.sensing import candidate_mode, sense_queue


async def next_of_candidate(podium: Podium, run: Run, *, yes: bool) -> str:
    """Who sees it through, or what is left to a person."""
    if run.status.ended:
        return _how_it_ended(run)
    queue = sense_queue(podium.configuration)
    seen = await see_queues(await podium.store(), podium.engine, [queue])
    served = any(each.served_by for each in seen.queues if each.name == queue.name)
    around = await look_around(podium)
    if not yes:
        return "" if served else f"the next tick or `{around.command('worker')}` puts it away"
    return _after_yes(around, wo_id_of(run), candidate_mode(podium, run), served)


def _how_it_ended(run: Run) -> str:
    if not isinstance(run.result, dict):
        return ""
    stands = CandidateStanding.model_validate(run.result)
    return f"{stands.state}: {stands.file}" if stands.state == "delivered" else stands.why


def _after_yes(around: Surroundings, wo_id: str, mode: str, served: bool) -> str:
    if mode == "sensing":
        return f"the mode is sensing now, in which nothing is delivered; `{around.deploy(wo_id)}` delivers it"
    if mode == "dry-run":
        return f"a dry run moves nothing: `{around.move(wo_id)}` hands it to the worker"
    if served:
        place = around.place(f"{around.options.layout.inbox}/{wo_id}.yaml")
        return f"delivered by whoever serves the loop's queue, to {place}"
    worker, deploy = around.command("worker"), around.deploy(wo_id)
    return f"the next tick or `{worker}` delivers it; `{deploy}` does so at once"
