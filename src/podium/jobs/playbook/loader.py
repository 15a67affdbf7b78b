"""Loader of profiles and playbooks; every problem is reported with file, line and key."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from pydantic import ValidationError

from podium.config.located import FilePosition, Located
from podium.config.located_yaml import parse_located
from podium.core.errors import HARMLESS_REMEDY, BadInput, ConfigInvalid, ConfigProblem
from podium.core.model import Json
from podium.jobs.playbook import disagreements, fitting, tools_of
from podium.jobs.playbook.models import (
    PROFILE_FILE,
    InputSpec,
    Playbook,
    PlaybookHead,
    PlaybookPrompt,
    PluginProfile,
)
from podium.jobs.playbook.page import (
    GatheredPages,
    LocatedProblem,
    MarkdownPage,
    PageLine,
    PageLoader,
    read_text,
    steps_of,
)
from podium.jobs.playbook.template import misused
from podium.platform.invisible_text import hidden_in, written
from podium.store import Redactor
from podium.tools import builtin_tools

MAX_FAULTS = 200

_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,99}"
_LINE_END = re.compile(r"\r\n?|\n")
_REFERENCE = re.compile(f"secret://{_NAME}")


def invalid(file: str, faults: Iterable[ConfigProblem]) -> ConfigInvalid:
    """All faults in the order of their places, without what looks like a secret, and not without end."""
    hide = Redactor({}).text
    told = sorted(
        faults, key=lambda each: (_file_of(each, file) != file, each.line or 0, each.column or 0)
    )
    told = [placed(_file_of(each, file), each, hide(each.problem)) for each in told]
    if len(told) > MAX_FAULTS:
        more = len(told) - MAX_FAULTS
        told = [*told[:MAX_FAULTS], LocatedProblem(file, f"and {more} faults more")]
    return ConfigInvalid(file, told)


def placed(file: str, fault: ConfigProblem, problem: str = "") -> LocatedProblem:
    """The fault with its file."""
    return LocatedProblem(
        file, problem or fault.problem, line=fault.line, column=fault.column, key=fault.key
    )


def _file_of(fault: ConfigProblem, file: str) -> str:
    return fault.file if isinstance(fault, LocatedProblem) else file


def default_faults(located: Located) -> Iterator[ConfigProblem]:
    """Defaults that are none of their input's type. An input that is unsound otherwise is passed over."""
    for name, written_spec in _inputs_in(located).items():
        try:
            spec = InputSpec.model_validate(written_spec)
        except ValidationError:
            continue
        try:
            if spec.default is not None:
                fitting(spec, spec.default)
        except ValueError as unfit:
            yield placed(located.file, located.problem(("inputs", name, "default"), str(unfit)))


def input_names(located: Iterable[Located]) -> frozenset[str]:
    """The names that any of these front matters gives to inputs, sound or not."""
    return frozenset(name for each in located for name in _inputs_in(each))


def _inputs_in(located: Located) -> dict[str, Json]:
    inputs = located.data.get("inputs")
    return inputs if isinstance(inputs, dict) else {}


def text_faults(gathered: GatheredPages, names: frozenset[str] | None) -> Iterator[ConfigProblem]:
    """What is wrong with the words. Without `names`, which cannot be known, those in braces are not looked up."""
    for file, text in gathered.texts.items():
        yield from (placed(file, fault) for fault in (*token_faults(text), *_hidden_faults(text)))
        if names is None:
            continue
        yield from (
            LocatedProblem(file, each.problem, line=line.number, column=each.column + line.before)
            for lines in _runs(gathered.pages[file])
            for each in misused("\n".join(line.text for line in lines), names)
            for line in (lines[each.line - 1],)
        )


def _runs(page: MarkdownPage) -> Iterator[list[PageLine]]:
    """The lines of a page, each heading by itself: no paragraph reaches across one."""
    if page.title:
        yield [page.title]
    for heading, found in groupby(page.lines, key=lambda line: line.level > 0):
        lines = list(found)
        yield from ([line] for line in lines) if heading else [lines]


