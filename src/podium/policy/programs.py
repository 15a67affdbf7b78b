"""Tables of programs and environment variables, known by their names."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from podium.core.decisions import Tier


def names(text: str) -> frozenset[str]:
    """The names in a text, parted by blanks: lists written as one reads them."""
    return frozenset(text.split())


class CommandKind(StrEnum):
    """The kind of a simple command, as far as its words show. Rules may match on it."""

    GIT_READ = "git-read"
    GIT_WRITE = "git-write"
    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    INSTALL = "install"
    NETWORK = "network"
    OTHER = "other"


PRIVILEGED = names(
    "sudo sudoedit su doas pkexec run0 runuser setpriv capsh newgrp sg chroot unshare nsenter "
    "setcap mount umount insmod modprobe rmmod passwd useradd usermod userdel visudo"
)
"""Each works with another user's rights."""

INDIRECT = names(
    "eval source . xargs parallel watch entr busybox toybox script expect unbuffer setsid daemonize "
    "start-stop-daemon tmux screen at batch crontab systemd-run ld.so strace ltrace gdb bwrap "
    "firejail proot fakeroot rlwrap dtach abduco flock"
)
"""Each starts commands that its words do not show."""

SHELL_STATE = names(
    "alias unalias trap enable hash set shopt unset let read mapfile readarray getopts complete "
    "compgen compopt bind pushd popd dirs fc history ulimit umask"
)
"""Each changes the shell itself."""

STEADY_STATE: dict[str, str] = {
    **dict.fromkeys(names("set unset read getopts ulimit umask let shopt pushd popd dirs"), ""),
    **dict.fromkeys(names("mapfile readarray"), "C"),
}
"""Those that a confined run may use, with letters of options that start something."""

NAMING = names("read unset getopts mapfile readarray")
"""Builtins that set the variables whose names are their words."""

CALCULATING = names("let test [ read unset printf export declare typeset local readonly mapfile")
"""Builtins that may take a word for a calculation."""

CONFINED_INDIRECT = names("source . gdb strace ltrace fakeroot rlwrap unbuffer")
"""Those that a confined run may use: what they start was looked for in their words before."""

LOCAL_SUBCOMMANDS: dict[str, frozenset[str]] = {
    "openssl": names("rand dgst enc x509 req genrsa genpkey rsa ec version passwd base64 verify"),
    **dict.fromkeys(("terraform", "tofu"), names("fmt validate version")),
    "helm": names("template lint version"),
}
"""First words with which a program of `REACHING` stays on the machine."""

RUINOUS = names(
    "shred wipefs mkfs fdisk sfdisk sgdisk parted blkdiscard hdparm mkswap swapoff shutdown reboot "
    "poweroff halt init telinit kexec srm wipe"
)
"""Each destroys what cannot be brought back."""

RUINOUS_BEGINNINGS = ("mkfs.", "mke2fs", "newfs")
LOADER_BEGINNINGS = ("ld-linux", "ld-musl", "ld64.so")

EXPORTING = frozenset({"export", "declare", "typeset", "readonly", "local"})
"""Builtins whose `NAME=value` words are assignments."""

SILENT = names("echo printf true false : sleep seq basename dirname which type command")
"""Readers whose words do not name files."""

PATTERN_FIRST = names("grep egrep fgrep rg jq tr")
"""Readers whose first plain word is a pattern, not a file."""

READERS: dict[str, tuple[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        names(
            "cat head tail wc stat du df pwd ls cut tr nl diff cmp comm fold paste column realpath "
            "readlink uname whoami id md5sum sha1sum sha256sum sha512sum cksum b2sum tac rev od "
            "strings grep egrep fgrep echo true false : sleep seq basename dirname which type cd "
            "command uniq find"
        ),
        ("", ()),
    ),
    "rg": ("z", ("--pre", "--hostname-bin", "--search-zip")),
    "sort": ("oT", ("--o", "--co", "--t")),
    "file": ("C", ("--c",)),
    "jq": ("fL", ("--f", "--l")),
    "tree": ("oR", ()),
    "printf": ("v", ()),
}
"""Programs that only read; with letters and beginnings of options with which they do more."""

FIND_ACTIONS = (
    *("-exec", "-ok", "-delete"),
    *("-fprint", "-fls", "-files0-from"),
)
"""Beginnings of what makes `find` do more than list."""

