"""How any program is asked: the agent's `options` in podium.yaml."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ValidationError, model_validator

from podium.agents.kit import AgentOptions
from podium.domain.errors import BadInput
from podium.domain.model import NonEmpty, Noun


def _inside_home(place: str) -> str:
    path = PurePosixPath(place)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError("must be a place inside the home folder, such as .tool/auth.json")
    return place


HomePlace = Annotated[str, AfterValidator(_inside_home)]


class CommandSettings(Noun):
    """What is told to the program and how its answer is read."""

    prompt: Literal["stdin", "file"] = "stdin"
    """Where the prompt goes. `file`: its path stands where the command says `{prompt_file}`."""
    output: Literal["text", "json", "jsonl"] = "text"
    text: str = "text"
    """Dotted path of the answer in JSON, such as `choices.0.message.content`."""
    join_text: bool = False
    """For `jsonl`: the answer is all texts together, not the last one."""
    session: str = ""
    """Dotted path of the conversation's name."""
    input_tokens: str = ""
    output_tokens: str = ""
    usd: str = ""
    """Dotted paths of what the turn used."""
    resume: tuple[NonEmpty, ...] = ()
    """Words put behind the command when a conversation goes on; `{session}` is its name."""
    logins: tuple[HomePlace, ...] = ()
    """Files of the person's home that are copied into the private one for the turn."""
    keep: tuple[HomePlace, ...] = ()
    """Folders of the private home that stay for the run's next turns."""
    hosts: tuple[NonEmpty, ...] = ()
    """Where its model answers, for a network that leads to the model alone."""

    @model_validator(mode="after")
    def _can_be_resumed(self) -> Self:
        if self.resume and not any("{session}" in word for word in self.resume):
            raise ValueError("`resume` must name {session} in one of its words")
        return self

    @classmethod
    def of(cls, options: AgentOptions) -> CommandSettings:
        """Raises `BadInput` for what cannot work."""
        name = options.name
        if not options.command:
            raise BadInput(f"agent {name!r} is of kind command: say what to run with `command`")
        try:
            settings = cls.model_validate(options.options)
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, fault['loc'])) or 'options'}: {fault['msg']}"
                for fault in error.errors()
            )
            known = ", ".join(cls.model_fields)
            raise BadInput(
                f"agent {name!r}: its options cannot be used: {faults}; options: {known}"
            ) from None
        _check_places(options, settings)
        return settings


def _check_places(options: AgentOptions, settings: CommandSettings) -> None:
    words = " ".join(options.command)
    if (settings.prompt == "file") != ("{prompt_file}" in words):
        raise BadInput(
            f"agent {options.name!r}: `prompt: file` and {{prompt_file}} in `command` go together"
        )
    if "{session}" in words:
        raise BadInput(
            f"agent {options.name!r}: a first turn has no {{session}}; put those words into `resume`"
        )
    if "{model}" in words and not options.model:
        raise BadInput(f"agent {options.name!r}: `command` names {{model}}; say which with `model`")