def token_faults(text: str) -> Iterator[ConfigProblem]:
    hide = Redactor({}).text
    if hide(text) == text:
        return
    lines = _LINE_END.split(text)
    caught: list[int | None] = [
        number for number, line in enumerate(lines, start=1) if hide(line) != line
    ]
    for number in caught or [None]:
        yield ConfigProblem(
            "holds what looks like a secret; take it out, and name it as secret://NAME",
            line=number,
        )


def _hidden_faults(text: str) -> Iterator[ConfigProblem]:
    """Whoever reviews a playbook must see all that an agent will read."""
    for number, line in enumerate(_LINE_END.split(text), start=1):
        for at, character in hidden_in(line):
            problem = f"holds a character that nobody can see, {written(character)}; take it out"
            yield ConfigProblem(problem, line=number, column=at + 1)


def secret_faults(located: Located) -> Iterator[ConfigProblem]:
    """Faults of `secrets`, which never show the value: it may be the secret itself."""
    secrets = located.data.get("secrets", {})
    if not isinstance(secrets, dict):
        yield located.problem(("secrets",), "must be a mapping of names to secret://NAME")
        return
    for name, value in secrets.items():
        if not re.fullmatch(_NAME, name):
            yield located.problem(
                ("secrets", name), "must be called like a variable: letters, digits, _"
            )
        if not isinstance(value, str) or not _REFERENCE.fullmatch(value):
            yield located.problem(
                ("secrets", name), "name the secret, as secret://NAME; keep its value out"
            )


def faults_of(located: Located, model: type[PluginProfile]) -> list[ConfigProblem]:
    try:
        located.validated(model)
    except ConfigInvalid as broken:
        return list(broken.problems)
    return []


MAX_STEPS = 200


@dataclass(frozen=True)
class LoadedPlaybook:
    """A playbook, and where its front matter stands."""

    playbook: Playbook
    located: Located
    files: tuple[str, ...]
    """Every file it was read from, its own first."""

    def disagreements(self, profile: PluginProfile) -> list[ConfigProblem]:
        """What it asks for and the profile does not give, each at its place."""
        found = disagreements(profile, self.playbook.head)
        return [self.located.problem(path, problem) for path, problem in found]


def find_profile(start: Path) -> Path:
    """The nearest `plugin-profile.yaml`, from this folder upwards. Raises `BadInput` when there is none."""
    folder = start.absolute()
    for each in (folder, *folder.parents):
        # A folder that may not be looked into has none for us.
        with suppress(OSError):
            if (each / PROFILE_FILE).is_file():
                return each / PROFILE_FILE
    raise BadInput(
        f"there is no {PROFILE_FILE} in {str(start)!r} or above it; write one, or name it: --profile FILE"
    )


def load_profile(path: Path) -> PluginProfile:
    """The profile in a file; of a folder the nearest one upwards. Raises `ConfigInvalid` with every fault."""
    file = find_profile(path) if os.path.isdir(path) else path  # noqa: PTH112 - which raises nothing
    text = read_text(file, str(file))
    located = _parsed(text, str(file))
    faults = [*token_faults(text), *secret_faults(located)]
    if not faults:
        return located.validated(PluginProfile)
    others = {name: value for name, value in located.data.items() if name != "secrets"}
    faults += faults_of(replace(located, data=others), PluginProfile)
    raise invalid(str(file), faults)


def load_playbook(path: Path, root: Path | None = None) -> Playbook:
    """The playbook in a file, with what it includes, all beneath `root` (None: the file's own folder).

    Raises `ConfigInvalid` with every fault of every file.
    """
    return read_playbook(path, root).playbook