WRITERS: dict[str, frozenset[str] | None] = {
    "cp": names("-r -R -a -p -n -f -v"),
    "mv": names("-n -f -v"),
    "mkdir": names("-p -v"),
    "tee": names("-a"),
    "touch": names(""),
    "chmod": names(""),
    **dict.fromkeys(names("ln install chown chgrp"), None),
}
"""Programs that make or change files they name, and the options they may have to be understood.

None: they are never understood for certain.
"""

WRITER_VALUES: dict[str, frozenset[str]] = {
    "mkdir": names("-m --mode"),
    "touch": names("-d --date -r --reference"),
    **dict.fromkeys(names("cp mv ln"), names("-S --suffix")),
    "install": names("-m --mode -o --owner -g --group -S --suffix"),
}
"""Options of writers whose next word is not written to."""

DELETERS: dict[str, str] = {
    "rm": "",
    "rmdir": "",
    "unlink": "",
    "truncate": "-s --size -r --reference",
    "dd": "",
    "shred": "-n --iterations -s --size --random-source",
}

TARGET_LAST = frozenset({"cp", "mv"})
"""Their last plain word is where the others go."""

RECURSIVE = frozenset({"rm", "chmod", "chown", "chgrp"})
"""Refused when they go through whole folders."""

REACHING: dict[str, Tier] = {
    **dict.fromkeys(
        names(
            "curl wget aria2c ftp sftp scp ssh rsync telnet nc ncat netcat socat ping dig nslookup host "
            "whois http https xh openssl aws gcloud az gh hub glab kubectl helm docker podman nerdctl "
            "docker-compose terraform tofu pulumi ansible ansible-playbook vagrant heroku fly flyctl "
            "vercel netlify firebase psql mysql mongosh redis-cli sqlcmd twine sendmail mail mutt "
            "msmtp swaks tailscale ngrok cloudflared rclone s3cmd"
        ),
        Tier.T3,
    ),
    "dropdb": Tier.T4,
}
"""Programs whose effects leave the machine."""

INSTALLING = names(
    "apt apt-get aptitude yum dnf apk pacman zypper snap flatpak brew port conda mamba npx uvx pipx "
    "bunx dlx easy_install cpan cpanm luarocks"
)
"""Programs that bring code from elsewhere, whatever their words."""

INSTALLING_SUBCOMMANDS: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        ("pip", "pip3"), frozenset({"install", "download", "wheel", "uninstall", "config"})
    ),
    "uv": frozenset({"pip", "add", "sync", "tool", "python", "remove", "lock", "publish"}),
    "poetry": frozenset({"add", "install", "update", "remove", "publish", "self"}),
    "pdm": frozenset({"add", "install", "update", "sync", "publish"}),
    "npm": names(
        "install i in ins inst isntall add ci clean-install update up exec x init create publish "
        "uninstall link rebuild config set"
    ),
    **dict.fromkeys(
        ("pnpm", "yarn", "bun"),
        names(
            "install i add update up dlx x exec create publish remove upgrade import config set link"
        ),
    ),
    "cargo": frozenset({"add", "install", "update", "publish", "fetch", "login"}),
    "go": frozenset({"get", "install", "mod", "work", "env", "generate", "run"}),
    "gem": frozenset({"install", "update", "push"}),
    "bundle": frozenset({"install", "update", "add"}),
    "composer": frozenset({"install", "require", "update"}),
    "dotnet": frozenset({"add", "restore", "tool", "nuget"}),
}
"""Programs that bring code from elsewhere when one of these is their first plain word."""

_PROGRAMS = (
    frozenset({"git", "cd", "test", "[", "exit", "export", "make", "python", "python3", "node"})
    | PRIVILEGED
    | INDIRECT
    | SHELL_STATE
    | RUINOUS
    | EXPORTING
    | SILENT
    | INSTALLING
    | frozenset(READERS)
    | frozenset(WRITERS)
    | frozenset(DELETERS)
    | frozenset(REACHING)
    | frozenset(INSTALLING_SUBCOMMANDS)
)


def is_listed(name: str) -> bool:
    """Tell whether a name stands for a program or builtin that something is known of here."""
    return name in _PROGRAMS


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
