"""Text that models get about offered tools, results and refusals; standard library alone, the MCP server in the sandbox loads it.

Standard library alone: the program that serves the toolbox to a CLI loads this and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

NO_REASON = "no reason was given; do something else, or end your turn"
NOTE = "! from Podium"
"""Field of a result that warns of instructions in it. Sorts before every other name, so that it is read first."""
MARKS_FIELD = "marks"
MARKS_FIELD_FALLBACK = "podium_marks"
"""Fields with the places that the warning means: the second where the tool has one of the first name."""
INTERNAL = "x-internal"
"""Keyword of an argument's schema: no model is shown the argument. Calls are checked against the whole schema."""
REQUIRED = "x-required"
"""Keyword of an object's schema: what models are told to give, where `required` is less."""
_NOT_OFFERED = ("propertyNames", "prefixItems", "minLength", "examples")
MAX_STREAM = 10_000
"""Characters of a command's output, or of its errors, that are shown."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_HASH = re.compile(r"(?:sha256:)?[0-9a-f]{64}")
_CUT_NOTICE_CHARACTERS = 80
_SHORT_COMMIT = 10
_MAX_SUMMARY = 200


def offered_names(names: Iterable[str], longest: int) -> dict[str, str]:
    """Names that every provider takes → the registry's. Two that become alike get a number."""
    offered: dict[str, str] = {}
    for real in names:
        plain = name = plain_name(real, longest)
        number = 2
        while name in offered:
            ending = f"_{number}"
            name, number = plain[: longest - len(ending)] + ending, number + 1
        offered[name] = real
    return offered


def plain_name(name: str, longest: int) -> str:
    """The name as every provider takes it."""
    return _NOT_IN_NAMES.sub("_", name)[:longest]


def offered_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A tool's schema as models are shown it: without what only Podium uses, or checks for itself."""
    offered: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NOT_OFFERED or key.startswith("x-"):
            continue
        if key in ("properties", "$defs") and isinstance(value, dict):
            offered[key] = {
                name: _offered(inner) for name, inner in value.items() if not _is_internal(inner)
            }
        elif key in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
            offered[key] = [_offered(inner) for inner in value]
        else:
            offered[key] = _offered(value) if key in ("items", "additionalProperties") else value
    if REQUIRED in schema:
        offered["required"] = schema[REQUIRED]
    return offered


def _offered(schema: Any) -> Any:
    return offered_schema(schema) if isinstance(schema, dict) else schema


def _is_internal(schema: Any) -> bool:
    return isinstance(schema, dict) and bool(schema.get(INTERNAL))


def outcome_text(tool: str, ok: bool, result: object, error: str, longest: int) -> str:
    """Describe the outcome of a performed call, as plain text of at most `longest` characters.

    A warning of Podium about what the result holds comes first.
    """
    warning, rest = _warning_and_rest(result)
    parts = [warning] if warning else []
    if not ok:
        # The warning stands in the error too, for whoever shows nothing else.
        parts.append(failure_text(error.removeprefix(f"{_note_of(result)}\n")))
    characters_left = longest - sum(map(len, parts))
    result_text = _result_text(tool, rest, characters_left) if ok or _adds_to_error(rest) else ""
    return cut_to(longest, "\n".join([*parts, *([result_text] if result_text else [])]))


