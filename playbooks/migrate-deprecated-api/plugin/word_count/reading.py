"""What the person has set."""

from notebox import Host


def ignored_words(host: Host) -> set[str]:
    read = host.get_setting
    return set(read("word_count.ignored").lower().split(","))


def separators(host: Host) -> str:
    return host.get_setting(
        "word_count.separators",
    )
