"""Guarded files: settings that guard a project, and what runs by itself in it.

One list for the policy (writing them needs a person), for the fences around folders, and for the import gate.
A pattern is a path of one or more names, at any depth; it covers what it names and all beneath it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase, translate
from functools import cache, lru_cache

from podium.domain.protected_paths import comparable_parts

GUARDED_TOOL = "import_guarded_files"
"""The tool whose call a person approves before guarded files come back."""

SETTINGS = ("podium.yaml", "podium.yml")
"""Say what Podium allows and checks in a project."""

_CI = (
    ".github/workflows", ".github/actions", ".github/dependabot.y*ml", ".github/settings.y*ml",
    ".gitea/workflows", ".forgejo/workflows", ".gitlab-ci*", ".gitlab/ci", ".circleci", ".ci", "jenkinsfile*",
    ".travis.y*ml", "azure-pipelines*", ".azure-pipelines", ".azuredevops", "bitbucket-pipelines.y*ml",
    ".drone.*", ".woodpecker*", "*appveyor.y*ml", ".buildkite", ".cirrus.*", ".semaphore", ".teamcity",
    "buildspec*.y*ml", "cloudbuild*.y*ml", "cloudbuild*.json", ".build.y*ml", ".builds", ".tekton", ".zuul*",
    "codemagic.y*ml", "bitrise.y*ml", "wercker.y*ml", ".harness", ".codefresh", "codeowners",
)  # fmt: skip
_HOOKS = (
    ".husky", ".huskyrc*", ".githooks", "githooks", ".git-hooks", "git-hooks", ".hooks", ".pre-commit-config.y*ml",
    ".pre-commit-hooks.y*ml", "lefthook*.y*ml", ".lefthook*", "lefthook*.toml", "lefthook*.json", ".overcommit.y*ml",
    ".lintstagedrc*", "lint-staged.config.*", "*simple-git-hooks.*", ".gitmodules", ".gitconfig",
    "applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit",
    "prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push",
    "post-rewrite", "pre-auto-gc", "post-index-change", "reference-transaction", "push-to-checkout",
    "pre-receive", "post-receive", "proc-receive", "post-update", "sendemail-validate", "fsmonitor-watchman*",
)  # fmt: skip
_FOLDERS = (
    ".envrc", ".autoenv*", ".rvmrc", ".tool-versions", ".mise", "mise*.toml", ".mise*.toml", ".config/mise*",
    ".rtx*.toml", "devbox.json", "devenv.nix", ".devcontainer", ".devcontainer.json", ".gitpod.y*ml", ".idx",
    ".replit", ".vscode", "*.code-workspace", ".idea", "*.ipr", ".fleet", ".zed", ".nova", ".vs",
    "*.sublime-project", ".dir-locals*.el", ".exrc", ".vimrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".gdbinit",
    ".lldbinit", ".yarnrc.yml", ".cargo",
)  # fmt: skip
_AGENTS = (
    ".claude", ".codex", ".gemini", ".agents", ".opencode", "opencode.json*", ".mcp.json", ".cursor", ".windsurf",
    ".continue", ".kiro", ".roo", ".amazonq", ".aider.conf.y*ml",
)  # fmt: skip
AUTOMATION = (*_CI, *_HOOKS, *_FOLDERS, *_AGENTS)
"""Run elsewhere, or here by themselves when a person commits, enters a folder or opens an editor or agent."""
GUARDED = (*SETTINGS, *AUTOMATION)
_LONGEST = 1 + max(pattern.count("/") for pattern in GUARDED)
_LONGER = tuple(tuple(pattern.split("/")) for pattern in GUARDED if "/" in pattern)
GIT_SETTINGS = ".gitconfig"
"""Guarded, and so is what it includes."""
ATTRIBUTES = ".gitattributes"
"""Guarded where it names drivers, which are programs; see `drivers_changed`."""

_Node = dict[str, "_Node"]
_END = "/"
"""No name: here a path ends."""
_SHORT = re.compile(r"([^.~]{1,6})~[0-9]{1,5}(?:\.([^.]{1,3}))?")
_HASHED = re.compile(r"[0-9a-f]{4}")
_DIFFS = (
    "ada|bash|bibtex|cpp|csharp|css|dts|elixir|fortran|fountain|golang|html|ini|java|kotlin|markdown|matlab|"
    "objc|pascal|perl|php|python|ruby|rust|scheme|tex"
)
_HARMLESS_ATTRIBUTE = re.compile(
    r"[-!]?(text|eol|crlf|diff|merge|binary|whitespace|ident|delta|export-ignore|linguist-[\w-]+|gitlab-generated)"
    r"|text=auto|eol=(lf|crlf)|crlf=input|merge=(union|binary|text)|diff=(" + _DIFFS + r")"
    r"|whitespace=[\w,=-]+|linguist-[\w-]+=[\w .+#-]+|working-tree-encoding=[\w-]+|conflict-marker-size=\d+",
)
_ATTRIBUTE_LINE = re.compile(r'\s*(?:"(?:[^"\\]|\\.)*"|[^\s"]\S*)((?:\s+\S+)*)\s*')


class FurtherPaths:
    """Paths from the root on that are guarded beside the list, each with all beneath it."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._paths: dict[str, None] = {}
        self._tree: _Node = {}
        for path in paths:
            self.add(path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def add(self, path: str) -> None:
        names = _names_of(path)
        if not names or path in self._paths:
            return
        self._paths[path] = None
        node = self._tree
        for name in names:
            node = node.setdefault(name, {})
        node[_END] = {}

    def cover(self, path: str) -> bool:
        """Whether it is one of them or lies beneath one, or does for some file system."""
        node = self._tree
        for name in _names_of(path):
            if name not in node:
                return False
            node = node[name]
            if _END in node:
                return True
        return False

    def lie_beneath(self, path: str) -> bool:
        """Whether one of them lies beneath this one, or does for some file system."""
        node = self._tree
        for name in _names_of(path):
            if name not in node:
                return False
            node = node[name]
        return any(name != _END for name in node)


def is_guarded(path: str, further: FurtherPaths | None = None) -> bool:
    """Whether a path is guarded, or is for some file system."""
    names = _names_of(path)
    if any(_is_guarded_name(name) for name in names):
        return True
    for start, name in enumerate(names):
        if _begins_pattern(name):
            following = names[start : start + _LONGEST]
            if any(len(p) <= len(following) and all(map(_fits, following, p)) for p in _LONGER):
                return True
    return further is not None and further.cover(path)


def is_above_guarded(path: str) -> bool:
    """Whether a guarded pattern of several names begins with the last of this path: a link there leads to another."""
    names = _names_of(path)[-_LONGEST:]
    return any(
        len(names) >= count and all(map(_fits, names[-count:], pattern))
        for pattern in _LONGER
        for count in range(1, len(pattern))
    )


def is_git_settings(path: str) -> bool:
    """Whether it has the name of a file of git settings."""
    return _fits(comparable_parts(path)[-1], GIT_SETTINGS)


def _names_of(path: str) -> list[str]:
    return [name for name in comparable_parts(path) if name]


def is_attributes(path: str) -> bool:
    """Whether git reads attributes from a file of this name, on some file system."""
    return _fits(comparable_parts(path)[-1], ATTRIBUTES)


def drivers_changed(old: str, new: str) -> bool:
    """Whether two versions of a file of attributes differ in more than attributes that run nothing."""
    before, after = _driver_lines(old), _driver_lines(new)
    return before != after


def zone_globs(patterns: Iterable[str]) -> list[str]:
    """The patterns as globs of a policy's zone. One of several names also from the top on: folders above are known then."""
    globs = [(pattern, f"**/{pattern}") for pattern in patterns]
    return [glob for pair in globs for glob in (pair if "/" in pair[0] else pair[1:])]


@lru_cache(4096)
def _begins_pattern(name: str) -> bool:
    return any(_fits(name, pattern[0]) for pattern in _LONGER)


@lru_cache(4096)
def _is_guarded_name(name: str) -> bool:
    if _names().fullmatch(name):
        return True
    return "~" in name and any(_fits(name, pattern) for pattern in GUARDED if "/" not in pattern)


@cache
def _names() -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern) for pattern in GUARDED if "/" not in pattern))


