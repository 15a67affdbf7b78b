"""Environment variables a command sets for itself: which are harmless, which change what runs."""

from __future__ import annotations

from typing import Literal

from podium.gate.programs import names

Weight = Literal["harmless", "unknown", "dangerous"]

_HARMLESS = names(
    """
    CGO_ENABLED CI CLICOLOR CLICOLOR_FORCE COLUMNS DEBUG FORCE_COLOR GOARCH GOOS
    HYPOTHESIS_PROFILE LANG LANGUAGE LINES NODE_ENV NO_COLOR PYTEST_DISABLE_PLUGIN_AUTOLOAD
    PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONIOENCODING PYTHONUNBUFFERED PYTHONUTF8
    RUST_BACKTRACE TERM TZ VERBOSE
    """
)
_HARMLESS_VALUES = frozenset(
    {
        "PAGER=cat",
        "GIT_PAGER=cat",
        "GIT_PAGER=",
        "GIT_EDITOR=true",
        "GIT_EDITOR=:",
        "GIT_OPTIONAL_LOCKS=0",
        "GIT_TERMINAL_PROMPT=0",
    }
)
_DANGEROUS = names(
    """
    BASHOPTS BROWSER CDPATH DOCKER_HOST EDITOR ENV FPATH GCONV_PATH HOME HOSTALIASES IFS KUBECONFIG
    LESSCLOSE LESSOPEN LOCPATH MANPAGER MANROFFOPT OLDPWD PAGER PATH PROMPT_COMMAND PS4 PWD RSYNC_RSH
    SHELL SHELLOPTS SUDO_ASKPASS TERMINFO TMUX VISUAL XDG_CONFIG_DIRS XDG_CONFIG_HOME ZDOTDIR
    """
)
"""Each changes which programs run, in a shell or in git."""
_DANGEROUS_BEGINNINGS = ("GIT_", "LD_", "DYLD_", "BASH_", "SSH_")
_OF_LANGUAGES = names(
    """
    _JAVA_OPTIONS CLASSPATH GNUMAKEFLAGS GOFLAGS GOROOT JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS MAKEFILES
    MAKEFLAGS NODE_OPTIONS NODE_PATH PERL5DB PERL5LIB PERL5OPT PYTEST_ADDOPTS PYTEST_PLUGINS
    PYTHONBREAKPOINT PYTHONHOME PYTHONINSPECT PYTHONPATH PYTHONSTARTUP PYTHONUSERBASE
    PYTHONWARNINGS RIPGREP_CONFIG_PATH RUBYLIB RUBYOPT RUSTC RUSTC_WRAPPER TAR_OPTIONS
    """
)
"""Each changes what a language's own tools load: no more than a script of the workspace may do."""
_OF_LANGUAGES_BEGINNINGS = ("NPM_CONFIG_", "PIP_", "CARGO_")


def weigh_variable(name: str, value: str, *, confined: bool = False) -> Weight:
    """Judge `NAME=value`. What is not known to be harmless is at least `unknown`.

    In a confined run, where a script of the workspace may run anyway, so may what only changes a
    language's tools.
    """
    if "secret://" not in value and (
        name in _HARMLESS or name.startswith("LC_") or f"{name}={value}" in _HARMLESS_VALUES
    ):
        return "harmless"
    upper = name.upper()
    if upper in _DANGEROUS or upper.startswith(_DANGEROUS_BEGINNINGS):
        return "dangerous"
    if upper in _OF_LANGUAGES or upper.startswith(_OF_LANGUAGES_BEGINNINGS):
        return "unknown" if confined else "dangerous"
    return "unknown"
