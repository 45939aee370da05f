"""The `consume` verb: its flags, which include those of kafka-console-consumer, and the options they result in."""

from __future__ import annotations

import re
import select
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

import click

from ottla.cli.common.completion import complete_topics, complete_words
from ottla.cli.common.connection import with_cluster
from ottla.cli.common.offsets import EARLIEST, LATEST
from ottla.cli.common.options import cluster_options, json_option
from ottla.cli.common.output import say
from ottla.cli.common.settings import ClientSettings, login_for, parse_pairs, read_properties, whole_number
from ottla.cli.common.times import TIME_HELP, parse_time_ms
from ottla.cli.consume.formatters import Formatter, find_formatter
from ottla.cli.consume.options import METADATA_AGE_MS_MAX, ConsumeOptions
from ottla.config.client import consumer_settings
from ottla.config.client.kinds import CONSUMER
from ottla.errors import ConfigError, OttlaError

EXAMPLES = """\b
Examples:
  ottla consume orders --from-beginning                    all records, then new ones as they arrive
  ottla consume orders --from-beginning --until-end        all records, then stop
  ottla consume orders --from-time 1h                      the last hour; also 2026-01-31T12:00
  ottla consume orders --partition 0 --offset 42 --max-messages 10
  ottla consume orders --formatter-property print.key=true --formatter-property print.timestamp=true
  ottla consume orders --from-beginning --json | jq .value
  ottla consume orders payments --group billing            as a member of a group; goes on where the group was
  ottla consume --include 'orders-.*' --group billing      also topics that are created later
\b
Formatter properties: print.timestamp, print.partition, print.offset, print.epoch, print.headers, print.key, print.value,
key.separator (tab), line.separator, headers.separator (,), null.literal, key.deserializer, value.deserializer,
headers.deserializer. Deserializers: string, bytes, integer, long, short, float, double, boolean, uuid, hex, base64, or
Kafka's class names.
"""

KNOWN = frozenset(CONSUMER.table)
NOT_PASSED_ON = ("auto.offset.reset", "group.id", "isolation.level", "key.deserializer", "value.deserializer")
"""Settings that have flags; of the deserializers, formatters make use."""
INTERRUPTED = 130


