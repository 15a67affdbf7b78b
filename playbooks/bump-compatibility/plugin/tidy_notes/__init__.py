"""Sorts the notes of a notebook by their headings."""


def tidy(notes: list[str]) -> list[str]:
    """The notes in the order of their headings; those without one come last."""
    return sorted(notes, key=lambda note: (not _heading(note), _heading(note)))


def _heading(note: str) -> str:
    first = note.splitlines()[0] if note else ""
    return first.removeprefix("#").strip().lower() if first.startswith("#") else ""
