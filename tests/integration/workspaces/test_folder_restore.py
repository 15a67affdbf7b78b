"""Whatever is edited in whatever order, a restore gives the same tree, and can be taken back."""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.workspaces.folder_harness import RUN, folder_in, grounds_in, image, restored
from tests.soaking import examples

KINDS = ("write", "delete", "link", "folder", "rights", "move")
NAMES = ("a", "b", "c\n", "d/a", "d/b", "d/e/a", "e", "e/a", "ü")

Intents = list[tuple[str, str, int]]

intents = st.lists(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(NAMES), st.integers(0, 7)), max_size=12
)


@settings(max_examples=2, deadline=None)
@given(first=intents, then=intents)
def test_after_any_edits_a_restore_gives_the_same_tree(first: Intents, then: Intents) -> None:
    see_it_through(first, then)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@settings(max_examples=examples(300), deadline=None)
@given(first=intents, then=intents)
def test_after_very_many_edits_a_restore_gives_the_same_tree(first: Intents, then: Intents) -> None:
    see_it_through(first, then)


def see_it_through(first: Intents, then: Intents) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(story(Path(folder), first, then))


async def story(place: Path, first: Intents, then: Intents) -> None:
    root = folder_in(place, {"kept": b"k"})
    grounds = grounds_in(place)
    edit(root, first)
    before = image(root)
    ground = await grounds.prepare(RUN, str(root))
    edit(root, then)
    after = image(root)
    changes = await grounds.changes(ground, str(root))
    assert bool(changes.paths) == (before != after)
    await restored(grounds)
    assert image(root) == before
    if before != after:
        await restored(grounds, undo=True)
        assert image(root) == after


def edit(root: Path, edits: Intents) -> None:
    """Each wish as far as the folder allows it."""
    for kind, name, number in edits:
        try:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            _edit(root, kind, root / name, number)
        except OSError:
            continue


def _edit(root: Path, kind: str, place: Path, number: int) -> None:
    match kind:
        case "write":
            place.write_bytes(random.Random(number).randbytes(number * 100))
        case "delete":
            place.rmdir() if place.is_dir() else place.unlink()
        case "link":
            place.symlink_to(NAMES[number])
        case "folder":
            place.mkdir()
        case "rights" if not place.is_symlink():
            os.chmod(place, 0o700 | number)
        case "move":
            place.rename(root / NAMES[number])