@click.command("consume", epilog=EXAMPLES)
@click.argument("names", nargs=-1, metavar="[TOPIC]...", shell_complete=complete_topics)
@click.option("--topic", metavar="NAME", shell_complete=complete_topics, help="Kafka's spelling of TOPIC.")
@click.option("--include", metavar="REGEX", help="All topics whose names match, besides those named.")
@click.option("--group", metavar="ID", help="Read as a member of this consumer group, and commit what was shown.")
@click.option("--partition", "--partitions", "partitions", multiple=True, metavar="0,2-4", help="Only these.  [default: all]")
@click.option("--offset", metavar="N|earliest|latest", help="Where to start.  [default: latest]")
@click.option("--from-beginning", is_flag=True, help="Start at the first record.")
@click.option("--from-time", metavar="WHEN", help=f"Start at the first record since then: {TIME_HELP}.")
@click.option("--max-messages", type=click.IntRange(-1), help="Stop after this many records.")
@click.option("--timeout-ms", type=click.IntRange(-1), help="Stop when no record has arrived for this long.")
@click.option("--until-end", is_flag=True, help="Stop at the current end of each partition.")
@click.option(
    "--isolation-level",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    help="read_committed leaves out records of open and aborted transactions.  [default: read_uncommitted]",
)
@click.option(
    "--formatter",
    default="default",
    metavar="NAME",
    help="default, no-op, logging or json; Kafka's classes too.",
    shell_complete=complete_words("default", "no-op", "logging", "json"),
)
@click.option("--formatter-property", "--property", "formatter_property", multiple=True, metavar="KEY=VALUE", help="See below.")
@click.option("--formatter-config", metavar="FILE", help="The same from a properties file.")
@click.option("--key-deserializer", metavar="NAME", help="Short for key.deserializer.")
@click.option("--value-deserializer", metavar="NAME", help="Short for value.deserializer.")
@click.option("--skip-message-on-error", is_flag=True, help="Leave out records that cannot be shown, instead of stopping.")
@click.option("--raw", is_flag=True, help="Do not escape control characters on a terminal.")
@click.option("--enable-systest-events", is_flag=True, hidden=True)
@json_option
@cluster_options(known=KNOWN, old_config_flag="consumer")
def consume(settings: ClientSettings, names: tuple[str, ...], topic: str | None, as_json: bool, **flags: Any) -> int:
    """Show the records of topics as they arrive, until Ctrl-C, --max-messages, --timeout-ms or --until-end.

    Without --partition all partitions are read at once, also partitions that are added later. Records of one partition come in
    order. The number of records goes to standard error. On a terminal, control characters in records are escaped; --raw prints
    them.

    With --group the members of the group share the partitions. Reading goes on at the committed offsets; --from-beginning and
    --offset say where to start in partitions without one. What was shown is committed every 5 seconds and at the end, unless
    enable.auto.commit is false. Without --group nothing is committed.
    """
    options = build_options(names, topic, settings, flags)
    formatter = build_formatter(as_json, flags, options.skip_bad)
    from ottla.cli.consume.run import Counter
    from ottla.cli.consume.run import consume as run

    counter = Counter()
    out = sys.stdout.buffer

    def write(data: bytes) -> None:
        if not data and _has_no_reader(out):
            raise BrokenPipeError
        out.write(data)
        out.flush()

    if options.group is None and not (flags["offset"] or flags["from_beginning"] or flags["from_time"] or options.until_end):
        _say_what_is_shown(options.start)

    code = 0
    try:
        with_cluster(settings, lambda cluster: run(cluster, options, formatter, write, counter), is_patient=True)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OttlaError:
        if counter.records:
            _print_total(counter.records)
        raise
    _print_total(counter.records)
    return code


def _has_no_reader(out: BinaryIO) -> bool:
    """Whether `out` is a pipe whose other end was closed, as by `| head -1`."""
    try:
        poll = select.poll()
        poll.register(out.fileno(), 0)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except (OSError, ValueError, AttributeError):  # no file descriptor, or a system without poll
        return False


def _say_what_is_shown(start: int) -> None:
    """For somebody who sees nothing, at a terminal: records that are there already are not shown."""
    if start == LATEST and sys.stdout.isatty() and sys.stderr.isatty():
        say("Waiting for new records; --from-beginning shows those that are there, too. Ctrl-C ends it.", err=True)


def _print_total(records: int) -> None:
    # Kafka's line. Scripts may look for it, so the singular appears only on a terminal.
    plural = "" if records == 1 and sys.stderr.isatty() else "s"
    say(f"Processed a total of {records} message{plural}", err=True)


def build_formatter(as_json: bool, flags: dict[str, Any], skip_bad: bool) -> Formatter:
    properties = read_properties(flags["formatter_config"]) if flags["formatter_config"] else {}
    properties |= parse_pairs(flags["formatter_property"], "--formatter-property")
    for part in ("key", "value"):
        if flags[f"{part}_deserializer"] is not None:
            properties[f"{part}.deserializer"] = flags[f"{part}_deserializer"]
    for_terminal = sys.stdout.isatty() and not flags["raw"]
    return find_formatter("json" if as_json else flags["formatter"], properties, skip_bad, for_terminal)


