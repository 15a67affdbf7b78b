"""Counts the words of a note."""

from notebox import Host
from word_count.reading import ignored_words, separators


def count(host: Host, note: str) -> int:
    """How many words the note has, without those that the person wants ignored."""
    ignored = ignored_words(host)
    for mark in separators(host):
        note = note.replace(mark, " ")
    return sum(word.lower() not in ignored for word in note.split())


def label(host: Host, note: str) -> str:
    unit = host.get_setting("word_count.unit") or "words"
    return f"{count(host, note)} {unit}"
