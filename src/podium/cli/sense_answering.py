"""What comes after an answer to a candidate."""

from __future__ import annotations

from podium.domain.sensing import CandidateStanding
from podium.domain.work import Run
from podium.usecases import see_queues, wo_id_of
from podium.wiring import Podium
from podium.wiring.sensing import candidate_mode, sense_options, sense_queue


async def next_of_candidate(podium: Podium, run: Run, *, yes: bool) -> str:
    """Who sees it through, or what is left to a person."""
    if run.status.ended:
        return _how_it_ended(run)
    queue = sense_queue(podium.configuration)
    seen = await see_queues(await podium.store(), podium.engine, [queue])
    served = any(each.served_by for each in seen.queues if each.name == queue.name)
    if not yes:
        return "" if served else "the next tick or `podium worker` puts it away"
    return _after_yes(podium, run, served)


def _how_it_ended(run: Run) -> str:
    if not isinstance(run.result, dict):
        return ""
    stands = CandidateStanding.model_validate(run.result)
    return f"{stands.state}: {stands.file}" if stands.state == "delivered" else stands.why


def _after_yes(podium: Podium, run: Run, served: bool) -> str:
    wo_id, mode = wo_id_of(run), candidate_mode(podium, run)
    layout = sense_options(podium).layout
    if mode == "sensing":
        return "the mode is sensing now, in which nothing is delivered"
    if mode == "dry-run":
        return f"a dry run moves nothing: `mv {layout.candidates}/{wo_id}.yaml {layout.inbox}/` hands it to the worker"
    if served:
        return f"delivered by whoever serves the loop's queue, to {layout.inbox}/{wo_id}.yaml"
    return f"the next tick or `podium worker` delivers it; `podium deploy {wo_id}` does so at once"
