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
    _JAVA_OPTIONS BASHOPTS BROWSER CDPATH CLASSPATH DOCKER_HOST EDITOR ENV FPATH GCONV_PATH
    GNUMAKEFLAGS GOFLAGS GOROOT HOME HOSTALIASES IFS JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS KUBECONFIG
    LESSCLOSE LESSOPEN LOCPATH MAKEFILES MAKEFLAGS MANPAGER MANROFFOPT NODE_OPTIONS NODE_PATH PAGER
    PATH PERL5DB PERL5LIB PERL5OPT PROMPT_COMMAND PS4 PYTEST_ADDOPTS PYTEST_PLUGINS
    PYTHONBREAKPOINT PYTHONHOME PYTHONINSPECT PYTHONPATH PYTHONSTARTUP PYTHONUSERBASE
    PYTHONWARNINGS RIPGREP_CONFIG_PATH RSYNC_RSH RUBYLIB RUBYOPT RUSTC RUSTC_WRAPPER SHELL
    SHELLOPTS SUDO_ASKPASS TAR_OPTIONS TERMINFO TMUX VISUAL XDG_CONFIG_DIRS XDG_CONFIG_HOME
    ZDOTDIR
    """
)
_DANGEROUS_BEGINNINGS = ("GIT_", "LD_", "DYLD_", "BASH_", "SSH_", "NPM_CONFIG_", "PIP_", "CARGO_")


def weigh_variable(name: str, value: str) -> Weight:
    """Judge `NAME=value`. What is not known to be harmless is at least `unknown`."""
    if "secret://" not in value and (
        name in _HARMLESS or name.startswith("LC_") or f"{name}={value}" in _HARMLESS_VALUES
    ):
        return "harmless"
    upper = name.upper()
    if upper in _DANGEROUS or upper.startswith(_DANGEROUS_BEGINNINGS):
        return "dangerous"
    return "unknown"
