"""How Gemini CLI is logged in: by a key, by Vertex AI, or with a copy of the person's own login."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from podium.agents.headless.gemini.ending import LOGIN_HINT
from podium.agents.headless.gemini.layout import CONFIG, Selected
from podium.agents.headless.home import Login
from podium.agents.kit import AgentKit
from podium.domain.errors import AgentNotLoggedIn

TOKENS = "oauth_creds.json"
_REFRESHED = ("access_token", "refresh_token", "id_token", "expiry_date")


def logins_for(env: Mapping[str, str], kit: AgentKit) -> tuple[Login, ...]:
    """The files to copy; none when the settings themselves log it in."""
    configured = kit.environ.get("GEMINI_CLI_HOME")
    return logins_in(Path(configured) if configured else kit.user_home, env)


def logins_in(home: Path, env: Mapping[str, str]) -> tuple[Login, ...]:
    """The files of a person's home to copy; none when the settings themselves log it in."""
    if _named_in(env) is not None:
        return ()
    folder = home / CONFIG
    return (
        Login(folder / TOKENS, f"{CONFIG}/{TOKENS}", _REFRESHED),
        Login(folder / "google_accounts.json", f"{CONFIG}/google_accounts.json"),
    )


def selected_login(agent: str, env: Mapping[str, str], copied: Collection[str]) -> Selected:
    """The way to log in, with the files that were copied. Raises `AgentNotLoggedIn` when there is none, before anything starts."""
    named = _named_in(env)
    if named is not None:
        return named
    if f"{CONFIG}/{TOKENS}" in copied:
        return "oauth-personal"
    raise AgentNotLoggedIn(f"agent {agent!r} has neither a key nor a login; {LOGIN_HINT}")


def _named_in(env: Mapping[str, str]) -> Selected | None:
    if env.get("GOOGLE_GENAI_USE_VERTEXAI", "").lower() == "true":
        return "vertex-ai"
    return "gemini-api-key" if env.get("GEMINI_API_KEY") else None
