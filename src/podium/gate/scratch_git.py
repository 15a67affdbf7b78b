"""Git on scratch repositories: outside of the workspace a confined run may do with git what it likes.

Such a repository is the run's own and goes with it. The workspace's own has a private git directory, which is the boundary; what
leads back there, and what would reach another machine, is judged as ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podium.domain.gating import Access
from podium.domain.git_targets import GitTarget, is_network_address, local_path, read_target
from podium.gate import git_words as words
from podium.gate.command_paths import Standing, path_parts
from podium.gate.confines import is_private
from podium.gate.git import check_options, check_setting, without_messages
from podium.gate.places import Touch, relative_to
from podium.gate.programs import names
from podium.gate.shell import COMPUTED

_COMMANDS = (
    words.READING
    | words.WRITING
    | words.CONFINED_WRITING
    | words.LEAVING
    | words.REMOTE
    | names(
        """
        init tag config symbolic-ref reflog notes replace update-ref update-index read-tree write-tree
        commit-tree hash-object mktree mktag bundle am format-patch archive clean gc repack prune
        prune-packed pack-refs fsck rerere sparse-checkout checkout-index unpack-objects index-pack
        pack-objects verify-commit verify-pack verify-tag fast-export fast-import show-index stripspace
        interpret-trailers bugreport
        """
    )
) - names("send-email request-pull")
_RUNNING = {"submodule": "foreach", "bisect": "run", "rebase": "--exec"}
"""Words with which a command runs others that these words do not show."""


def scratch_target(
    arguments: Sequence[str], standing: Standing
) -> tuple[GitTarget, Standing] | None:
    """The command and where it runs, if all that it is about lies in places that are the run's own; else None."""
    target = read_target(list(arguments))
    if target is None or target.name not in _COMMANDS or not standing.known:
        return None
    where = standing
    for folder in target.folders:
        if _unknown(folder):
            return None
        where = Standing(where.root, where.touch(folder, None).paths)
    about = [*target.locations, *target.changed()]
    about += [] if target.makes_repository else ["."]
    if not all(_is_scratch(local_path(word), where) for word in about):
        return None
    if target.network_address() or _RUNNING.get(target.name) in target.words:
        return None
    return target, where


def scratch_touches(target: GitTarget, where: Standing) -> Iterator[Touch]:
    """What the command reads and makes. Raises `Refused` for settings and options that start programs."""
    for setting in target.settings:
        check_setting(setting)
    check_options(target.name, [word for word in target.words if word.startswith("-")])
    made = target.changed()
    for word in made:
        yield where.touch(local_path(word), Access.WRITE)
    for word in without_messages(target.words):
        if word not in made and not is_network_address(word):
            parts = path_parts(local_path(word))
            yield from (where.touch(part, Access.READ) for part in parts)


def _is_scratch(word: str, standing: Standing) -> bool:
    if _unknown(word):
        return False
    paths = standing.touch(word, None).paths
    return all(relative_to(path, standing.root) is None and is_private(path) for path in paths)


def _unknown(word: str) -> bool:
    return word.startswith(COMPUTED)
