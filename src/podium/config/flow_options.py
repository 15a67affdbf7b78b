"""Options of each flow under `flows:` in podium.yaml."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, create_model

from podium.config.configuration import Configuration
from podium.core.job import all_jobs, job_of_flow, load
from podium.core.model import Json


def options_model(flow: str) -> type[BaseModel]:
    """Model of a flow's options."""
    job = job_of_flow(flow)
    if job is None or not job.options:
        raise KeyError(flow)
    model: type[BaseModel] = load(job.options)
    return model


def options_models() -> dict[str, type[BaseModel]]:
    """Model of every job's options, by the name of the job."""
    jobs = sorted(all_jobs(), key=lambda job: job.name)
    return {job.name: load(job.options) for job in jobs if job.options}


class _Part(BaseModel):
    """A part of a file whose other keys were checked when it was loaded."""

    model_config = ConfigDict(extra="ignore")


def flow_options(configuration: Configuration, flow: str) -> dict[str, Json]:
    """The settings of a flow, completed by its defaults.

    Raises `ConfigInvalid` with every fault at its place in the file that has the say.
    """
    owners = [layer for layer in configuration.layers if flow in layer.settings.flows]
    if not owners:
        return options_model(flow)().model_dump()
    file = owners[-1].located.validated(_file_with(flow, options_model(flow)))
    options: dict[str, Json] = file.model_dump()["flows"]["options"]
    return options


def _file_with(flow: str, shape: type[BaseModel]) -> type[BaseModel]:
    """The shape of a file of which only the options of one flow matter."""
    section = create_model("_Flows", __base__=_Part, options=(shape, Field(alias=flow)))
    return create_model("_File", __base__=_Part, flows=(section, ...))
