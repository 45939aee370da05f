"""The texts of a service: a systemd unit, a launchd property list, the user they run as, and first settings. Pure.

A unit of the system runs as a user of its own and sees the file system read-only, but for its data. A unit of a person has less
hardening: what needs root, or a namespace, is left out. `docs/service.md` explains the choices.
"""

from __future__ import annotations

import plistlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.broker.solo_settings import solo_settings

MARK: Final = "Written by `ottla service install`"
"""In the first lines of every file that the command writes, and may therefore replace or remove."""

WATCHDOG_S: Final = 30
STOP_S: Final = 300


class Service(NamedTuple):
    """What a unit is made from. In a template unit `%i` stands for the name of the node, in `settings` too."""

    command: Sequence[str]
    """How `ottla` is run."""
    settings: str
    """The path of the server.properties."""
    is_template: bool = False
    formats_new: bool = False
    user: str | None = None
    """Whom it runs as; None: it is a service of the person who runs it."""
    writable: Sequence[str] = ()
    """Log directories outside of the state directory."""
    uses_homes: bool = False
    """Something that the node reads lies in a home directory."""

    @property
    def arguments(self) -> list[str]:
        new = ["--format-new"] if self.formats_new else []
        return [*self.command, "server", "start", self.settings, "--service", *new]


def systemd_unit(service: Service) -> str:
    """The text of `ottla.service` or `ottla@.service`."""
    name = "ottla@NAME" if service.is_template else "ottla"
    edit = "systemctl edit" if service.user is not None else "systemctl --user edit"
    unit = ["Description=Ottla, a Kafka node" + (" (%i)" if service.is_template else "")]
    if service.user is not None:
        unit += ["After=network-online.target", "Wants=network-online.target"]
    if service.writable:
        unit.append("RequiresMountsFor=" + " ".join(map(_word, service.writable)))
    run = [
        "Type=notify",
        "ExecStart=" + " ".join(_word(each, is_command=True) for each in service.arguments),
        "ExecReload=/bin/kill -HUP $MAINPID",
        "",
        "# Ready when the node serves clients. It may have to recover its logs before: no limit for that. A node whose loop is",
        "# held is ended, with the stack of each thread in the journal, and started again. Exit code 2: a wrong command line.",
        "TimeoutStartSec=infinity",
        f"TimeoutStopSec={STOP_S}",
        f"WatchdogSec={WATCHDOG_S}",
        "Environment=PYTHONFAULTHANDLER=1",
        "Restart=on-failure",
        "RestartSec=5",
        "RestartPreventExitStatus=2",
        "KillMode=mixed",
        "UMask=0027",
    ]
    run += ["", *(_of_system(service) if service.user is not None else []), *_HARDENING]
    wanted = "multi-user.target" if service.user is not None else "default.target"
    head = f"# {MARK}, which replaces it. Changes of your own: {edit} {name}\n"
    sections = (("Unit", unit), ("Service", run), ("Install", [f"WantedBy={wanted}"]))
    return head + "\n".join(f"\n[{title}]\n" + "\n".join(lines) for title, lines in sections) + "\n"


_HARDENING = (
    "NoNewPrivileges=yes",
    "LockPersonality=yes",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service",
    "SystemCallFilter=~@privileged",
    "SystemCallErrorNumber=EPERM",
)
"""What a process may forbid itself without root."""


def _of_system(service: Service) -> list[str]:
    folder = "ottla/%i" if service.is_template else "ottla"
    lines = [
        f"User={service.user}",
        f"Group={service.user}",
        f"StateDirectory={folder}",
        "StateDirectoryMode=0750",
        f"ConfigurationDirectory={folder}",
        "LimitNOFILE=1048576",
        "OOMScoreAdjust=-500",
        "",
        "CapabilityBoundingSet=",
        "AmbientCapabilities=",
        "PrivateDevices=yes",
        "PrivateTmp=yes",
        "ProtectClock=yes",
        "ProtectControlGroups=yes",
        f"ProtectHome={'read-only' if service.uses_homes else 'yes'}",
        "ProtectHostname=yes",
        "ProtectKernelLogs=yes",
        "ProtectKernelModules=yes",
        "ProtectKernelTunables=yes",
        "ProtectProc=invisible",
        "ProtectSystem=strict",
        "RemoveIPC=yes",
    ]
    if service.writable:
        lines.append("ReadWritePaths=" + " ".join(map(_word, service.writable)))
    return lines


def paths_drop_in(writable: Sequence[str]) -> str:
    """For one node of a template unit: log directories outside of its state directory."""
    paths = " ".join(map(_word, writable))
    return f"# {MARK}, which replaces it.\n[Unit]\nRequiresMountsFor={paths}\n\n[Service]\nReadWritePaths={paths}\n"


def _word(text: str, *, is_command: bool = False) -> str:
    """One word of a unit file. `%i` stays what it is; other percent signs, and dollars in a command, are literal."""
    text = text.replace("%", "%%").replace("%%i", "%i")
    if is_command:
        text = text.replace("$", "$$")
    if not text or any(each in " \t\"'\\;" for each in text):
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return text


def sysusers(user: str) -> str:
    """The text of `/etc/sysusers.d/ottla.conf`, from which `systemd-sysusers` makes the user."""
    return f'# {MARK}.\nu {user} - "Ottla, a Kafka node" /var/lib/ottla\n'


def launchd_plist(service: Service, label: str, log_file: str, instance: str = "") -> bytes:
    """A property list for macOS. launchd has no watchdog and no readiness; it starts a node again that fails."""
    content = {
        "Label": label,
        "ProgramArguments": [each.replace("%i", instance) for each in service.arguments],
        "EnvironmentVariables": {"PYTHONFAULTHANDLER": "1"},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 5,
        "ExitTimeOut": STOP_S,
        "ProcessType": "Interactive",
        "SoftResourceLimits": {"NumberOfFiles": 65536},
        "HardResourceLimits": {"NumberOfFiles": 65536},
        "Umask": 0o027,
        "WorkingDirectory": "/",
        "StandardErrorPath": log_file,
    }
    if service.user is not None:
        content["UserName"] = service.user
    lines = plistlib.dumps(content).split(b"\n")
    return b"\n".join([*lines[:2], f"<!-- {MARK}, which replaces it. -->".encode(), *lines[2:]])


def new_settings(data: str) -> str:
    """A server.properties for one node that is a cluster of its own."""
    lines = "".join(f"{name}={value}\n" for name, value in solo_settings("127.0.0.1", 9092, data).items())
    return f"""# A node that is a cluster of its own, for clients on this machine.
# For clients elsewhere: the listener PLAINTEXT at 0.0.0.0, and advertised.listeners with the name by which they reach it.
# docs/security.md adds TLS, users and access control; docs/configuration.md lists all settings.
{lines}"""
