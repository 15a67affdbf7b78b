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

MAX_PROBLEMS = 200

_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,99}"
_LINE_END = re.compile(r"\r\n?|\n")
_REFERENCE = re.compile(f"secret://{_NAME}")


def invalid(file: str, problems: Iterable[ConfigProblem]) -> ConfigInvalid:
    """Build the error with all problems sorted by location, redacted and at most `MAX_PROBLEMS`."""
    hide = Redactor({}).text
    listed = sorted(
        problems,
        key=lambda problem: (
            _file_of(problem, file) != file,
            problem.line or 0,
            problem.column or 0,
        ),
    )
    listed = [placed(_file_of(problem, file), problem, hide(problem.problem)) for problem in listed]
    if len(listed) > MAX_PROBLEMS:
        more = len(listed) - MAX_PROBLEMS
        listed = [*listed[:MAX_PROBLEMS], LocatedProblem(file, f"and {more} more problems")]
    return ConfigInvalid(file, listed)


def placed(file: str, issue: ConfigProblem, problem: str = "") -> LocatedProblem:
    """Attach the file to a problem."""
    return LocatedProblem(
        file, problem or issue.problem, line=issue.line, column=issue.column, key=issue.key
    )


def _file_of(problem: ConfigProblem, file: str) -> str:
    return problem.file if isinstance(problem, LocatedProblem) else file


def default_problems(located: Located) -> Iterator[ConfigProblem]:
    """Find defaults that do not match their input's type. Inputs that are invalid otherwise are skipped."""
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
    """Collect the input names of these front matters, valid or not."""
    return frozenset(name for front in located for name in _inputs_in(front))


def _inputs_in(located: Located) -> dict[str, Json]:
    inputs = located.data.get("inputs")
    return inputs if isinstance(inputs, dict) else {}


def text_problems(gathered: GatheredPages, names: frozenset[str] | None) -> Iterator[ConfigProblem]:
    """Find problems in the texts. Without `names` placeholders are not looked up."""
    for file, text in gathered.texts.items():
        yield from (
            placed(file, problem)
            for problem in (*token_problems(text), *hidden_character_problems(text))
        )
        if names is None:
            continue
        yield from (
            LocatedProblem(
                file, misuse.problem, line=line.number, column=misuse.column + line.before
            )
            for lines in _runs(gathered.pages[file])
            for misuse in misused("\n".join(line.text for line in lines), names)
            for line in (lines[misuse.line - 1],)
        )


def _runs(page: MarkdownPage) -> Iterator[list[PageLine]]:
    """Group the lines of a page into paragraphs, each heading by itself."""
    if page.title:
        yield [page.title]
    for heading, run in groupby(page.lines, key=lambda line: line.level > 0):
        lines = list(run)
        yield from ([line] for line in lines) if heading else [lines]


def token_problems(text: str) -> Iterator[ConfigProblem]:
    hide = Redactor({}).text
    if hide(text) == text:
        return
    lines = _LINE_END.split(text)
    caught: list[int | None] = [
        number for number, line in enumerate(lines, start=1) if hide(line) != line
    ]
    for number in caught or [None]:
        yield ConfigProblem(
            "contains what looks like a secret; remove it, and refer to it as secret://NAME",
            line=number,
        )


def hidden_character_problems(text: str) -> Iterator[ConfigProblem]:
    """Find invisible characters: a reviewer must see all that an agent will read."""
    for number, line in enumerate(_LINE_END.split(text), start=1):
        for at, character in hidden_in(line):
            problem = f"contains an invisible character, {written(character)}; remove it"
            yield ConfigProblem(problem, line=number, column=at + 1)


def secret_problems(located: Located) -> Iterator[ConfigProblem]:
    """Find problems of `secrets`, without showing a value: it may be the secret itself."""
    secrets = located.data.get("secrets", {})
    if not isinstance(secrets, dict):
        yield located.problem(("secrets",), "must be a mapping of names to secret://NAME")
        return
    for name, value in secrets.items():
        if not re.fullmatch(_NAME, name):
            yield located.problem(
                ("secrets", name), "must be the name of a variable: letters, digits, _"
            )
        if not isinstance(value, str) or not _REFERENCE.fullmatch(value):
            yield located.problem(
                ("secrets", name), "must be a reference, secret://NAME, and not the secret itself"
            )


def model_problems(located: Located, model: type[PluginProfile]) -> list[ConfigProblem]:
    try:
        located.validated(model)
    except ConfigInvalid as broken:
        return list(broken.problems)
    return []


MAX_STEPS = 200


@dataclass(frozen=True)
class LoadedPlaybook:
    """A playbook, and the location of its front matter."""

    playbook: Playbook
    located: Located
    files: tuple[str, ...]
    """Files it was read from, its own first."""

    def disagreements(self, profile: PluginProfile) -> list[ConfigProblem]:
        """List what it asks for and the profile lacks, each with its location."""
        conflicts = disagreements(profile, self.playbook.head)
        return [self.located.problem(path, problem) for path, problem in conflicts]


def find_profile(start: Path) -> Path:
    """Find the nearest `plugin-profile.yaml`, from this folder upwards. Raises `BadInput` when there is none."""
    folder = start.absolute()
    for candidate in (folder, *folder.parents):
        # A folder that may not be looked into has none for us.
        with suppress(OSError):
            if (candidate / PROFILE_FILE).is_file():
                return candidate / PROFILE_FILE
    raise BadInput(
        f"there is no {PROFILE_FILE} in {str(start)!r} or above it; write one, or pass --profile FILE"
    )


