"""The whole arguments of recorded calls. Events keep those of large ones only in part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from podium.domain.errors import BadInput
from podium.domain.events import ModelAnswered, ToolRefused, ToolRequested
from podium.domain.gating import ToolSpec, call_fingerprint
from podium.domain.model import Json
from podium.domain.schemas import with_defaults
from podium.wiring.replay.reading import Recording


def wishes_in(recording: Recording, specs: Sequence[ToolSpec]) -> dict[str, dict[str, Json]]:
    """Key of a call → its arguments. Raises `BadInput` for a call that was let pass and is not whole.

    A refused call may be missing: what it held was a secret.
    """
    said = dict(_said(recording, {spec.name: spec for spec in specs}))
    wishes: dict[str, dict[str, Json]] = {}
    for event in recording.events:
        body = event.body
        if not isinstance(body, ToolRequested | ToolRefused):
            continue
        fingerprint = _fingerprint_in(body.call)
        if call_fingerprint(body.tool, body.arguments) == fingerprint:
            wishes[body.call] = body.arguments
        elif fingerprint in said:
            wishes[body.call] = said[fingerprint]
        elif isinstance(body, ToolRequested):
            raise BadInput(
                f"{recording.name}: event {event.seq}: these are not all the arguments that {body.tool!r} was called "
                "with: they were too large to be kept, or the trace was edited; it cannot be replayed"
            )
    return wishes


def _said(
    recording: Recording, specs: Mapping[str, ToolSpec]
) -> Iterator[tuple[str, dict[str, Json]]]:
    """What models wished for, by what their calls are known by."""
    for event in recording.events:
        if not isinstance(event.body, ModelAnswered):
            continue
        for wish in event.body.answer.calls:
            if isinstance(wish.arguments, dict):
                yield call_fingerprint(wish.tool, wish.arguments), wish.arguments
                if (spec := specs.get(wish.tool)) is not None:
                    whole = with_defaults(spec.input_schema, wish.arguments)
                    yield call_fingerprint(wish.tool, whole), wish.arguments


def _fingerprint_in(key: str) -> str:
    """The middle of `run:step:fingerprint.index`; a step's name may hold colons too."""
    return key.rpartition(":")[2].partition(".")[0]
