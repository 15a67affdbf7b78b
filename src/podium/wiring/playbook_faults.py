"""What can be wrong with a profile or a playbook beyond its fields, and how all of it is told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from pydantic import ValidationError

from podium.domain.errors import ConfigFault, ConfigInvalid
from podium.domain.model import Json
from podium.domain.playbooks import InputSpec, Profile
from podium.domain.seeing import hidden_in, written
from podium.flows.playbook import fitting
from podium.flows.playbook.reading import Page, PageLine
from podium.flows.playbook.templating import misused
from podium.journal import Redactor
from podium.wiring.located import Located
from podium.wiring.playbook_pages import Gathered, PlacedFault

MOST_FAULTS = 200

_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,99}"
_LINE_END = re.compile(r"\r\n?|\n")
_REFERENCE = re.compile(f"secret://{_NAME}")


def invalid(file: str, faults: Iterable[ConfigFault]) -> ConfigInvalid:
    """All faults in the order of their places, without what looks like a secret, and not without end."""
    hide = Redactor({}).text
    told = sorted(
        faults, key=lambda each: (_file_of(each, file) != file, each.line or 0, each.column or 0)
    )
    told = [placed(_file_of(each, file), each, hide(each.problem)) for each in told]
    if len(told) > MOST_FAULTS:
        more = len(told) - MOST_FAULTS
        told = [*told[:MOST_FAULTS], PlacedFault(file, f"and {more} faults more")]
    return ConfigInvalid(file, told)


def placed(file: str, fault: ConfigFault, problem: str = "") -> PlacedFault:
    """The fault with its file."""
    return PlacedFault(
        file, problem or fault.problem, line=fault.line, column=fault.column, key=fault.key
    )


def _file_of(fault: ConfigFault, file: str) -> str:
    return fault.file if isinstance(fault, PlacedFault) else file


def default_faults(located: Located) -> Iterator[ConfigFault]:
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
            yield placed(located.file, located.fault(("inputs", name, "default"), str(unfit)))


def input_names(located: Iterable[Located]) -> frozenset[str]:
    """The names that any of these front matters gives to inputs, sound or not."""
    return frozenset(name for each in located for name in _inputs_in(each))


def _inputs_in(located: Located) -> dict[str, Json]:
    inputs = located.data.get("inputs")
    return inputs if isinstance(inputs, dict) else {}


def text_faults(gathered: Gathered, names: frozenset[str] | None) -> Iterator[ConfigFault]:
    """What is wrong with the words. Without `names`, which cannot be known, those in braces are not looked up."""
    for file, text in gathered.texts.items():
        yield from (placed(file, fault) for fault in (*token_faults(text), *_hidden_faults(text)))
        if names is None:
            continue
        yield from (
            PlacedFault(file, each.problem, line=line.number, column=each.column + line.before)
            for lines in _runs(gathered.pages[file])
            for each in misused("\n".join(line.text for line in lines), names)
            for line in (lines[each.line - 1],)
        )


def _runs(page: Page) -> Iterator[list[PageLine]]:
    """The lines of a page, each heading by itself: no paragraph reaches across one."""
    if page.title:
        yield [page.title]
    for heading, found in groupby(page.lines, key=lambda line: line.level > 0):
        lines = list(found)
        yield from ([line] for line in lines) if heading else [lines]


def token_faults(text: str) -> Iterator[ConfigFault]:
    hide = Redactor({}).text
    if hide(text) == text:
        return
    lines = _LINE_END.split(text)
    caught: list[int | None] = [
        number for number, line in enumerate(lines, start=1) if hide(line) != line
    ]
    for number in caught or [None]:
        yield ConfigFault(
            "holds what looks like a secret; take it out, and name it as secret://NAME",
            line=number,
        )


def _hidden_faults(text: str) -> Iterator[ConfigFault]:
    """Whoever reviews a playbook must see all that an agent will read."""
    for number, line in enumerate(_LINE_END.split(text), start=1):
        for at, character in hidden_in(line):
            problem = f"holds a character that nobody can see, {written(character)}; take it out"
            yield ConfigFault(problem, line=number, column=at + 1)


def secret_faults(located: Located) -> Iterator[ConfigFault]:
    """Faults of `secrets`, which never show the value: it may be the secret itself."""
    secrets = located.data.get("secrets", {})
    if not isinstance(secrets, dict):
        yield located.fault(("secrets",), "must be a mapping of names to secret://NAME")
        return
    for name, value in secrets.items():
        if not re.fullmatch(_NAME, name):
            yield located.fault(
                ("secrets", name), "must be called like a variable: letters, digits, _"
            )
        if not isinstance(value, str) or not _REFERENCE.fullmatch(value):
            yield located.fault(
                ("secrets", name), "name the secret, as secret://NAME; keep its value out"
            )


def faults_of(located: Located, model: type[Profile]) -> list[ConfigFault]:
    try:
        located.validated(model)
    except ConfigInvalid as broken:
        return list(broken.faults)
    return []