def build_options(names: tuple[str, ...], topic: str | None, settings: ClientSettings, flags: dict[str, Any]) -> ConsumeOptions:
    """Flags first, then client properties, then defaults."""
    if (not names and topic is None and flags["include"] is None) or (names and topic is not None):
        raise click.UsageError("name the topic to read, for example: ottla consume orders --from-beginning")
    properties = settings.properties
    group = _group(flags, properties)
    offset, start = _start(flags)
    reset = properties.get("auto.offset.reset", "earliest" if start == EARLIEST else "latest").strip().lower()
    if group is None and reset not in ("earliest", "latest"):
        raise click.UsageError(f"auto.offset.reset must be earliest or latest here, not {reset!r}")
    isolation = flags["isolation_level"] or properties.get("isolation.level", "read_uncommitted").strip().lower()
    age = properties.get("metadata.max.age.ms")
    age_ms = METADATA_AGE_MS_MAX if age is None else whole_number("metadata.max.age.ms", age, 0)
    given = {name: value for name, value in properties.items() if name in KNOWN and name not in NOT_PASSED_ON}
    client: dict[str, Any] = {**given, "auto.offset.reset": reset, "isolation.level": isolation}
    if group is not None:
        client |= {"group.id": group, "metadata.max.age.ms": age_ms}
    login = login_for(properties)
    try:
        consumer_settings(None, client, login)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    return ConsumeOptions(
        topics=names or (() if topic is None else (topic,)),
        include=_pattern(flags["include"]),
        group=group,
        partitions=parse_partitions(flags["partitions"]),
        offset=offset,
        start=start,
        reset=EARLIEST if reset == "earliest" else LATEST,
        max_messages=None if flags["max_messages"] in (None, -1) else flags["max_messages"],
        timeout_ms=None if flags["timeout_ms"] in (None, -1) else flags["timeout_ms"],
        until_end=flags["until_end"],
        metadata_age_ms_max=age_ms,
        read_committed=isolation == "read_committed",
        skip_bad=flags["skip_message_on_error"],
        client=client,
        login=login,
    )


def _group(flags: dict[str, Any], properties: Mapping[str, str]) -> str | None:
    group: str | None = flags["group"]
    named = properties.get("group.id", "").strip() or None
    if group is not None and named is not None and group != named:
        raise click.UsageError(f"--group {group} and group.id={named} name different groups: choose one")
    group = group or named
    if group is None:
        return None
    if flags["partitions"]:
        raise click.UsageError("--group and --partition: the group chooses the partitions; leave one of them out")
    if flags["from_time"]:
        raise click.UsageError(
            "--group and --from-time: a group starts at its committed offsets. Move them with "
            f"`ottla groups reset-offsets {group} --topic TOPIC --to-datetime WHEN --execute`, or leave one of them out"
        )
    return group


def _start(flags: dict[str, Any]) -> tuple[int | None, int]:
    """(an offset or None, the place or timestamp to start at)."""
    given = [flag for flag in ("from_beginning", "offset", "from_time") if flags[flag]]
    if len(given) > 1:
        named = " and ".join(f"--{flag.replace('_', '-')}" for flag in given)
        raise click.UsageError(f"{named} both say where to start: choose one")
    if flags["from_beginning"]:
        return None, EARLIEST
    if flags["from_time"]:
        return None, parse_time_ms(flags["from_time"], "--from-time")
    text = flags["offset"] or "latest"
    if text in ("earliest", "latest"):
        return None, EARLIEST if text == "earliest" else LATEST
    if not text.isascii() or not text.isdigit():
        raise click.UsageError(f"--offset must be earliest, latest, or a number of at least 0, not {text!r}")
    if not flags["partitions"]:
        raise click.UsageError("--offset with a number needs --partition: each partition has its own offsets")
    return int(text), 0


def _pattern(text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text.replace(",", "|"))
    except re.error as error:
        raise click.UsageError(f"--include: {text!r} is not a regular expression: {error}") from None


def parse_partitions(texts: tuple[str, ...]) -> frozenset[int] | None:
    """Parse `0,2-4`: numbers and ranges, ends included."""
    found: set[int] = set()
    for part in ",".join(texts).split(",") if texts else ():
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise click.UsageError(f"--partition takes numbers and ranges such as 0,2-4, not {part!r}")
        found |= set(range(int(first), int(last or first) + 1))
    return frozenset(found) if texts else None