def read_playbook(path: Path, root: Path | None = None) -> LoadedPlaybook:
    """The same, with the places of its front matter and the files it came from."""
    own = str(path)
    gathered = PageLoader(root or path.absolute().parent).gather(path)
    fronts = {file: _front_of(gathered, file) for file in gathered.texts}
    located = [front for front in fronts.values() if front is not None]
    names = input_names(located) if len(located) == len(fronts) else None
    heads = [head for each in located if (head := _head_of(gathered, each)) is not None]
    introduction, steps = steps_of(gathered.lines)
    faults = [*gathered.faults, *text_faults(gathered, names)]
    if not steps and not faults:
        faults.append(LocatedProblem(own, "has no steps; each heading is one: `## Do this first`"))
    if len(steps) > MAX_STEPS:
        faults.append(
            LocatedProblem(own, f"has {len(steps)} steps, and at most {MAX_STEPS} are read")
        )
    if faults:
        raise invalid(own, faults)
    whole = Playbook(
        head=heads[0].model_copy(update={"inputs": _inputs_of(heads)}),
        title=gathered.title.text if gathered.title else "",
        introduction=introduction,
        steps=steps,
    )
    return LoadedPlaybook(whole, located[0], tuple(gathered.texts))


def _front_of(gathered: GatheredPages, file: str) -> Located | None:
    """A page's front matter as data. None: it cannot be read, and the faults say why."""
    page = gathered.pages[file]
    if not page.front and file == next(iter(gathered.texts)) and not page.faults:
        problem = "has no front matter; begin it with a line `---`, then `name: …`, then `---`"
        gathered.faults.append(LocatedProblem(file, problem, line=1))
    if not page.front:
        # An included page needs none.
        return Located(file, {"name": file})
    try:
        return _parsed(page.front, file)
    except ConfigInvalid as broken:
        gathered.faults += [placed(file, fault) for fault in broken.problems]
        return None


def _parsed(text: str, file: str) -> Located:
    """The YAML as data. An empty one begins somewhere too, so that what it lacks has a place."""
    located = parse_located(text.encode(), file)
    return located if located.positions else replace(located, positions={(): FilePosition(1, 1)})


def _head_of(gathered: GatheredPages, located: Located) -> PlaybookHead | None:
    gathered.faults += default_faults(located)
    try:
        return located.validated(PlaybookHead)
    except ConfigInvalid as broken:
        gathered.faults += [placed(located.file, fault) for fault in broken.problems]
        return None


def _inputs_of(heads: Iterable[PlaybookHead]) -> dict[str, InputSpec]:
    """Those of the playbook, then what included pages want beside them."""
    inputs: dict[str, InputSpec] = {}
    for head in heads:
        inputs |= {name: spec for name, spec in head.inputs.items() if name not in inputs}
    return inputs


def surroundings() -> dict[str, str]:
    """What an agent is told of the machine: nothing that names it or its people."""
    return {"system": platform.system(), "processor": platform.machine()}


def secret_inputs(given: Mapping[str, str], redactor: Redactor) -> None:
    """Refuse values that look like secrets: they would be in the prompt. Raises `BadInput`."""
    caught = [name for name, value in given.items() if redactor.text(value) != value]
    if caught:
        raise BadInput(
            "\n".join(
                f"input {name!r} holds what looks like a secret; name it as secret://NAME; {HARMLESS_REMEDY}"
                for name in caught
            )
        )


def notes_on(profile: PluginProfile, playbook: Playbook, prompt: PlaybookPrompt) -> list[str]:
    """What is no fault and yet worth knowing before a run."""
    known = {tool.spec.name for tool in builtin_tools()}
    if profile.commands.model_dump(exclude_none=True):
        known.add("run_checks")
    unknown = [name for name in tools_of(profile, playbook.head) or () if name not in known]
    notes = [f"input {name!r} must be given to run it" for name in prompt.missing]
    notes += [
        f"there is no tool {name!r}, so that `podium playbook run` refuses it" for name in unknown
    ]
    most = playbook.head.limits.tokens
    if most and prompt.estimated_tokens > most:
        notes.append(
            f"the prompt alone has about {prompt.estimated_tokens} tokens, and limits.tokens is {most}"
        )
    if not playbook.head.success:
        notes.append("it has no success criteria; nothing would prove that it worked")
    return notes