def load_profile(path: Path) -> PluginProfile:
    """Load the profile in a file; for a folder the nearest one upwards. Raises `ConfigInvalid` with every problem."""
    file = find_profile(path) if os.path.isdir(path) else path  # noqa: PTH112 - which raises nothing
    text = read_text(file, str(file))
    located = _parsed(text, str(file))
    problems = [*token_problems(text), *secret_problems(located)]
    if not problems:
        return located.validated(PluginProfile)
    others = {name: value for name, value in located.data.items() if name != "secrets"}
    problems += model_problems(replace(located, data=others), PluginProfile)
    raise invalid(str(file), problems)


def load_playbook(path: Path, root: Path | None = None) -> Playbook:
    """Load a playbook with its includes, all below `root` (None: the file's own folder).

    Raises `ConfigInvalid` with every problem of every file.
    """
    return read_playbook(path, root).playbook


def read_playbook(path: Path, root: Path | None = None) -> LoadedPlaybook:
    """Load a playbook with the locations of its front matter and its files."""
    own = str(path)
    gathered = PageLoader(root or path.absolute().parent).gather(path)
    fronts = {file: _front_of(gathered, file) for file in gathered.texts}
    located = [front for front in fronts.values() if front is not None]
    names = input_names(located) if len(located) == len(fronts) else None
    heads = [head for front in located if (head := _head_of(gathered, front)) is not None]
    introduction, steps = steps_of(gathered.lines)
    problems = [*gathered.problems, *text_problems(gathered, names)]
    if not steps and not problems:
        problems.append(
            LocatedProblem(own, "has no steps; each step is a heading, such as `## Do this first`")
        )
    if len(steps) > MAX_STEPS:
        problems.append(
            LocatedProblem(
                own, f"has {len(steps)} steps, more than {MAX_STEPS}; split the playbook"
            )
        )
    if problems:
        raise invalid(own, problems)
    whole = Playbook(
        head=heads[0].model_copy(update={"inputs": _inputs_of(heads)}),
        title=gathered.title.text if gathered.title else "",
        introduction=introduction,
        steps=steps,
    )
    return LoadedPlaybook(whole, located[0], tuple(gathered.texts))


def _front_of(gathered: GatheredPages, file: str) -> Located | None:
    """Parse a page's front matter. None: it is invalid; the problems say why."""
    page = gathered.pages[file]
    if not page.front and file == next(iter(gathered.texts)) and not page.problems:
        problem = "has no front matter; begin it with a line `---`, then `name: …`, then `---`"
        gathered.problems.append(LocatedProblem(file, problem, line=1))
    if not page.front:
        # An included page needs none.
        return Located(file, {"name": file})
    try:
        return _parsed(page.front, file)
    except ConfigInvalid as broken:
        gathered.problems += [placed(file, problem) for problem in broken.problems]
        return None


def _parsed(text: str, file: str) -> Located:
    """Parse YAML. An empty one gets a start location, so that missing keys have one."""
    located = parse_located(text.encode(), file)
    return located if located.positions else replace(located, positions={(): FilePosition(1, 1)})


def _head_of(gathered: GatheredPages, located: Located) -> PlaybookHead | None:
    gathered.problems += default_problems(located)
    try:
        return located.validated(PlaybookHead)
    except ConfigInvalid as broken:
        gathered.problems += [placed(located.file, problem) for problem in broken.problems]
        return None


def _inputs_of(heads: Iterable[PlaybookHead]) -> dict[str, InputSpec]:
    """Merge the inputs of the playbook, then those of included pages."""
    inputs: dict[str, InputSpec] = {}
    for head in heads:
        inputs |= {name: spec for name, spec in head.inputs.items() if name not in inputs}
    return inputs


def surroundings() -> dict[str, str]:
    """Return facts of the machine for the agent; none identifies it or its people."""
    return {"system": platform.system(), "processor": platform.machine()}


def secret_inputs(inputs: Mapping[str, str], redactor: Redactor) -> None:
    """Refuse values that look like secrets: they would be in the prompt. Raises `BadInput`."""
    caught = [name for name, value in inputs.items() if redactor.text(value) != value]
    if caught:
        raise BadInput(
            "\n".join(
                f"input {name!r} contains what looks like a secret; refer to it as secret://NAME; {HARMLESS_REMEDY}"
                for name in caught
            )
        )


def notes_on(profile: PluginProfile, playbook: Playbook, prompt: PlaybookPrompt) -> list[str]:
    """List hints that are no problems."""
    tools = {tool.spec.name for tool in builtin_tools()}
    if profile.commands.model_dump(exclude_none=True):
        tools.add("run_checks")
    unknown = [name for name in tools_of(profile, playbook.head) or () if name not in tools]
    notes = [f"input {name!r} is required to run the playbook" for name in prompt.missing]
    notes += [
        f"there is no tool {name!r}; `podium playbook run` refuses the playbook" for name in unknown
    ]
    most = playbook.head.limits.tokens
    if most and prompt.estimated_tokens > most:
        notes.append(
            f"the prompt alone takes about {prompt.estimated_tokens} tokens, and limits.tokens is {most}"
        )
    if not playbook.head.success:
        notes.append("no success criteria; the result will not be checked")
    return notes
