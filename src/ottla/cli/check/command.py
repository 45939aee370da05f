"""`ottla check`: what of this machine will make a node fail or hurt it. Reads and explains; changes nothing.

The checks themselves are in `broker/checks`, pure; every start of a node runs some of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.common.options import json_option
from ottla.cli.common.output import is_for_people, print_json, print_title, say, warn

if TYPE_CHECKING:
    from ottla.broker.checks.findings import Finding
    from ottla.config.broker import BrokerConfig

EPILOG = """\b
Examples:
  ottla check                                   this machine, for `ottla up` in this folder
  ottla check -c server.properties              for a node with these settings
  ottla check ./ottla-data                      for the data of an `ottla up`
  ottla check --all                             also what is fine, and what does not matter here
  ottla check --measure                         how fast the disks are, in 10 s
  ottla check --listen                          on one machine, and on another:
  ottla check --peer kafka-1.lan                latency, MTU and clocks between the two
  ottla check --peer kafka-1.lan:9092           latency to a broker that runs
  ottla check --write 60-ottla.conf             the kernel's settings as a file for /etc/sysctl.d
  ottla check --json | jq '.[] | select(.level == "warn").fix_now'
  ottla check --plan --rate 50MB --retention 7d --replicas 3 --consumers 2
\b
Exit codes: 0 nothing will fail (with --strict: nothing hurts), 1 something will, 2 it could not be checked.
"""

GROUPS = {
    "error": "Will fail",
    "warn": "Will hurt",
    "note": "Worth knowing",
    "unknown": "Cannot tell",
    "fine": "Fine",
    "not-applicable": "Does not matter here",
}
HIDDEN = ("fine", "not-applicable")
DATA = "ottla-data"
ECHO_PORT = 9899

SIZE = "a number of bytes, such as 512, 10kB or 1.5GB"
PLAN_FLAGS = ("rate", "record_size", "retention", "replicas", "consumers", "brokers")


class CannotCheck(click.ClickException):
    """What is to be checked cannot be read."""

    exit_code = 2


@click.command(epilog=EPILOG)
@click.argument("data", required=False, type=click.Path(path_type=Path))
@click.option(
    "-c", "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The node's server.properties."
)
@click.option("--all", "show_all", is_flag=True, help="Show what is fine, too, and what does not matter here.")
@click.option("--measure", is_flag=True, help="Measure the disks of the log directories: fsync, sequential writes. Takes 10 s.")
@click.option(
    "--peer", metavar="HOST[:PORT]", help="Measure the way to another machine, with `ottla check --listen` or a broker."
)
@click.option(
    "--listen",
    is_flag=False,
    flag_value=f":{ECHO_PORT}",
    metavar="[HOST:]PORT",
    help=f"Answer `ottla check --peer` of others until Ctrl-C.  [default: {ECHO_PORT}]",
)
@click.option("--command-config", metavar="FILE", help="Client settings for --peer, such as those of TLS and SASL.")
@click.option("--strict", is_flag=True, help="Exit code 1 also for what will hurt.")
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the advised settings of the kernel to a new file, for /etc/sysctl.d.",
)
@click.option("--plan", is_flag=True, help="Say what a load needs: partitions, disk, memory, network. With:")
@click.option("--rate", metavar="SIZE", help="What producers send in a second, over all topics: 50MB.")
@click.option("--record-size", metavar="SIZE", help="The size of a record.  [default: 1kB]")
@click.option("--retention", metavar="DURATION", help="How long records are kept.  [default: 7d]")
@click.option("--replicas", type=click.IntRange(1, 9), help="The replicas of a partition.  [default: 3]")
@click.option("--consumers", type=click.IntRange(0), help="How many groups read everything.  [default: 1]")
@click.option("--brokers", type=click.IntRange(1), help="How many brokers share the load.  [default: as many as it needs]")
@json_option
def check(
    data: Path | None,
    config: Path | None,
    show_all: bool,
    measure: bool,
    peer: str | None,
    listen: str | None,
    command_config: str | None,
    strict: bool,
    write: Path | None,
    plan: bool,
    as_json: bool,
    **load: Any,
) -> int:
    """Check whether this machine is fit for a node, and say how to make it so. DATA is the folder of `ottla up`.

    Every check reads and explains; none changes anything. No root is needed.
    """
    if not plan and (given := [name for name in PLAN_FLAGS if load[name] is not None]):
        raise click.UsageError(f"--{given[0].replace('_', '-')} is for --plan: add it")
    if plan:
        from ottla.cli.check.plan import show_plan

        return show_plan(load, as_json)
    if listen is not None:
        from ottla.cli.check.peer import serve_echo

        serve_echo(*_address(listen, "--listen", ECHO_PORT))
        return 0
    if command_config is not None and peer is None:
        raise click.UsageError("--command-config is for --peer: add it")
    if data is not None and config is not None:
        raise click.UsageError("DATA and --config exclude each other: the file names its own log.dirs")
    if peer is not None:
        from ottla.cli.check.peer import look_at_peer

        host, port = _address(peer, "--peer", ECHO_PORT)
        if not host:
            raise click.UsageError(f"--peer {peer}: write HOST or HOST:PORT")
        findings = look_at_peer(host, port, command_config)
    else:
        findings = _look(_settings(data, config), measure)
    if write is not None:
        _write(write, findings)
    if as_json:
        print_json([_as_json(each) for each in findings])
    else:
        _show(findings, show_all or peer is not None)
    levels = {each.level.value for each in findings}
    return 1 if "error" in levels or (strict and "warn" in levels) else 0


def _look(config: BrokerConfig, measures: bool) -> list[Finding]:
    from ottla.broker.checks.table import CHECKS, in_order, run_checks, wanted_by
    from ottla.env.real.system import RealSystem
    from ottla.records.kernels import variant

    facts = RealSystem().read(wanted_by(CHECKS, config))
    findings = run_checks(CHECKS, facts, config, variant())
    if measures:
        from ottla.cli.check.measure import measure_disks

        measured = measure_disks(facts, config)
        replaced = {each.id for each in measured}
        findings = in_order([each for each in findings if each.id not in replaced] + measured)
    return findings


def _settings(data: Path | None, config: Path | None) -> BrokerConfig:
    from ottla.broker.solo_settings import solo_settings
    from ottla.cli.storage import read_config
    from ottla.config.broker import BrokerConfig

    if config is not None:
        try:
            return read_config(config)
        except click.ClickException as mistake:
            raise CannotCheck(mistake.message) from mistake.__cause__
        except OSError as error:
            raise CannotCheck(f"{config} cannot be read: {(error.strerror or str(error)).lower()}") from None
    folder = (data or Path(DATA)).absolute()
    if data is not None and not folder.exists():
        raise click.UsageError(f"{data} does not exist: name the data folder of an `ottla up`, or a file with --config")
    if folder.is_file():
        raise click.UsageError(f"{data} is a file: give a server.properties with --config {data}")
    nodes = sorted(each for each in folder.glob("node-*") if each.is_dir())
    directories = ",".join(map(str, nodes or [folder]))
    return BrokerConfig.from_settings(solo_settings("127.0.0.1", 9092, directories))


def _address(text: str, flag: str, default: int) -> tuple[str, int]:
    """`HOST`, `HOST:PORT`, `:PORT`, `PORT`, with an IPv6 host in brackets."""
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = ("", text) if text.isdecimal() else (text, str(default))
    if not (port.isdecimal() and port.isascii() and 0 < int(port) <= 65535):
        raise click.UsageError(f"{flag} {text}: {port!r} is no port; write HOST:PORT, such as kafka-1.lan:{default}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _write(path: Path, findings: Iterable[Finding]) -> None:
    from ottla.broker.checks.table import sysctl_file

    text = sysctl_file(findings)
    if not text:
        warn(f"{path} was not written: no setting of the kernel needs to change")
        return
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise click.UsageError(f"--write {path}: the file exists already; name another, or remove it") from None
    except OSError as error:
        raise click.UsageError(f"--write {path}: {error.strerror}") from None
    warn(f"wrote {path}: read it, put it into /etc/sysctl.d, then run sysctl --system")


def _as_json(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "level": finding.level.value,
        "current": finding.current,
        "wanted": finding.wanted,
        "why": finding.why,
        "fix_now": finding.fix_now,
        "fix_for_good": finding.fix_for_good,
        "applies_in_container": finding.applies_in_container,
    }


def _show(findings: Sequence[Finding], show_all: bool) -> None:
    """The findings by group: wrapped on a terminal, one line each in a pipe."""
    for level, title in GROUPS.items():
        group = [each for each in findings if each.level.value == level]
        if not group or (level in HIDDEN and not show_all):
            continue
        if is_for_people():
            print_title(title, *(f"{each.id}: {each.sentence}" for each in group))
            say("")
        else:
            for each in group:
                say(f"{level}: {each.id}: {each.sentence}")
    hidden = sum(each.level.value in HIDDEN for each in findings)
    if is_for_people() and not show_all:
        say(f"{hidden} checks found nothing to say (--all shows them). Each is explained in docs/check.md.")
