"""Whether a playbook asks for nothing that the plugin's profile does not give."""

from __future__ import annotations

from podium.domain.playbooks import PlaybookHead, Profile

FROM_PROFILE = "@"
"""`@test` among the success criteria is the profile's own command of that name."""


def disagreements(profile: Profile, head: PlaybookHead) -> list[tuple[tuple[str | int, ...], str]]:
    """What of the playbook's front matter cannot be had with this profile, each with its key."""
    faults: list[tuple[tuple[str | int, ...], str]] = []
    for at, tool in enumerate(head.allowed_tools or ()):
        if profile.allowed_tools is not None and tool not in profile.allowed_tools:
            allowed = ", ".join(profile.allowed_tools) or "none"
            faults.append(
                (
                    ("allowed_tools", at),
                    f"the profile does not allow tool {tool!r}; it allows: {allowed}",
                )
            )
    given = profile.commands.model_dump(exclude_none=True)
    for at, command in enumerate(head.success):
        if command.startswith(FROM_PROFILE) and command[1:] not in given:
            known = ", ".join(FROM_PROFILE + name for name in given) or "none"
            faults.append(
                (("success", at), f"the profile has no command {command!r}; it has: {known}")
            )
    return faults


def tools_of(profile: Profile, head: PlaybookHead) -> tuple[str, ...] | None:
    """The tools that the agent may be given. None: neither file says anything about it."""
    return profile.allowed_tools if head.allowed_tools is None else head.allowed_tools


def commands_of(profile: Profile, head: PlaybookHead) -> tuple[str, ...]:
    """The success criteria as commands; what the profile lacks is left out."""
    given = profile.commands.model_dump(exclude_none=True)
    written = (
        given.get(command[1:]) if command.startswith(FROM_PROFILE) else command
        for command in head.success
    )
    return tuple(command for command in written if command)