def _fits(name: str, pattern: str) -> bool:
    if fnmatchcase(name, pattern):
        return True
    if "~" not in name:
        return False
    short = _SHORT.fullmatch(name)
    return short is not None and any(_shortened(short, each) for each in _stems(pattern))


def _stems(pattern: str) -> Iterator[tuple[str, str]]:
    """Base and ending of the names that a pattern stands for, as far as both begin with plain characters."""
    base, _, ending = pattern.lstrip(".").rpartition(".")
    base, ending = (base, ending) if base else (ending, "")
    plain = re.split(r"[*?\[]", base.replace(".", ""))[0]
    if plain:
        yield plain, re.split(r"[*?\[]", ending)[0]


def _shortened(short: re.Match[str], stem: tuple[str, str]) -> bool:
    """Whether Windows may have shortened the name to this one: `PODIUM~1.YAM`, or `PO1A2B~1.YAM`."""
    base, ending = stem
    first = short[1]
    hashed = len(first) == 6 and first[:2] == base[:2] and _HASHED.fullmatch(first[2:])
    if first != base[:6] and not hashed:
        return False
    return (short[2] or "")[: len(ending[:3])] == ending[:3]


def _driver_lines(text: str) -> list[str]:
    """Lines that name programs, in their order: of two for one path, the last counts. Git ends lines at LF alone."""
    return [line for line in text.split("\n") if not _runs_nothing(line.removesuffix("\r"))]


def _runs_nothing(line: str) -> bool:
    if not line.isprintable() and not line.replace("\t", " ").isprintable():
        return False
    if not line.strip() or line.lstrip().startswith("#"):
        return True
    matched = _ATTRIBUTE_LINE.fullmatch(line)
    if matched is None or line.lstrip().startswith("[attr]"):
        return False
    return all(_HARMLESS_ATTRIBUTE.fullmatch(word) for word in matched[1].split())
