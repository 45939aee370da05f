"""The `produce` verb: its flags, which include those of kafka-console-producer, and the options they result in."""

from __future__ import annotations

import gc
import os
import sys
from typing import Any

import click

from ottla.cli.common.completion import complete_topics
from ottla.cli.common.connection import with_cluster
from ottla.cli.common.explanations import explain
from ottla.cli.common.options import cluster_options
from ottla.cli.common.output import can_ask, is_typed, print_json, say, warn
from ottla.cli.common.settings import ClientSettings, login_for, parse_pairs, read_properties
from ottla.cli.common.times import TIME_HELP, parse_time_ms
from ottla.cli.produce.lines import (
    STANDARD_INPUT,
    Headers,
    Input,
    JsonReader,
    LineReader,
    Reader,
    build_format,
    parse_delimiter,
    unescape,
)
from ottla.cli.produce.options import MAX_BLOCK_MS, ProduceOptions
from ottla.config.client import producer_settings
from ottla.config.client.kinds import PRODUCER
from ottla.errors import ConfigError, OttlaError, UnsupportedVersionError
from ottla.records.compression import Codec

EXAMPLES = """\b
Examples:
  ottla produce orders                                     type records, one a line; Ctrl-D ends
  ottla produce orders a.txt b.txt --compression zstd      the lines of files
  ottla produce orders --key-separator : < pairs.txt       key:value
  ottla produce orders --key k1 --header source=shop --timestamp 1h < lines.txt
  ottla produce images cat.png dog.png --whole             each file is one record
  find . -print0 | ottla produce paths --delimiter '\\0'
  ottla consume orders --from-beginning --until-end --json | ottla produce copy --json
  ottla produce orders --reader-property parse.headers=true < lines.txt
\b
Reader properties: parse.key, key.separator (tab), parse.headers, headers.delimiter (tab), headers.separator (,),
headers.key.separator (:), null.marker, ignore.error. With all of them a line is h1:v1,h2:v2<tab>key<tab>value.
\b
Exit codes: 0 all records are stored; 1 some are not, and the message says how many are; 2 wrong usage; 130 Ctrl-C;
143 SIGTERM.
"""

KNOWN = frozenset(PRODUCER.table)
LINE_READERS = ("org.apache.kafka.tools.LineMessageReader", "kafka.tools.ConsoleProducer$LineMessageReader")
INTERRUPTED = 130
SETTING_FLAGS = {
    "acks": "acks",
    "batch_size": "batch.size",
    "compression": "compression.type",
    "linger_ms": "linger.ms",
    "max_memory_bytes": "buffer.memory",
    "message_send_max_retries": "retries",
    "metadata_expiry_ms": "metadata.max.age.ms",
    "request_timeout_ms": "request.timeout.ms",
    "retry_backoff_ms": "retry.backoff.ms",
    "socket_buffer_size": "send.buffer.bytes",
}
"""Flags that are settings of the producer."""
NOT_PASSED_ON = ("key.serializer", "value.serializer", "max.block.ms", "transactional.id", "interceptor.classes")
"""Settings that are not the producer's here: input is bytes already, and the command itself waits for topics."""
FOREVER_MS = 2**63 - 1
"""How long the producer waits for buffer.memory: until delivery.timeout.ms of the records in it fails them, and the command."""


