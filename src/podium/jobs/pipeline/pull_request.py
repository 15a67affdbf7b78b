"""Text of the pull request: what was asked for, what was done, its risk, and the proof."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from podium.core.decisions import Tier, Usage
from podium.core.forge import RemoteBase, check_ending, check_passed
from podium.core.model import FrozenModel, Json
from podium.jobs.pipeline.agent_text import fenced, harmless, in_code, one_line, shortened, whole
from podium.jobs.pipeline.findings import TrackedFinding
from podium.render.event import tokens_text
from podium.render.text import counted

MAX_TITLE = 72
MAX_BODY = 60_000
"""GitHub takes 65,536 characters."""

_MAX_ROWS = 100
_MAX_ROW = 300
_MAX_TEXT = 6_000
_MAX_SENTENCE = 300
_MAX_UNFOLDED = 5
_MAX_NOTES = 20
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_NO_SENTENCE = re.compile(r"\s*(?:\||```|~~~|#|$)")
_LEADS_ELSEWHERE = re.compile(
    r"@(?=\w)|(?<=#)(?=\d)|(?<=\bGH-)(?=\d)|(?<=/issues/)(?=\d)|(?<=/pull/)(?=\d)|(?<=/discussions/)(?=\d)",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?!lt;)(?=#|[A-Za-z])")
_INVISIBLE = "<!-- -->"
_NOT_RUN = "No checks were run; this change is untested.\n"
_GUARDED = "This branch changes files that guard the project or run automatically:\n"


def title_of(task: str) -> str:
    """The task's first sentence, on one line of at most 72 characters."""
    text = one_line(task, 2_000)
    first = _SENTENCE_END.split(text, maxsplit=1)[0].rstrip(".")
    line = first or text or "Task"
    if len(line) <= MAX_TITLE:
        return line
    cut = line[: MAX_TITLE - 1]
    clipped = cut.rsplit(" ", 1)[0] if " " in cut[MAX_TITLE // 2 :] else cut
    return clipped.rstrip(" ,;:-") + "…"


def squash_message(title: str, subjects: Sequence[str]) -> str:
    """Message of the commit that stands for others. Their subjects are an agent's: they call nobody and close nothing."""
    lines = [f"* {_LEADS_ELSEWHERE.sub(_apart, one_line(text, 120))}" for text in subjects]
    listed = lines[:_MAX_NOTES]
    if len(lines) > len(listed):
        listed.append(f"* and {len(lines) - len(listed)} more")
    is_same = [line.removeprefix("* ") for line in lines] == [title]
    return title if is_same or not lines else "\n".join([title, "", *listed])


def _apart(match: re.Match[str]) -> str:
    return f"{match[0]} "


class ChangedFile(FrozenModel):
    """A file that the branch changes, with its risk by the policy."""

    path: str
    added: int | None = None
    """Lines. None: it is binary."""
    removed: int | None = None
    tier: Tier = Tier.T1
    zones: tuple[str, ...] = ()
    """Zones of the policy that it lies in, apart from those that only name a place."""


@dataclass(frozen=True, kw_only=True)
class PullRequestContent:
    """All that the body of a pull request is made of. Text of agents and issues is data: it is made inert here."""

    task: str
    run_id: str
    branch: str
    subject: str = ""
    """What the first sentence is taken from. Empty: the task."""
    summary: str = ""
    """Cause and change, as the approved plan has them."""
    files: Sequence[ChangedFile] = ()
    guarded: Sequence[str] = ()
    evidence: Sequence[Mapping[str, Json]] = ()
    """Results of checks as `evidence_file` takes them."""
    fix_proof: Sequence[str] = ()
    """The test that fails on the base and passes on the branch."""
    base_checks: Sequence[str] = ()
    """Results of the checks on the base."""
    check_notes: Sequence[str] = ()
    integrity: Sequence[str] = ()
    """Remarks on deleted, skipped or weakened tests."""
    findings: Sequence[TrackedFinding] = ()
    report: str = ""
    """Verification report of the developer."""
    remote_base: RemoteBase = field(default_factory=RemoteBase)
    commits: Sequence[str] = ()
    documents: Sequence[str] = ()
    """Paths of plan, reports and reviews."""
    documents_ref: str = ""
    """Ref that has the documents. Empty: they are on the branch."""
    history: str = ""
    """Commit of that ref."""
    backlog: Sequence[str] = ()
    usage: Usage = field(default_factory=Usage)


def body_of(content: PullRequestContent) -> str:
    """The body in Markdown, at most 60,000 characters; for an ordinary change one screen, with details folded.

    The most important comes first, and what there is no room for is counted.
    """
    foot = f"Created by Podium in run {in_code(content.run_id, 80)}."
    parts = [_what_and_why(content), _facts(content)]
    left = MAX_BODY - len(foot) - 1_000 - sum(map(len, parts))
    for section in _sections(content):
        # The last sections must not lose all room to the first.
        rendered = section.within(min(left, MAX_BODY // 4))
        left -= len(rendered) + 2
        parts += [rendered] if rendered else []
    return "\n\n".join([*parts, "---", foot]) + "\n"


def _sections(content: PullRequestContent) -> Iterator[_Section]:
    yield _Section(
        "Guarded files",
        text=_GUARDED if content.guarded else "",
        rows=tuple(_list(content.guarded)),
    )
    yield _Section("Proof of the fix", rows=tuple(_list(content.fix_proof)))
    yield _check_results(content)
    yield _Section("Changed tests and checks", rows=tuple(_list(content.integrity)))
    yield _findings(content.findings)
    yield _base(content.remote_base)
    yield _Section("How to try it", text=_how_to_try(content))
    task = fenced(shortened(whole(content.task.strip()[:20_000]), _MAX_TEXT))
    yield _Section("Task", text=task, folded=True)
    yield _Section("Cause and change", text=_quiet_lines(content.summary), folded=True)
    yield _changed_files(content.files)
    yield _Section("Checks before this work", rows=tuple(_list(content.base_checks)), folded=True)
    yield _Section("Verified by the developer", text=_quiet_lines(content.report), folded=True)
    yield _Section("Commits", rows=tuple(_list(content.commits)), folded=True)
    yield _documents(content)
    yield _Section("Added to the backlog", rows=tuple(_list(content.backlog)), folded=True)


@dataclass(frozen=True)
class _Section:
    heading: str
    text: str = ""
    rows: tuple[str, ...] = ()
    table_head: str = ""
    folded: bool = False

    def within(self, most: int) -> str:
        """The section with as many rows as there is room for. Empty: there is nothing to say."""
        if not (self.text or self.rows):
            return ""
        lines = [*([self.text] if self.text else [])]
        lines += self.table_head.split("\n") if self.rows and self.table_head else []
        length = len(self.heading) + sum(len(line) + 1 for line in lines) + 100
        for number, row in enumerate(self.rows):
            length += len(row) + 1
            if length > most or number >= _MAX_ROWS:
                lines += ["", f"… and {len(self.rows) - number} more."]
                break
            lines.append(row)
        if length > most and not self.rows:
            lines = ["Too long to show here."]
        if self.folded:
            head, foot = f"<details><summary>{self.heading}</summary>", ["", "</details>"]
        else:
            head, foot = f"## {self.heading}", []
        return "\n".join([head, "", *lines, *foot])


def _what_and_why(content: PullRequestContent) -> str:
    """Three sentences: what was asked for, then cause and change."""
    task = next(_sentences(content.subject or content.task), "")
    summary = [text for text in _sentences(content.summary) if text != task]
    return " ".join(filter(None, [task, *summary[:2]])) or "Task"


def _sentences(text: str) -> Iterator[str]:
    """Sentences of a Markdown text, each on one harmless line. Tables, code and headings have none."""
    in_code_block = False
    for line in whole(text[:_MAX_TEXT]).split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            in_code_block = not in_code_block
        if in_code_block or _NO_SENTENCE.match(line):
            continue
        for sentence in _SENTENCE_END.split(line):
            plain = quiet(sentence, _MAX_SENTENCE)
            if plain:
                yield plain if plain.endswith((".", "!", "?", "…")) else f"{plain}."


def _facts(content: PullRequestContent) -> str:
    """One row: size, risk, checks, findings and cost."""
    usage = content.usage
    tokens = tokens_text(usage.input_tokens, usage.output_tokens)
    cells = {
        "Change": _size(content.files),
        "Risk": _risk(content),
        "Checks": _checks(content.evidence),
        "Findings": _findings_count(content.findings),
        "Cost": f"${usage.usd:.2f}{'' if usage.complete else ' or more'}, {tokens}",
    }
    shown = {name: text for name, text in cells.items() if text}
    head = " | ".join(shown)
    return f"| {head} |\n|{' --- |' * len(shown)}\n| {' | '.join(shown.values())} |"


def _size(files: Sequence[ChangedFile]) -> str:
    added = sum(file.added or 0 for file in files)
    removed = sum(file.removed or 0 for file in files)
    return f"{counted(len(files), 'file')}, +{added} −{removed}" if files else ""


def _risk(content: PullRequestContent) -> str:
    """The highest tier, with the zones that give it."""
    if not content.files:
        return ""
    tier = max(file.tier for file in content.files)
    zones = dict.fromkeys(zone for file in content.files for zone in file.zones)
    where = ", ".join(in_code(zone, 60) for zone in list(zones)[:_MAX_UNFOLDED])
    return (
        f"{tier.name}: touches {where}" if where else f"{tier.name}: no zone with a rule of its own"
    )


def _checks(evidence: Sequence[Mapping[str, Json]]) -> str:
    passed = sum(check_passed(result) for result in evidence)
    return f"{passed} of {len(evidence)} passed" if evidence else "none were run"


def _findings_count(findings: Sequence[TrackedFinding]) -> str:
    still_open = sum(not finding.resolution for finding in findings)
    if not findings:
        return "none"
    return f"{len(findings)}, " + (f"{still_open} open" if still_open else "all resolved")


_TABLE_HEAD = "| Check | Result | Seconds | SHA-256 of the output |\n| --- | --- | ---: | --- |"


def _check_results(content: PullRequestContent) -> _Section:
    return _Section(
        "Checks",
        text="\n".join(_about_checks(content)),
        rows=tuple(_check_rows(content.evidence)),
        table_head=_TABLE_HEAD,
    )


def _about_checks(content: PullRequestContent) -> Iterator[str]:
    if not content.evidence:
        yield _NOT_RUN
    yield from _list(content.check_notes[:_MAX_NOTES])
    if content.evidence and content.check_notes:
        yield ""


def _check_rows(evidence: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    for result in evidence[: _MAX_ROWS + 1]:
        command = _cell(in_code(str(result.get("command", "")), 160))
        digest = in_code(str(result.get("output_sha256") or "")[:16])
        seconds = f"{float(result.get('seconds') or 0):.1f}"
        yield f"| {command} | {check_ending(result)} | {seconds} | {digest} |"


def _findings(findings: Sequence[TrackedFinding]) -> _Section:
    rows = tuple(
        f"| {_cell(quiet(finding.source))} | {_cell(quiet(finding.text))} | "
        f"{_cell(quiet(finding.resolution)) or '**open**'} |"
        for finding in findings
    )
    head = "| From | Finding | Resolution |\n| --- | --- | --- |"
    title = f"Findings ({len(findings)})" if len(findings) > _MAX_UNFOLDED else "Findings"
    return _Section(title, rows=rows, table_head=head, folded=len(findings) > _MAX_UNFOLDED)


def _base(remote: RemoteBase) -> _Section:
    if not remote.why_not:
        return _Section("Base not fetched")
    advice = "It may have new commits; check that this branch still merges."
    return _Section("Base not fetched", text=f"> {quiet(remote.why_not)}\n\n{advice}")


def _how_to_try(content: PullRequestContent) -> str:
    """Commands that get the branch and run the checks."""
    remote, branch = content.remote_base.name.partition("/")[0], shlex.quote(content.branch)
    fetch = [f"git fetch {shlex.quote(remote)} {branch}"] if remote else []
    ran = [one_line(str(result.get("command", "")), 400) for result in content.evidence[:10]]
    return fenced("\n".join([*fetch, f"git switch {branch}", *ran]), "sh")


def _changed_files(files: Sequence[ChangedFile]) -> _Section:
    rows = tuple(
        f"| {_cell(in_code(file.path))} | {_lines(file)} | {file.tier.name} | "
        f"{', '.join(in_code(zone, 60) for zone in file.zones)} |"
        for file in files
    )
    head = "| File | Lines | Tier | Zone |\n| --- | --- | --- | --- |"
    return _Section(f"Changed files ({len(files)})", rows=rows, table_head=head, folded=True)


def _lines(file: ChangedFile) -> str:
    if file.added is None or file.removed is None:
        return "binary"
    return f"+{file.added} −{file.removed}"


def _documents(content: PullRequestContent) -> _Section:
    ref = content.documents_ref
    rows = tuple(f"- {_link(content, path)}" for path in content.documents)
    if not ref or not rows:
        return _Section("Plan and reviews", rows=rows, folded=True)
    remote = content.remote_base.name.partition("/")[0]
    where = in_code(ref)
    first = shlex.quote(one_line(content.documents[0], _MAX_ROW))
    fetch = f"git fetch {shlex.quote(remote)} {ref}:{ref}\n" if remote else ""
    how = fenced(f"{fetch}git show {ref}:{first}", "sh")
    text = f"The documents of the run are not on the branch but in {where}:\n\n{how}\n"
    return _Section("Plan and reviews", text=text, rows=rows, folded=True)


def _link(content: PullRequestContent, path: str) -> str:
    """A document's path, as a link to it where the repository has pages."""
    web, commit = content.remote_base.web, content.history
    if not web or not commit or not content.documents_ref:
        return in_code(path)
    return f"[{in_code(path)}]({web}/blob/{commit}/{quote(path, errors='replace')})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _list(items: Sequence[str]) -> Iterator[str]:
    return (f"- {quiet(item)}" for item in items if item.strip())


def _quiet_lines(text: str) -> str:
    lines = (quiet(line) for line in whole(text.strip()[:_MAX_TEXT]).split("\n"))
    return "\n".join(f"> {line}".rstrip() for line in lines) if text.strip() else ""


def quiet(text: str, most: int = _MAX_ROW) -> str:
    """One harmless line that calls nobody and closes no issue: an agent must not do that in passing."""
    line = _ENTITY.sub("&amp;", harmless(text, most))
    return _LEADS_ELSEWHERE.sub(lambda match: match[0] + _INVISIBLE, line)
