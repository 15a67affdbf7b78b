"""Tasks of one `podium run`: several on the command line, or a file of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from podium.core.errors import BadInput, ConfigInvalid, ConfigProblem
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.jobs.pipeline.agent_text import one_line

MAX_TASKS = 100
MAX_CHARACTERS = 100_000
MAX_BYTES = 2_000_000
_YAML = (".yaml", ".yml", ".json")
_JSON_LINES = (".jsonl", ".ndjson")


class BatchTask(FrozenModel):
    """One task of several."""

    text: NonEmpty = Field(max_length=MAX_CHARACTERS)
    """What to build or fix."""
    id: str = Field(default="", max_length=60, pattern=r"^[A-Za-z0-9._-]*$")
    """Name in messages. Empty: its number."""
    mode: str = ""
    """Empty: that of the command line."""
    agent: str = ""
    files: tuple[NonEmpty, ...] = ()
    """Paths that it will probably change: tasks that share some are not started together if there are others."""

    @property
    def title(self) -> str:
        return one_line(self.text, 60)


def named_tasks(texts: Sequence[str]) -> tuple[BatchTask, ...]:
    """Tasks of the command line. Raises `BadInput`."""
    for number, text in enumerate(texts, 1):
        if not text.strip():
            raise BadInput(f"task {number} is empty; describe what to do, or leave it out")
        if len(text) > MAX_CHARACTERS:
            raise BadInput(
                f"task {number} has {len(text)} characters, more than {MAX_CHARACTERS}; put the details "
                "into a file of the repository and name that file in the task"
            )
    return numbered(
        [(f"task {number}", BatchTask(text=text.strip())) for number, text in enumerate(texts, 1)]
    )


def read_tasks(file: Path) -> tuple[BatchTask, ...]:
    """Tasks of a file: YAML, JSON, JSON lines, or one on each line. Raises `ConfigInvalid` with file and line."""
    text = _text_of(file)
    suffix = file.suffix.lower()
    if suffix in _YAML:
        rows = list(_yaml_rows(file, text))
    elif suffix in _JSON_LINES:
        rows = list(_json_rows(file, text))
    else:
        rows = [(line, content) for line, content in _lines(text) if not content.startswith("#")]
    if not rows:
        raise BadInput(f"{str(file)!r} has no task; write one on each line, or a YAML list of them")
    return numbered([(f"line {line}", _task_of(file, line, row)) for line, row in rows], file)


def numbered(
    rows: Sequence[tuple[str, BatchTask]], file: Path | None = None
) -> tuple[BatchTask, ...]:
    """The tasks, each with an id. Raises `BadInput` for one that is there twice, or too many."""
    where = f"{str(file)!r}: " if file else ""
    if len(rows) > MAX_TASKS:
        raise BadInput(f"{where}{len(rows)} tasks, more than {MAX_TASKS}; run them in parts")
    texts: dict[str, str] = {}
    ids: dict[str, str] = {}
    tasks = []
    for number, (place, task) in enumerate(rows, 1):
        named = task.model_copy(update={"id": task.id or str(number)})
        key = " ".join(task.text.split()).casefold()
        if key in texts:
            raise BadInput(f"{where}{place} is the same task as {texts[key]}; remove one of them")
        if named.id in ids:
            raise BadInput(
                f"{where}{place} has the id {named.id!r} of {ids[named.id]}; give it another"
            )
        texts[key] = ids[named.id] = place
        tasks.append(named)
    return tuple(tasks)


def _text_of(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{str(file)!r} cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise BadInput(f"{str(file)!r} is larger than {MAX_BYTES} bytes; split it")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise _invalid(file, line, "not valid UTF-8; save the file as UTF-8") from None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return (
        (number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()
    )


def _json_rows(file: Path, text: str) -> Iterator[tuple[int, Json]]:
    for number, line in _lines(text):
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _invalid(
                file, number, f"not valid JSON: {getattr(error, 'msg', error)}"
            ) from None


def _yaml_rows(file: Path, text: str) -> Iterator[tuple[int, Json]]:
    """The items of a list, or of the list under `tasks:`, with their lines."""
    loader = yaml.SafeLoader(text)
    try:
        for token in yaml.scan(text, yaml.SafeLoader):
            if isinstance(token, yaml.AliasToken):
                line = token.start_mark.line + 1
                raise _invalid(file, line, "aliases (`*name`) are not supported; write it out")
        root = loader.get_single_node()
        items = _items_of(file, root)
        yield from ((node.start_mark.line + 1, loader.construct_document(node)) for node in items)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _invalid(file, line, f"not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _invalid(file, 1, f"not valid YAML: {error}") from None
    finally:
        loader.dispose()


def _items_of(file: Path, root: Any) -> Sequence[Any]:
    if isinstance(root, yaml.MappingNode):
        keys = [key.value for key, _ in root.value]
        if keys != ["tasks"]:
            raise _invalid(
                file, root.start_mark.line + 1, "expected a list of tasks, or `tasks:` with one"
            )
        root = root.value[0][1]
    if root is None:
        return ()
    if not isinstance(root, yaml.SequenceNode):
        raise _invalid(file, root.start_mark.line + 1, "expected a list of tasks, each `- text`")
    items: Sequence[Any] = root.value
    return items


def _task_of(file: Path, line: int, row: Json) -> BatchTask:
    if not isinstance(row, str | dict):
        raise _invalid(file, line, "expected the text of a task, or a mapping with `text:`")
    data = {"text": row} if isinstance(row, str) else row
    if isinstance(data.get("text"), str):
        data = {**data, "text": data["text"].strip()}
    if type(data.get("id")) is int:
        data = {**data, "id": str(data["id"])}
    try:
        # As JSON: a list is taken for a tuple.
        return BatchTask.model_validate_json(json.dumps(data, default=str))
    except ValidationError as error:
        problems = "; ".join(_problem_texts(error))
        raise _invalid(file, line, problems) from None


def _problem_texts(error: ValidationError) -> Iterable[str]:
    for problem in error.errors(include_url=False):
        key = ".".join(map(str, problem["loc"]))
        if problem["type"] == "extra_forbidden":
            yield f"unknown key {key!r}; known keys: {', '.join(BatchTask.model_fields)}"
        elif problem["type"] == "missing":
            yield f"`{key}:` is missing"
        else:
            yield f"`{key}:` {problem['msg'][:1].lower()}{problem['msg'][1:]}"


def _invalid(file: Path, line: int, problem: str) -> ConfigInvalid:
    return ConfigInvalid(str(file), [ConfigProblem(problem, line=line)])


def start_order(tasks: Sequence[BatchTask], parallel: int) -> tuple[int, ...]:
    """Indexes in the order of starting: tasks whose declared files overlap are kept apart where others can go first."""
    left = list(range(len(tasks)))
    order: list[int] = []
    while left:
        beside = order[-(parallel - 1) :] if parallel > 1 else []
        best = min(
            left, key=lambda index: sum(_overlap(tasks[index], tasks[other]) for other in beside)
        )
        left.remove(best)
        order.append(best)
    return tuple(order)


def _overlap(one: BatchTask, other: BatchTask) -> bool:
    """Return whether both name a file, or one a folder of the other's."""
    return any(
        _is_within(mine, theirs) or _is_within(theirs, mine)
        for mine in one.files
        for theirs in other.files
    )


def _is_within(path: str, folder: str) -> bool:
    whole, above = path.strip("/"), folder.strip("/")
    return whole == above or whole.startswith(f"{above}/")
