"""Skills: a way of solving something, written down so that later agents can use it.

The format is that of Agent Skills: a folder named like the skill, with a `SKILL.md` whose front
matter holds `name` and `description`. Gemini CLI, codex and others read them from `.agents/skills`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from podium.domain.errors import BadInput
from podium.flows.pipeline.plain_text import harmless, one_line
from podium.flows.pipeline.slugs import ascii_of

LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
MOST_STEPS = 50
LONGEST_STEP = 2_000

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_BETWEEN = re.compile(r"[^a-z0-9]+")


def skill_name(text: str) -> str:
    """A name that the format allows, made of the text's words. Never empty."""
    words = _BETWEEN.sub("-", ascii_of(text[:500])).strip("-")
    return words[:LONGEST_NAME].strip("-") or "skill"


def skill_candidate(
    name: str, description: str, when: str, steps: Sequence[str], source: str
) -> str:
    """The skill as the text of a `SKILL.md`.

    Raises `BadInput` for a name that the format does not allow, and for a skill that says nothing.
    """
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise BadInput(
            f"{name[:100]!r} is no name for a skill: up to {LONGEST_NAME} lower-case letters and digits, "
            f"with single dashes between them, such as {skill_name(name)!r}"
        )
    said = _description(description, when)
    done = [line for step in steps[:MOST_STEPS] if (line := harmless(step, LONGEST_STEP))]
    if not said or not done:
        raise BadInput(f"the skill {name!r} needs a description and at least one step")
    body = [
        f"# {name.replace('-', ' ').capitalize()}",
        harmless(description, LONGEST_DESCRIPTION),
        *([f"## When to use it\n\n{harmless(when, LONGEST_STEP)}"] if when.strip() else []),
        "## Steps\n\n"
        + "\n".join(f"{number}. {line}" for number, line in enumerate(done, start=1)),
    ]
    return _front_matter(name, said, source) + "\n\n".join(body) + "\n"


def _description(description: str, when: str) -> str:
    """What it does and when to use it: agents see nothing else before they choose a skill."""
    what = one_line(description, LONGEST_DESCRIPTION)
    use = one_line(when, LONGEST_DESCRIPTION)
    if not what or not use or use.casefold() in what.casefold():
        return what
    begins = use if re.match(r"(?i)use (?:this )?when\b", use) else f"Use when {_lower_first(use)}"
    return one_line(f"{what.rstrip('.')}. {begins}", LONGEST_DESCRIPTION)


def _lower_first(text: str) -> str:
    first = text.split(" ", 1)[0]
    trimmed = re.sub(r"(?i)^when\s+", "", text)
    return trimmed if first.isupper() or trimmed != text else text[:1].lower() + text[1:]


def _front_matter(name: str, description: str, source: str) -> str:
    # JSON's strings are YAML's: no words can end them or become something else than words.
    quoted = json.dumps(description, ensure_ascii=False)
    origin = json.dumps(one_line(source, 200), ensure_ascii=False)
    return f"---\nname: {name}\ndescription: {quoted}\nmetadata:\n  source: {origin}\n---\n\n"