@click.command("produce", epilog=EXAMPLES)
@click.argument("name", required=False, metavar="[TOPIC]", shell_complete=complete_topics)
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path())
@click.option("--topic", metavar="NAME", shell_complete=complete_topics, help="Kafka's spelling of TOPIC.")
@click.option("--partition", type=click.IntRange(0), help="Send all records to this partition.  [default: by key, else sticky]")
@click.option("--key", metavar="TEXT", help="The key of all records.")
@click.option("--key-separator", metavar="TEXT", help="Lines are KEY TEXT VALUE; short for parse.key and key.separator.")
@click.option("--header", "header", multiple=True, metavar="NAME=VALUE", help="A header for all records.")
@click.option("--timestamp", metavar="WHEN", help=f"The timestamp of all records: {TIME_HELP}.  [default: now]")
@click.option(
    "--delimiter", metavar="TEXT", help=r"What ends a record, also with escapes such as \t, \0, \r\n and \x1e.  [default: \n]"
)
@click.option("--whole", is_flag=True, help="Each file, or all of standard input, is one record.")
@click.option("--json", "is_json", is_flag=True, help="Records are JSON objects, one a line, as `ottla consume --json` writes.")
@click.option("--repartition", is_flag=True, help="With --json: choose partitions by key, not those that records name.")
@click.option("--reader-property", "--property", "reader_property", multiple=True, metavar="KEY=VALUE", help="See below.")
@click.option("--reader-config", metavar="FILE", help="The same from a properties file.")
@click.option("--line-reader", metavar="CLASS", help="Accepted for compatibility, if it is Kafka's own line reader.")
@click.option(
    "--compression",
    "--compression-codec",
    "compression",
    is_flag=False,
    flag_value="gzip",
    type=click.Choice([codec.title for codec in Codec]),
    help="How batches are compressed; gzip without a value.  [default: none]",
)
@click.option(
    "--acks",
    "--request-required-acks",
    "acks",
    type=click.Choice(["all", "-1", "1", "0"]),
    help="Which replicas must have stored a record.  [default: all]",
)
@click.option(
    "--batch-size", "--max-partition-memory-bytes", "batch_size", type=click.IntRange(1), help="Maximum bytes of a batch."
)
@click.option("--linger-ms", "--timeout", "linger_ms", type=click.IntRange(0), help="How long a batch may wait for more input.")
@click.option("--max-block-ms", type=click.IntRange(0), help="How long to wait for the topic to exist.")
@click.option("--max-memory-bytes", type=click.IntRange(1), help="Maximum bytes that wait to be sent.")
@click.option("--message-send-max-retries", type=click.IntRange(0), help="How many times to retry a batch.")
@click.option("--request-timeout-ms", type=click.IntRange(1), help="How long a broker may take to answer.")
@click.option("--retry-backoff-ms", type=click.IntRange(0), help="How long to wait before a retry.")
@click.option("--socket-buffer-size", type=click.IntRange(-1), help="Size of the socket's send buffer, in bytes.")
@click.option("--metadata-expiry-ms", type=click.IntRange(0), hidden=True)
@click.option("--sync", is_flag=True, help="Wait for each record to be stored before the next is sent.")
@click.option("--summary", is_flag=True, help="At the end, print as JSON what each partition has stored.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing if all records are stored.")
@cluster_options(known=KNOWN, old_config_flag="producer")
def produce(settings: ClientSettings, name: str | None, files: tuple[str, ...], **flags: Any) -> int:
    """Send lines as records to TOPIC: of files, from a pipe, or typed at a prompt. FILE may be - for standard input.

    By default every record is stored exactly once and in order, also after retries (idempotent, acks=all). Bytes are sent as
    they are, also a carriage return before the end of a line. If brokers are lost, that is said at once, and sending goes on
    when they are back, within delivery.timeout.ms (2 minutes). A topic that does not exist is created if the brokers have
    auto.create.topics.enable.

    With --json records go to TOPIC, or each to its own topic if none is named, and keep their partitions and timestamps.
    --key, --timestamp and --partition replace theirs, --header adds to them.
    """
    topic, names = _topic_and_files(name, files, flags)
    options = build_options(topic, settings, flags)
    reader = build_reader(flags)
    if STANDARD_INPUT in names and sys.stdin is None:
        raise click.UsageError("there is no standard input to read from")
    _check_files(names)
    is_prompt = names == (STANDARD_INPUT,) and is_typed()
    if is_prompt and can_ask():
        how = "" if flags["whole"] else ", each ended by --delimiter" if flags["delimiter"] else ", one a line"
        say(f"Type records for {options.shown_topic}{how}; Ctrl-D ends.", err=True)
    delimiter = None if flags["whole"] else parse_delimiter(flags["delimiter"])
    source = Input(names, None if sys.stdin is None else sys.stdin.fileno(), delimiter, options.record_bytes_max)
    return _run(settings, options, reader, source, ">" if is_prompt else "", flags)


def _run(
    settings: ClientSettings, options: ProduceOptions, reader: Reader, source: Input, prompt: str, flags: dict[str, Any]
) -> int:
    """Send everything, and say what is stored however that ends."""
    from ottla.cli.produce.run import Ledger, Terminated
    from ottla.cli.produce.run import produce as run

    ledger = Ledger()
    failure = ""
    code = 0
    gc.freeze()  # what is loaded by now stays: the collector need not walk it for every 700 records (10 % of the time)
    try:
        with_cluster(settings, lambda cluster: run(cluster, options, reader, source, ledger, prompt), is_patient=True)
    except KeyboardInterrupt:
        failure, code = "interrupted", INTERRUPTED
    except Terminated as end:
        failure, code = str(end), end.exit_code
    except UnsupportedVersionError as error:
        hint = ". Without exactly-once storage an older broker may do: --command-property enable.idempotence=false"
        failure, code = explain(error).removesuffix(".") + hint, 1
    except (OttlaError, OSError) as error:
        failure, code = explain(error), 1
    finally:
        gc.unfreeze()
    verb = "sent without confirmation (acks=0) to" if options.client.get("acks") == "0" else "stored in"
    total = ledger.total(options.shown_topic, verb)
    if failure:
        if prompt:
            say("", err=True)  # the cursor is behind the prompt
        warn(f"{failure.removesuffix('.')}. {total}")
    elif not flags["quiet"]:
        say(f"{total}.", err=True)
    if flags["summary"]:
        partitions = [
            {
                "topic": topic,
                "partition": partition,
                "records": each.records,
                "firstOffset": each.first_offset,
                "lastOffset": each.last_offset,
            }
            for (topic, partition), each in sorted(ledger.partitions.items())
        ]
        left = ledger.read - ledger.stored
        print_json({"topic": options.topic, "records": ledger.stored, "notStored": left, "partitions": partitions})
    return code


