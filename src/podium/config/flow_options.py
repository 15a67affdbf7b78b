"""Options of each flow under `flows:` in podium.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import BaseModel, ConfigDict, Field, create_model

from podium.config.configuration import Configuration
from podium.core.model import Json


def _duet() -> type[BaseModel]:
    from podium.jobs.duet.options import DuetOptions

    return DuetOptions


def _operator() -> type[BaseModel]:
    from podium.jobs.operator.options import OperatorOptions

    return OperatorOptions


def _pipeline() -> type[BaseModel]:
    from podium.jobs.pipeline import PipelineOptions

    return PipelineOptions


def _playbook() -> type[BaseModel]:
    from podium.jobs.playbook.models import PlaybookOptions

    return PlaybookOptions


def _rehearsal() -> type[BaseModel]:
    from podium.jobs.rehearsal.flow import RehearsalOptions

    return RehearsalOptions


def _sense() -> type[BaseModel]:
    from podium.jobs.sense.options import SenseOptions

    return SenseOptions


OPTIONS: Mapping[str, Callable[[], type[BaseModel]]] = {
    "duet": _duet,
    "operator": _operator,
    "pipeline": _pipeline,
    "playbook": _playbook,
    "rehearsal": _rehearsal,
    "sense": _sense,
}
"""Flow → the shape of its options, loaded late: a door with one flow does without the code of the others."""


class _Part(BaseModel):
    """A part of a file whose other keys were checked when it was loaded."""

    model_config = ConfigDict(extra="ignore")


def flow_options(configuration: Configuration, flow: str) -> dict[str, Json]:
    """What is set for a flow, completed by its defaults.

    Raises `ConfigInvalid` with every fault at its place in the file that has the say.
    """
    owners = [layer for layer in configuration.layers if flow in layer.settings.flows]
    if not owners:
        return OPTIONS[flow]()().model_dump()
    file = owners[-1].located.validated(_file_with(flow, OPTIONS[flow]()))
    options: dict[str, Json] = file.model_dump()["flows"]["options"]
    return options


def _file_with(flow: str, shape: type[BaseModel]) -> type[BaseModel]:
    """The shape of a file of which only the options of one flow matter."""
    section = create_model("_Flows", __base__=_Part, options=(shape, Field(alias=flow)))
    return create_model("_File", __base__=_Part, flows=(section, ...))
