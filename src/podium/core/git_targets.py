"""The repositories that a git command is about, read from its words alone.

Loaded by the guard of every confined process tree, so it imports nothing.
"""

from __future__ import annotations

LOCATION_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
)
"""Variables that lead git to another repository than the folder it runs in."""
_LOCATION_OPTIONS = ("--git-dir", "--work-tree")
_OPTIONS_WITH_VALUE = ("--namespace", "--config-env", "--super-prefix", "--attr-source")
_FLAGS = (
    *("--no-pager", "-P", "-p", "--paginate", "--bare", "--no-optional-locks", "--no-replace-objects"),
    *("--literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs", "--icase-pathspecs", "--no-advice"),
    *("--no-lazy-fetch",),
)  # fmt: skip
_VALUED: dict[str, tuple[str, ...]] = {
    "init": ("-b", "--initial-branch", "--template", "--separate-git-dir", "--object-format"),
    "clone": (
        *("-b", "--branch", "-o", "--origin", "-c", "--config", "--depth", "-j", "--jobs", "-u"),
        *("--upload-pack", "--template", "--separate-git-dir", "--reference", "--reference-if-able"),
        *("--shallow-since", "--shallow-exclude", "--server-option", "--filter", "--bundle-uri"),
    ),
    "push": ("-o", "--push-option", "--repo", "--receive-pack", "--exec"),
    "fetch": ("--depth", "--upload-pack", "-o", "--server-option", "-j", "--jobs", "--refmap"),
    "pull": ("--depth", "--upload-pack", "-s", "--strategy", "-X", "--strategy-option", "-j"),
    "worktree": ("-b", "-B", "--reason"),
}  # fmt: skip
"""Options after the subcommand whose value is the next word."""
_REACHING = ("clone", "fetch", "pull", "push", "ls-remote", "fetch-pack", "send-pack")
_CHANGED_BY_FIRST_OPERAND = ("push", "send-pack", "receive-pack")


class GitTarget:
    """A git command, parted."""

    def __init__(
        self,
        folders: list[str],
        locations: list[str],
        settings: list[str],
        name: str,
        arguments: list[str],
    ) -> None:
        self.folders = folders
        """Values of `-C`, in order: each is taken from the one before it."""
        self.locations = locations
        """Values of options that name a git directory or worktree."""
        self.settings = settings
        """Values of `-c`."""
        self.name = name
        self.arguments = arguments
        """All behind the subcommand's name."""

    @property
    def makes_repository(self) -> bool:
        """Tell whether it makes a repository in a folder that it names: the one it runs in does not matter then."""
        least = {"init": 1, "clone": 2}.get(self.name, 0)
        return bool(least) and len(self._plain()) >= least

    def changed(self) -> list[str]:
        """Words that name a repository, or a worktree of one, that the command makes or changes."""
        plain, named = self._plain(), self._values("--separate-git-dir")
        if self.name == "init":
            named += plain[:1] or ["."]
        elif self.name == "clone":
            named += plain[1:2] or ["."]
        elif self.name in _CHANGED_BY_FIRST_OPERAND:
            named += plain[:1]
        elif self.name == "worktree":
            named += plain[1:]
        elif self.name == "config":
            named += self._values("--file") + self._values("-f")
        return named

    def network_address(self) -> str:
        """The address of another machine that it would talk to, as far as its words show; empty when there is none."""
        if self.name in _REACHING:
            addresses = self._plain()[:1]
        elif self.name == "submodule":
            addresses = self.arguments
        else:
            addresses = self._values("--remote") if self.name == "archive" else []
        return next((address for address in addresses if is_network_address(address)), "")

    def _plain(self) -> list[str]:
        plain: list[str] = []
        valued = _VALUED.get(self.name, ())
        arguments = iter(self.arguments)
        for argument in arguments:
            if argument == "--":
                plain += arguments
            elif argument in valued:
                next(arguments, None)
            elif not argument.startswith("-") or argument == "-":
                plain.append(argument)
        return plain

    def _values(self, option: str) -> list[str]:
        following = [
            value
            for argument, value in zip(self.arguments, self.arguments[1:], strict=False)
            if argument == option
        ]
        joined = [
            argument[len(option) + 1 :]
            for argument in self.arguments
            if argument.startswith(f"{option}=")
        ]
        return following + joined


def read_target(arguments: list[str]) -> GitTarget | None:
    """Part the words after `git`. None for options before the subcommand that are not known."""
    folders: list[str] = []
    locations: list[str] = []
    settings: list[str] = []
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        option, equals, value = arguments[at].partition("=")
        following = arguments[at + 1] if at + 1 < len(arguments) else ""
        if option == "-C":
            folders.append(following)
        elif option == "-c":
            settings.append(following)
        elif option in _LOCATION_OPTIONS:
            locations.append(value if equals else following)
        elif option not in _OPTIONS_WITH_VALUE and arguments[at] not in _FLAGS:
            return None
        valued = option in (*_OPTIONS_WITH_VALUE, *_LOCATION_OPTIONS) and not equals
        at += 2 if valued or option in ("-C", "-c") else 1
    name = arguments[at] if at < len(arguments) else ""
    return GitTarget(folders, locations, settings, name, list(arguments[at + 1 :]))


def is_network_address(address: str) -> bool:
    """Tell whether git would reach another machine, or start a helper, for this address."""
    if "://" in address:
        return not address.lower().startswith("file://")
    head, colon, rest = address.partition(":")
    return bool(colon) and "/" not in head and (rest.startswith(":") or len(head) > 1)


def local_path(address: str) -> str:
    """The path behind a local address."""
    return address[len("file://") :] if address.lower().startswith("file://") else address