def _topic_and_files(name: str | None, files: tuple[str, ...], flags: dict[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    topic: str | None = flags["topic"]
    if topic is None:
        topic = name
    elif name is not None:
        files = (name, *files)  # all that is left are files
    if not topic and not flags["is_json"]:
        raise click.UsageError("name the topic to send to, for example: ottla produce orders")
    return topic or None, files or (STANDARD_INPUT,)


def _check_files(names: tuple[str, ...]) -> None:
    """Refuse files that cannot be read before any record is sent."""
    for name in names:
        if name == STANDARD_INPUT:
            continue
        try:
            if os.path.isdir(name):
                raise click.UsageError(f"{name} is a directory: name the files in it, such as {name.rstrip('/')}/*")
            os.stat(name)
            if not os.access(name, os.R_OK):
                raise click.UsageError(f"{name} cannot be read: permission denied")
        except OSError as error:
            raise click.UsageError(f"{name} cannot be read: {error.strerror}") from None


def build_reader(flags: dict[str, Any]) -> Reader:
    """The reader that the flags ask for."""
    line_reader = flags["line_reader"]
    if line_reader is not None and line_reader not in LINE_READERS:
        raise click.UsageError(f"--line-reader {line_reader}: Java classes cannot run here; use reader properties")
    properties = read_properties(flags["reader_config"]) if flags["reader_config"] else {}
    properties |= parse_pairs(flags["reader_property"], "--reader-property")
    headers = parse_headers(flags["header"])
    if flags["key_separator"] is not None:
        separator = unescape(flags["key_separator"], "--key-separator")
        properties |= {"parse.key": "true", "key.separator": os.fsdecode(separator)}
    if flags["is_json"]:
        if properties:
            raise click.UsageError(f"--json and {next(iter(properties))} both say what a line is: choose one")
        return JsonReader(headers, keeps_partitions=not flags["repartition"])
    if flags["repartition"]:
        raise click.UsageError("--repartition needs --json: lines name no partitions")
    line_format = build_format(properties)
    if line_format.parse_key and flags["key"] is not None:
        raise click.UsageError("--key and parse.key both say what the keys are: choose one")
    return LineReader(line_format, headers)


def build_options(topic: str | None, settings: ClientSettings, flags: dict[str, Any]) -> ProduceOptions:
    """Flags first, then client properties, then defaults."""
    if flags["whole"] and flags["delimiter"] is not None:
        raise click.UsageError("--whole and --delimiter: a whole file has no delimiters; choose one")
    given = {name: value for name, value in settings.properties.items() if name in KNOWN and name not in NOT_PASSED_ON}
    given |= {name: str(flags[flag]) for flag, name in SETTING_FLAGS.items() if flags[flag] is not None}
    if flags["acks"] in ("0", "1"):
        given.setdefault("enable.idempotence", "false")  # who gives the flag needs no warning
    if "transactional.id" in settings.properties:
        raise click.UsageError("transactional.id: this command uses no transactions; leave the setting out")
    login = login_for(settings.properties)
    max_block = settings.properties.get("max.block.ms")
    try:
        made = producer_settings(None, given | ({} if max_block is None else {"max.block.ms": max_block}), login)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    max_block_ms = MAX_BLOCK_MS if max_block is None else made.max_block_ms
    return ProduceOptions(
        topic=topic,
        partition=flags["partition"],
        key=None if flags["key"] is None else os.fsencode(flags["key"]),
        timestamp_ms=None if flags["timestamp"] is None else parse_time_ms(flags["timestamp"], "--timestamp"),
        max_block_ms=max_block_ms if flags["max_block_ms"] is None else flags["max_block_ms"],
        record_bytes_max=min(made.max_request_size, made.buffer_memory),
        sync=flags["sync"],
        client=given | {"max.block.ms": FOREVER_MS},
        login=login,
    )


def parse_headers(texts: tuple[str, ...]) -> Headers:
    """`NAME=VALUE` flags as headers, in their order. A name may come twice."""
    headers: list[tuple[str, bytes | None]] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--header takes NAME=VALUE, not {text!r}")
        headers.append((name, os.fsencode(value)))
    return tuple(headers)
