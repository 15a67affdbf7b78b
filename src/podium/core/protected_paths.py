"""Paths that no agent may write, and guarded files that need an approval: one list for policy, confinement and import gate.

Names are compared as the most forgiving file system would: a commit made on one machine is checked out on others, where
`.Podium`, `PODIUM~1` or a name with invisible characters is the same folder.

One list for the policy (writing them needs a person), for the fences around folders, and for the import gate.
A pattern is a path of one or more names, at any depth; it covers what it names and all beneath it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase, translate
from functools import cache, lru_cache
from typing import NamedTuple

GIT_DIR = ".git"
STATE_DIR = ".podium"


class ProtectedName(NamedTuple):
    """A file or folder that is protected at any depth, with everything in it."""

    name: str
    zone: str
    """The policy's zone for it."""
    readable: bool
    what: str


PROTECTED_NAMES = (
    ProtectedName(GIT_DIR, "git-folder", True, "a git directory"),
    ProtectedName(STATE_DIR, "podium-state", False, "Podium's own state"),
)

_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Default-ignorable code points, which HFS+ and case-folding ext4 skip when they compare names."""
_SEPARATORS = re.compile(r"[/\\]")
_DOTTED_I = "i\u0307"
_SHORT_NAME = re.compile(r"([^.~]{1,6})~([0-9]{1,6})(?:\.([^.]{1,3}))?")
_DOS_NAME = re.compile(r"[^. +,;=\[\]]{1,8}(?:\.[^. +,;=\[\]]{1,3})?")
_NOT_IN_DOS_NAMES = re.compile(r"[+,;=\[\]]")


@lru_cache(maxsize=65_536)
def comparable(name: str) -> str:
    """The name as the most forgiving of file systems compares it, without NTFS streams and ignored endings."""
    folded = name.lower()
    if not name.isascii():
        folded = _IGNORABLE.sub("", unicodedata.normalize("NFKC", name)).upper().casefold()
        folded = unicodedata.normalize("NFKC", folded).replace(_DOTTED_I, "i")
    return folded.partition(":")[0].rstrip(". ") or folded


def comparable_parts(path: str) -> tuple[str, ...]:
    """The parts of a path, each comparable. A backslash separates them too, as on Windows."""
    if not path.isascii():
        path = unicodedata.normalize("NFKC", path)  # some characters become separators
    return tuple(comparable(part) for part in _SEPARATORS.split(path))


def is_spelling_of(name: str, protected: str) -> bool:
    """Tell whether some file system finds `protected` under this name."""
    return any(_same(part, comparable(protected)) for part in comparable_parts(name))


def protected_name(name: str) -> str:
    """The protected name that some file system takes this one for; empty when there is none."""
    return next(
        (protected.name for protected in PROTECTED_NAMES if is_spelling_of(name, protected.name)),
        "",
    )


def protected_in(path: str) -> ProtectedName | None:
    """The first protected name among the parts of a path, at whatever depth."""
    if not _may_hold_protected(path):
        return None
    for part in comparable_parts(path):
        for protected in PROTECTED_NAMES:
            if _same(part, protected.name):
                return protected
    return None


def plain_spelling(path: str) -> str:
    """The path with every spelling of a protected name replaced by the name itself; others stay as they are."""
    if protected_in(path) is None:
        return path
    if not path.isascii():
        path = unicodedata.normalize("NFKC", path)
    pieces = (
        protected_name(part) or part
        for piece in path.split("/")
        for part in (piece.split("\\") if protected_in(piece) else (piece,))
    )
    return "/".join(pieces)


def zone_holding(path: str, zones: Iterable[str]) -> str:
    """The zone that a path is, lies in, or would replace by standing above it; empty when there is none."""
    parts = comparable_parts(path)
    return next((zone for zone in zones if _meet(parts, comparable_parts(zone))), "")


def lies_in_zone(path: str, zones: Iterable[str]) -> bool:
    """Tell whether a path is one of the zones or lies in one."""
    parts = comparable_parts(path)
    inner = (zone for zone in map(comparable_parts, zones) if len(zone) <= len(parts))
    return any(_meet(parts, zone) for zone in inner)


def protection_of(path: str, zones: Iterable[str] = ()) -> str:
    """The protected name or forbidden zone that a path belongs to; empty when it is free."""
    protected = protected_in(path)
    return protected.name if protected is not None else zone_holding(path, zones)


def _may_hold_protected(path: str) -> bool:
    """A quick look: most paths have neither the names nor anything that could hide them."""
    lower = path.lower()
    return not path.isascii() or "~" in path or ".git" in lower or ".podium" in lower


def _meet(parts: Sequence[str], zone: Sequence[str]) -> bool:
    return all(_same(part, other) for part, other in zip(parts, zone, strict=False))


def _same(part: str, protected: str) -> bool:
    return part == protected or ("~" in part and _is_short_name(part, protected))


@lru_cache(maxsize=4096)
def _is_short_name(part: str, protected: str) -> bool:
    """Tell whether NTFS may have made this 8.3 name for the protected one."""
    match = _SHORT_NAME.fullmatch(part)
    if match is None or not protected.isascii() or _DOS_NAME.fullmatch(protected):
        return False
    plain = _NOT_IN_DOS_NAMES.sub("_", protected.lstrip(".").replace(" ", ""))
    base, dot, extension = plain.rpartition(".")
    base = (base if dot else extension).replace(".", "")
    stem, number, ending = match.groups()
    if (ending or "") != (extension[:3] if dot else ""):
        return False
    width = 7 - len(number)
    return stem in (base[:6][:width], f"{base[:2]}{_short_name_hash(protected):04x}"[:width])


def _short_name_hash(name: str) -> int:
    """The checksum that NTFS puts into the short name once the first four are taken."""
    checksum = 0
    for char in name:
        checksum = (checksum * 0x25 + ord(char)) & 0xFFFF
    mixed = (checksum * 314159269) & 0xFFFFFFFF
    if mixed & 0x80000000:
        mixed = -mixed & 0xFFFFFFFF
    mixed -= ((mixed * 1152921497) >> 60) * 1000000007
    low = mixed & 0xFFFF
    return (low & 0xF000) >> 12 | (low & 0x0F00) >> 4 | (low & 0x00F0) << 4 | (low & 0x000F) << 12


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
_MAX_LENGTH = 1 + max(pattern.count("/") for pattern in GUARDED)
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


class ExtraProtectedPaths:
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
        """Tell whether it is one of them or lies beneath one, or does for some file system."""
        node = self._tree
        for name in _names_of(path):
            if name not in node:
                return False
            node = node[name]
            if _END in node:
                return True
        return False

    def lie_below(self, path: str) -> bool:
        """Tell whether one of them lies beneath this one, or does for some file system."""
        node = self._tree
        for name in _names_of(path):
            if name not in node:
                return False
            node = node[name]
        return any(name != _END for name in node)


def is_guarded(path: str, further: ExtraProtectedPaths | None = None) -> bool:
    """Tell whether a path is guarded, or is for some file system."""
    names = _names_of(path)
    if any(_is_guarded_name(name) for name in names):
        return True
    for start, name in enumerate(names):
        if _begins_pattern(name):
            following = names[start : start + _MAX_LENGTH]
            if any(len(p) <= len(following) and all(map(_fits, following, p)) for p in _LONGER):
                return True
    return further is not None and further.cover(path)


def is_above_guarded(path: str) -> bool:
    """Tell whether a guarded pattern of several names begins with the last of this path: a link there leads to another."""
    names = _names_of(path)[-_MAX_LENGTH:]
    return any(
        len(names) >= count and all(map(_fits, names[-count:], pattern))
        for pattern in _LONGER
        for count in range(1, len(pattern))
    )


def is_git_settings(path: str) -> bool:
    """Tell whether it has the name of a file of git settings."""
    return _fits(comparable_parts(path)[-1], GIT_SETTINGS)


def _names_of(path: str) -> list[str]:
    return [name for name in comparable_parts(path) if name]


def is_attributes(path: str) -> bool:
    """Tell whether git reads attributes from a file of this name, on some file system."""
    return _fits(comparable_parts(path)[-1], ATTRIBUTES)


def drivers_changed(old: str, new: str) -> bool:
    """Tell whether two versions of a file of attributes differ in more than attributes that run nothing."""
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
    return short is not None and any(_shortened(short, stem) for stem in _stems(pattern))


def _stems(pattern: str) -> Iterator[tuple[str, str]]:
    """Base and ending of the names that a pattern stands for, as far as both begin with plain characters."""
    base, _, ending = pattern.lstrip(".").rpartition(".")
    base, ending = (base, ending) if base else (ending, "")
    plain = re.split(r"[*?\[]", base.replace(".", ""))[0]
    if plain:
        yield plain, re.split(r"[*?\[]", ending)[0]


def _shortened(short: re.Match[str], stem: tuple[str, str]) -> bool:
    """Tell whether Windows may have shortened the name to this one: `PODIUM~1.YAM`, or `PO1A2B~1.YAM`."""
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
    return all(_HARMLESS_ATTRIBUTE.fullmatch(attribute) for attribute in matched[1].split())
