"""Who commits: Gemini CLI hides the person's git settings from the commands it runs."""

from __future__ import annotations

from collections.abc import Mapping

from podium.agents.kit import AgentKit
from podium.domain.errors import PodiumError
from podium.domain.launching import ProcessLimits, Spawn

_SECONDS = 10.0
_NAMES = {"user.name": "GIT_AUTHOR_NAME", "user.email": "GIT_AUTHOR_EMAIL"}


async def identity_for(kit: AgentKit, env: Mapping[str, str], workspace: str) -> dict[str, str]:
    """Variables that tell git's own name and address of the person, or those that `env` names.

    They are settings, not GIT_AUTHOR_NAME and the like: the CLI takes those for secrets.
    """
    found = {} if all(name in env for name in _NAMES.values()) else await _asked(kit, workspace)
    found.update({key: env[name] for key, name in _NAMES.items() if env.get(name)})
    given = env.get("GIT_CONFIG_COUNT", "0")
    first = int(given) if given.isdecimal() else 0
    settings: dict[str, str] = {}
    for number, (key, value) in enumerate(sorted(found.items()), start=first):
        settings[f"GIT_CONFIG_KEY_{number}"] = key
        settings[f"GIT_CONFIG_VALUE_{number}"] = value
    return {**settings, "GIT_CONFIG_COUNT": str(first + len(found))} if found else {}


async def _asked(kit: AgentKit, workspace: str) -> dict[str, str]:
    """What git itself would take. Nothing when there is no git, or no name."""
    try:
        ended = await kit.launcher.run(
            Spawn(
                argv=("git", "config", "--null", "--get-regexp", r"^user\.(name|email)$"),
                cwd=workspace,
                env={"HOME": str(kit.user_home), "GIT_CONFIG_NOSYSTEM": "1"},
                limits=ProcessLimits(seconds=_SECONDS, output_bytes=10_000),
            )
        )
    except PodiumError:
        return {}
    pairs = [entry.partition("\n") for entry in ended.stdout.decode(errors="replace").split("\0")]
    return {key: value for key, _, value in pairs if key in _NAMES and value}
