"""Stages and prompts as shipped, overridden by podium.yaml and `.podium/prompts/`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

import yaml
from pydantic import ValidationError

from podium.config.configuration import Configuration
from podium.config.flow_options import flow_options
from podium.core.errors import BadInput, ConfigInvalid, ConfigProblem
from podium.core.model import Json
from podium.jobs.pipeline import PLACEHOLDER, PLACEHOLDERS, PipelineSpec

FLOW = "pipeline"
PROMPTS_FOLDER = "prompts"
_MAX_PROMPT_BYTES = 200_000


def pipeline_spec(configuration: Configuration) -> PipelineSpec:
    """Load the shipped stages with the changes of podium.yaml. Raises `ConfigInvalid` with file and line."""
    merged = _over(_shipped(), flow_options(configuration, FLOW))
    try:
        return PipelineSpec.model_validate(merged)
    except ValidationError as error:
        raise _located(configuration, error) from None


@cache
def _shipped() -> Json:
    text = (files("podium.jobs.pipeline") / "pipeline.yaml").read_text()
    shipped: Json = yaml.safe_load(text)
    return shipped


def pipeline_prompts(configuration: Configuration, spec: PipelineSpec) -> dict[str, str]:
    """The words for every stage; a file of the project's own goes before the one that ships."""
    own = {name: stage.prompt or name for name, stage in spec.stages.items()}
    in_modes = [pair for mode in spec.modes for pair in spec.mode(mode).prompts.items()]
    names = {*own.values(), *(name for _, name in in_modes), "triage"}
    folders = configuration.folders
    texts = {name: _prompt(name, folders.state, folders.project) for name in sorted(names)}
    for stage, name in in_modes:
        # Who has words of their own for a stage means them in every mode.
        if _is_own(own[stage], folders.state) and not _is_own(name, folders.state):
            texts[name] = texts[own[stage]]
    return texts


def _is_own(name: str, state: Path) -> bool:
    return name.endswith(".md") or (state / PROMPTS_FOLDER / f"{name}.md").is_file()


def _prompt(name: str, state: Path, project: Path) -> str:
    """A name with `.md` is a file of the project, which everybody who clones it has."""
    if name.endswith(".md"):
        return _own_prompt(project / name)
    file = state / PROMPTS_FOLDER / f"{name}.md"
    if file.is_file():
        return _own_prompt(file)
    shipped = files("podium.jobs.pipeline") / "prompts" / f"{name}.md"
    if not shipped.is_file():
        raise BadInput(
            f"there is no prompt {name!r}; write it to {str(file)!r}, or name a file of the project: "
            f"`prompt: prompts/{name}.md`"
        )
    return shipped.read_text("utf-8")


def _own_prompt(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(_MAX_PROMPT_BYTES + 1)
        text = content.decode("utf-8")
    except OSError as error:
        raise BadInput(f"{str(file)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{str(file)!r} is no text in UTF-8; save it as such") from None
    if len(content) > _MAX_PROMPT_BYTES:
        raise BadInput(f"{str(file)!r} is longer than {_MAX_PROMPT_BYTES} bytes; shorten it")
    if not text.strip():
        raise BadInput(f"{str(file)!r} is empty; write the prompt, or remove the file")
    unknown = set(PLACEHOLDER.findall(text)) - set(PLACEHOLDERS)
    if unknown:
        placeholders = ", ".join(PLACEHOLDERS)
        raise BadInput(
            f"{str(file)!r}: there is no {{{{{min(unknown)}}}}}; placeholders: {placeholders}"
        )
    return text


def _over(shipped: dict[str, Json], options: dict[str, Json]) -> dict[str, Json]:
    merged = {**shipped, **{key: value for key, value in options.items() if value is not None}}
    merged["modes"] = {**shipped["modes"], **(options.get("modes") or {})}
    stages: dict[str, Json] = dict(shipped["stages"])
    for name, change in (options.get("stages") or {}).items():
        overrides = {key: value for key, value in change.items() if value is not None}
        stages[name] = {**stages.get(name, {}), **overrides}
    merged["stages"] = stages
    return merged


def _located(configuration: Configuration, error: ValidationError) -> ConfigInvalid:
    """The faults at the places in podium.yaml where they can be mended."""
    owners = [layer for layer in configuration.layers if FLOW in layer.settings.flows]
    if not owners:
        raise error
    located = owners[-1].located
    problems: list[ConfigProblem] = []
    for detail in error.errors(include_url=False):
        message = str(detail["msg"]).removeprefix("Value error, ")
        path = ("flows", FLOW, *detail["loc"])
        if not detail["loc"]:
            path = ("flows", FLOW, *message.split(": ")[:-1])
        problems.append(located.problem(path, message))
    return ConfigInvalid(located.file, problems)
