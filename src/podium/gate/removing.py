"""Commands that remove or change whole folders, judged by the paths they would reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podium.domain.gating import Access, BuiltInRule
from podium.gate import programs
from podium.gate.command_paths import Standing, removal, unknown_place
from podium.gate.places import Touch
from podium.gate.refusing import Refused
from podium.gate.shell import SimpleCommand
from podium.gate.shell.finding import found_name, places

_WRITING_ACTIONS = ("-fprint", "-fls")


def removes_folders(command: SimpleCommand) -> str:
    """The word with which a command goes through whole folders; empty when it does not."""
    if command.basename not in programs.RECURSIVE:
        return ""
    for word in command.argv[1:]:
        if word == "--":
            break
        bundled = word.startswith("-") and not word.startswith("--") and set("rR") & set(word)
        if command.basename == "rm":
            recursive = bundled or word.startswith(("--r", "--no-preserve-root"))
        else:
            recursive = (bundled and "R" in word) or word.startswith("--rec")
        if recursive:
            return word
    return ""


def finds_and_removes(command: SimpleCommand) -> bool:
    return "-delete" in command.argv


def removed_by_find(command: SimpleCommand, standing: Standing) -> Iterator[Touch]:
    """What `find` itself removes and writes: all it searches, or what its tests let through."""
    words = command.argv
    for at, word in enumerate(words[:-1]):
        if word.startswith(_WRITING_ACTIONS) and not unknown_place(words[at + 1]):
            yield standing.touch(words[at + 1], Access.WRITE)
    if finds_and_removes(command):
        name = found_name(words)
        for place in places(words):
            if not unknown_place(place):
                yield removal(f"{place.rstrip('/')}/{name}" if name else place, standing)


def refuse_ruin(command: SimpleCommand, touches: Sequence[Touch], standing: Standing) -> None:
    """Raise `Refused` when the whole workspace, or nobody knows what, would be removed or changed."""
    recursive = removes_folders(command)
    if not recursive and command.program != "find" and not any(t.changes for t in touches):
        return
    if recursive and command.basename != "rm":
        touches = [
            standing.touch(word, Access.DELETE) for word in command.argv[2:] if word[:1] != "-"
        ]
    searched = (
        places(command.argv) if command.program == "find" and finds_and_removes(command) else ()
    )
    unknown = [word for word in command.argv[1:] if recursive and unknown_place(word)]
    if unknown or any(map(unknown_place, searched)):
        raise Refused(
            BuiltInRule.DESTRUCTIVE_COMMAND,
            f"what {command.basename} {recursive or '-delete'} would go through is only known when it runs; "
            "write the folder out",
        )
    if recursive and not standing.known and any(_relative(word) for word in command.argv[1:]):
        raise Refused(
            BuiltInRule.DESTRUCTIVE_COMMAND,
            f"where {command.basename} {recursive} would run is not known; write the cd out",
        )
    for touch in touches:
        if touch.access is Access.DELETE and any(
            _above(path, standing.root) for path in touch.paths
        ):
            raise Refused(
                BuiltInRule.DESTRUCTIVE_COMMAND,
                f"{command.basename} would take the whole workspace; name what is to go",
            )


def _relative(word: str) -> bool:
    return not word.startswith(("-", "/", "~"))


def _above(path: str, root: str) -> bool:
    return bool(root) and (path == root or root.startswith(path.rstrip("/") + "/"))
