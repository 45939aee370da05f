"""The table of all checks, and how they are run: read once what they want, then look. For the command and for a start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.checks import disks, network, resources
from ottla.broker.checks.findings import Check, Finding, Level, Subject, not_applicable, unknown
from ottla.env.system import CannotTell, Wanted

if TYPE_CHECKING:
    from ottla.config.broker import BrokerConfig
    from ottla.env.system import SystemFacts

CHECKS: tuple[Check, ...] = (*resources.CHECKS, *disks.CHECKS, *network.CHECKS)
AT_START = tuple(each for each in CHECKS if each.at_start)

ORDER = (Level.ERROR, Level.WARN, Level.NOTE, Level.UNKNOWN, Level.FINE, Level.NOT_APPLICABLE)


def wanted_by(checks: Iterable[Check], config: BrokerConfig) -> Wanted:
    """What has to be read for `checks` of a node with these settings."""
    wanted = [each.wanted for each in checks]
    ids = {each.id for each in checks}
    hosts = [each.host for each in (*config.advertised_listeners, *config.advertised_controller_listeners)]
    return Wanted(
        files=tuple(dict.fromkeys(path for each in wanted for path in each.files)),
        cgroup_files=tuple(dict.fromkeys(name for each in wanted for name in each.cgroup_files)),
        disk_files=tuple(dict.fromkeys(name for each in wanted for name in each.disk_files)),
        sysctls=tuple(dict.fromkeys(name for each in wanted for name in each.sysctls)),
        directories=tuple(dict.fromkeys((*config.log.log_dirs, config.log.metadata_log_dir))),
        looks_into=any(each.looks_into for each in wanted),
        names=tuple(dict.fromkeys(hosts)) if "advertised-names" in ids else (),
        clock=any(each.clock for each in wanted),
        nodes=any(each.nodes for each in wanted),
        python=any(each.python for each in wanted),
    )


def run_checks(checks: Sequence[Check], facts: SystemFacts, config: BrokerConfig, kernels: str = "compiled") -> list[Finding]:
    """The findings of `checks`, the worst first. A check that cannot tell, or whose files are odd, says so."""
    subject = Subject(facts, config, kernels)
    found: list[Finding] = []
    for check in checks:
        if facts.platform != "linux" and not check.on_macos:
            found.append(not_applicable(check.id, f"{check.title}: not applicable on {facts.platform}"))
            continue
        try:
            looked = check.look(subject)
        except CannotTell as reason:
            looked = unknown(check.id, f"{check.title}: {reason}")
        except (ValueError, IndexError, KeyError) as odd:  # a kernel's file in a form that nobody has seen yet
            looked = unknown(check.id, f"{check.title}: a file has an unexpected form ({type(odd).__name__}: {odd})")
        found += looked if isinstance(looked, list) else [looked]
    return in_order(found)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The worst first, without repeats."""
    return sorted(dict.fromkeys(findings), key=lambda each: ORDER.index(each.level))


def sysctl_file(findings: Iterable[Finding]) -> str:
    """A file for /etc/sysctl.d with all that the findings ask for; empty if they ask for nothing."""
    lines: list[str] = []
    for each in findings:
        if each.level in (Level.ERROR, Level.WARN, Level.NOTE) and each.sysctls:
            lines.append(f"# {each.current}: {each.why}")
            lines += [f"{name} = {value}" for name, value in each.sysctls]
    head = "# Written by `ottla check --write`. Read it, put it into /etc/sysctl.d, then: sysctl --system"
    return "\n".join([head, *lines, ""]) if lines else ""