def result_text(result: object) -> str:
    """A value as text: one text for one value."""
    if isinstance(result, str):
        return result
    return json.dumps(result, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def failure_text(error: str) -> str:
    return f"Error: {error or 'the tool failed'}"


def refusal_text(say: str, *, mistake: bool = False, waits: bool = False) -> str:
    """For a call that did not run.

    `mistake`: nothing forbids it, it was only written wrongly. `waits`: it may run when a person has agreed, as the
    door's words say.
    """
    if waits:
        return say or NO_REASON
    return failure_text(say) if mistake else f"Permission Denied: {say or NO_REASON}"


def cut_to(longest: int, text: str) -> str:
    """The text; of a longer one its beginning and its end, with words that say how much is missing."""
    if len(text) <= longest:
        return text
    capacity = max(0, longest - _CUT_NOTICE_CHARACTERS)
    head = capacity // 3  # Failures tend to be told last.
    tail = len(text) - (capacity - head)
    return f"{text[:head]}\n[… {len(text) - capacity} characters left out; request a part …]\n{text[tail:]}"


Fields = dict[str, Any]


def _note_of(result: object) -> str:
    return str(result.get(NOTE, "")) if isinstance(result, dict) else ""


def _warning_and_rest(result: object) -> tuple[str, object]:
    """Podium's own words about the result with the places that they mean, and the result without them."""
    note = _note_of(result)
    if not note or not isinstance(result, dict):
        return "", result
    name = MARKS_FIELD_FALLBACK if MARKS_FIELD_FALLBACK in result else MARKS_FIELD
    lines = [f"{NOTE}: {note}"]
    for location in result.get(name) or ():
        if "more" in location:
            lines.append(f"- {location['more']} more")
        else:
            lines.append(
                f"- {location.get('kind')} at {location.get('at')}: {location.get('text')}"
            )
    rest = {key: value for key, value in result.items() if key not in (NOTE, name)}
    return "\n".join([*lines, ""]), rest.get("result") if list(rest) == ["result"] else rest


def _adds_to_error(result: object) -> bool:
    """Tell whether a failed call's result has something that its error does not say. A refused edit's has not."""
    return bool(result) and not (isinstance(result, dict) and "candidates" in result)


def _result_text(tool: str, result: object, longest: int) -> str:
    if isinstance(result, dict) and tool in _TEXTS:
        try:
            return _TEXTS[tool](result, longest)
        except (LookupError, TypeError, ValueError, AttributeError):
            # A tool of this name with another result, or one that was cut to its limit.
            pass
    return result_text(_without_hashes(result))


def _without_hashes(value: object) -> object:
    """Digests prove something to people who check receipts. A model only pays for them."""
    if isinstance(value, list):
        return [_without_hashes(item) for item in value]
    if not isinstance(value, dict):
        return value
    remaining = {
        key: _without_hashes(item) for key, item in value.items() if not _is_digest(str(key), item)
    }
    # Where a digest is all there is, it was what the call was for.
    return remaining or value


def _is_digest(name: str, value: object) -> bool:
    named = name == "sha256" or name.endswith("_sha256")
    return named and (value is None or (isinstance(value, str) and bool(_HASH.fullmatch(value))))


def _one_line(text: object) -> str:
    """A name, which must not make a line of its own."""
    return str(text).replace("\r", "\\r").replace("\n", "\\n")


def _read(result: Fields, longest: int) -> str:
    path, first, last = _one_line(result["path"]), result["first_line"], result["last_line"]
    total, content = result["total_lines"], str(result["content"])
    if not total:
        return f"{path} is empty"
    lines = content.split("\n")
    if len(lines) != last - first + 1:
        head = f"{path}, lines {first}–{last} of {total}, without line numbers because parts are left out"
        return f"{head}{_continue(result['next_offset'])}\n{content}"
    numbered: list[str] = []
    left = longest - len(path) - 100
    for number, line in enumerate(lines, first):
        numbered.append(f"{number}\t{line}")
        left -= len(numbered[-1]) + 1
        if left < 0 and len(numbered) > 1:
            numbered.pop()
            break
    last = first + len(numbered) - 1
    follows = _continue(last + 1 if last < total else None)
    return "\n".join([f"{path}, lines {first}–{last} of {total}{follows}", *numbered])


def _continue(offset: int | None) -> str:
    return "" if offset is None else f"; continue with offset {offset}"


def _listed(result: Fields, longest: int) -> str:
    files, total = result["files"], result["total"]
    if not files:
        return "no files"
    head = _counted(total, "file")
    if not result["complete"]:
        more = result.get("cut") or "use a more specific pattern, or a higher `limit`"
        head = f"{len(files)} of {head}; {more}"
    return "\n".join([head, *map(_one_line, files)])


def _searched(result: Fields, longest: int) -> str:
    count = _counted(result["count"], "match", "matches")
    head = f"{count}; {_counted(result['files_searched'], 'file')} searched"
    if stopped := result.get("stopped_in_file"):
        progress = f"{stopped} of {total}" if (total := result.get("files_total")) else stopped
        head = f"first {count}; stopped in file {progress}: use a more specific pattern, or a higher `limit`"
    elif not result["complete"]:
        head = f"{head}; there are more files: use a smaller folder, or a more specific glob"
    return "\n".join([head, *map(_match, result["matches"])])


def _match(match: Fields | str) -> str:
    if isinstance(match, str):
        return match
    return f"{_one_line(match['path'])}:{match['line']}: {_one_line(match['text'])}"


def _counted(number: int, model: str, nouns: str = "") -> str:
    return f"{number} {model if number == 1 else nouns or model + 's'}"


def _command(result: Fields, longest: int) -> str:
    streams = [(name, str(result[name]).rstrip("\n")) for name in ("stdout", "stderr")]
    parts = [f"exit code {result['exit_code']}"] if result["exit_code"] == 0 else []
    parts += [f"{name}:\n{cut_to(MAX_STREAM, text)}" for name, text in streams if text]
    if not any(text for _, text in streams):
        parts.append("no output")
    if result.get("dropped_bytes"):
        parts.append(f"[{result['dropped_bytes']} more bytes of output were dropped]")
    return "\n".join([*parts, *_refused_lines(result)])


def _refused_lines(result: Fields) -> Iterator[str]:
    if programs := result.get("refused_programs"):
        yield f"The sandbox did not let these programs start: {', '.join(programs)}"
    if hosts := result.get("refused_hosts"):
        yield f"The sandbox did not let it connect to: {', '.join(hosts)}"


def _checked(result: Fields, longest: int) -> str:
    checks = result["checks"]
    passed = [check for check in checks if check["passed"]]
    lines = [f"passed: {check['name']}{_last_lines(check['output'])}" for check in passed]
    for check in checks:
        if not check["passed"]:
            lines.append(f"FAILED: {check['name']}: {check['error']}")
            lines += [f"$ {check['command']}", *([check["output"]] if check["output"] else [])]
            lines += _refused_lines(check)
    return "\n".join(lines)


def _last_lines(output: str) -> str:
    """The last lines of a check that passed: `Ran 0 tests` is worth knowing."""
    lines = [line.strip() for line in output.split("\n") if line.strip()]
    return f" ({' / '.join(lines[-2:])[-_MAX_SUMMARY:]})" if lines else ""


def _status(result: Fields, longest: int) -> str:
    branch = f"on branch {_one_line(result['branch'])}"
    if result["clean"]:
        return f"{branch}; no changes"
    lines = [f"{branch}; {_counted(result['count'], 'file')} changed"]
    for file in result["files"]:
        if isinstance(file, str):
            lines.append(file)
            continue
        was = f"{_one_line(file['from'])} -> " if "from" in file else ""
        lines.append(f"{file['status']:2} {was}{_one_line(file['path'])}")
    return "\n".join(lines)


def _log(result: Fields, longest: int) -> str:
    lines: list[str] = []
    for commit in result["commits"]:
        if isinstance(commit, str):
            lines.append(commit)
            continue
        named = commit["commit"][:_SHORT_COMMIT], commit["date"], commit["author"]
        lines.append(" ".join([*named, "|", commit["subject"]]))
        body = [line for line in commit["body"].split("\n") if not line.startswith("Podium-Call:")]
        lines += [f"    {line}" for line in body if line.strip()]
    if not lines:
        return "no commits"
    return "\n".join([*lines, *([] if result["complete"] else ["there are more; use `skip`"])])


def _diff(result: Fields, longest: int) -> str:
    left_out = result["files_left_out"]
    notes = (
        [f"[{_counted(left_out, 'file')} left out because you may not read them]"]
        if left_out
        else []
    )
    return "\n".join([result["diff"].rstrip("\n") or "no changes", *notes])


def _committed(result: Fields, longest: int) -> str:
    return f"committed {result['commit']} on branch {_one_line(result['branch'])}"


def _written(result: Fields, longest: int) -> str:
    path = _one_line(result["path"])
    if result["sha256"] == result["previous_sha256"]:
        return f"{path} has this content already; nothing was changed"
    done = "created" if result["created"] else "replaced"
    return _with_diff(f"{done} {path} ({result['bytes']} bytes)", result)


def _edited(result: Fields, longest: int) -> str:
    lines = ", ".join(str(edit["line"]) for edit in result["edits"])
    return _with_diff(f"edited {_one_line(result['path'])} at line {lines}", result)


def _patched(result: Fields, longest: int) -> str:
    return _with_diff("\n".join(map(_patched_file, result["files"])), result)


def _patched_file(file: Fields) -> str:
    was = f" from {_one_line(file['from'])}" if "from" in file else ""
    return f"{file['change']} {_one_line(file['path'])}{was}"


def _with_diff(done: str, result: Fields) -> str:
    diff = str(result["diff"]).rstrip("\n")
    return f"{done}\n{diff}" if diff else done


def _restored(result: Fields, longest: int) -> str:
    return f"{'removed' if result['removed'] else 'restored'} {_one_line(result['path'])}"


def _answered(result: Fields, longest: int) -> str:
    return f"A person answers: {result['answer']}"


def _finished(result: Fields, longest: int) -> str:
    return "recorded; end your turn now" if result["summary"] else ""


_TEXTS: dict[str, Callable[[Fields, int], str]] = {
    "read_file": _read,
    "list_files": _listed,
    "find_files": _listed,
    "search_text": _searched,
    "run_command": _command,
    "run_checks": _checked,
    "git_status": _status,
    "git_log": _log,
    "git_diff": _diff,
    "git_commit": _committed,
    "write_file": _written,
    "edit_file": _edited,
    "apply_patch": _patched,
    "restore_file": _restored,
    "ask_human": _answered,
    "finish": _finished,
}
"""Tools whose results are told as text. All others are told as JSON."""
