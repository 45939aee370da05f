"""What a check says: a finding, with the command that changes it now and the file that keeps it.

A check never changes anything. Where a fix works depends on where the node runs: in a container, settings of the network belong
to the container's own namespace, all other settings of the kernel to the host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from ottla.env.system import Wanted

if TYPE_CHECKING:
    from ottla.config.broker import BrokerConfig
    from ottla.env.system import SystemFacts

SYSCTL_FILE = "/etc/sysctl.d/60-ottla.conf"
LIMITS_FILE = "/etc/security/limits.d/60-ottla.conf"
ASK_HOST = "ask the host's owner: "


class Level(Enum):
    """How bad it is; the values are those of --json."""

    ERROR = "error"
    """The node will fail."""
    WARN = "warn"
    """It will hurt: measured in docs/check.md."""
    NOTE = "note"
    UNKNOWN = "unknown"
    """The check could not be made."""
    FINE = "fine"
    NOT_APPLICABLE = "not-applicable"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check, about one thing."""

    id: str
    level: Level
    current: str
    """What is, as a clause: `somaxconn is 128`."""
    wanted: str = ""
    why: str = ""
    fix_now: str = ""
    """A command, or words if no command can change it."""
    fix_for_good: str = ""
    """The file that keeps it."""
    applies_in_container: bool = True
    """Whether it can be changed for one container; if not, it is the host's."""
    sysctls: tuple[tuple[str, str], ...] = ()
    """What belongs in a file of sysctl.d."""

    @property
    def sentence(self) -> str:
        """One line: what is, what is wanted and why, how to change it."""
        parts = [self.current + (f", {self.wanted} advised" if self.wanted else "") + (f": {self.why}" if self.why else "")]
        if self.fix_now:
            parts.append(f"Now: {self.fix_now}" + (f"; for good: {self.fix_for_good}" if self.fix_for_good else ""))
        elif self.fix_for_good:
            parts.append(f"For good: {self.fix_for_good}")
        return ". ".join(parts)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is checked: the machine, and the node that runs or will run on it."""

    facts: SystemFacts
    config: BrokerConfig
    kernels: str = "compiled"
    """The variant of the kernels: `compiled`, or what it is instead."""


Look = Callable[[Subject], "Finding | list[Finding]"]


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the table of checks."""

    id: str
    title: str
    look: Look
    wanted: Wanted = field(default_factory=Wanted)
    at_start: bool = False
    """Whether it is part of the short list that every start checks."""
    on_macos: bool = False


def fine(id: str, current: str) -> Finding:
    return Finding(id, Level.FINE, current)


def not_applicable(id: str, current: str, why: str = "") -> Finding:
    return Finding(id, Level.NOT_APPLICABLE, current, why=why)


def unknown(id: str, current: str) -> Finding:
    return Finding(id, Level.UNKNOWN, current)


def with_sysctls(finding: Finding, facts: SystemFacts, changes: Mapping[str, str]) -> Finding:
    """The finding with the fix that sets kernel settings: as commands, for a container, or for the host's owner."""
    sysctls = tuple(changes.items())
    pairs = " ".join(f"{name}={_quoted(value)}" for name, value in sysctls)
    command, file = f"sysctl -w {pairs}", SYSCTL_FILE
    is_of_network = all(name.startswith("net.") and not name.endswith(("mem_max", "conntrack_max")) for name in changes)
    if facts.container and not facts.can_write_sysctls:
        if is_of_network:
            flags = " ".join(f"--sysctl {name}={_quoted(value)}" for name, value in sysctls)
            command, file = f"start the container with {flags}", "securityContext.sysctls of the pod, if the platform allows it"
        else:
            command, file = f"{ASK_HOST}{command} on the host", f"{SYSCTL_FILE} there"
    return replace(finding, fix_now=command, fix_for_good=file, applies_in_container=is_of_network, sysctls=sysctls)


def on_host(finding: Finding, facts: SystemFacts) -> Finding:
    """The finding whose fix is the host's: in a container it says whom to ask."""
    if not facts.container or not finding.fix_now:
        return replace(finding, applies_in_container=False)
    return replace(finding, fix_now=f"{ASK_HOST}{finding.fix_now}", applies_in_container=False)


def _quoted(value: str) -> str:
    return f"'{value}'" if " " in value else value


def size_text(size_bytes: float) -> str:
    """Bytes for people: `512 B`, `1.5 GB`."""
    value, units = float(size_bytes), ("B", "kB", "MB", "GB", "TB", "PB")
    for unit in units:
        if value < 1000 or unit == units[-1]:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f}".rstrip("0").rstrip(".") + f" {unit}"
        value /= 1000
    raise AssertionError("the last unit takes all that is left")
