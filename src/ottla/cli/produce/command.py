"""The `produce` verb: its flags, which include those of kafka-console-producer, and the options they result in."""

from __future__ import annotations

import sys
from typing import Any

import click

from ottla.cli.common.completion import complete_topics
from ottla.cli.common.options import cluster_options, json_option
from ottla.cli.common.output import can_ask, is_typed, print_json, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings, parse_pairs, read_properties, whole_number
from ottla.cli.produce.lines import LineReader, build_format
from ottla.cli.produce.options import ProduceOptions
from ottla.errors.texts import counted
from ottla.records.compression import Codec

EXAMPLES = """\b
Examples:
  ottla produce orders                                     type records, one a line; Ctrl-D ends
  cat orders.txt | ottla produce orders --compression zstd
  ottla produce orders --key-separator : < pairs.txt       key:value
  ottla produce orders --reader-property parse.headers=true < lines.txt
\b
Reader properties: parse.key, key.separator (tab), parse.headers, headers.delimiter (tab), headers.separator (,),
headers.key.separator (:), null.marker, ignore.error. With all of them a line is h1:v1,h2:v2<tab>key<tab>value.
"""

KNOWN = frozenset(
    {
        "acks",
        "batch.size",
        "buffer.memory",
        "compression.type",
        "delivery.timeout.ms",
        "enable.idempotence",
        "key.serializer",
        "linger.ms",
        "max.block.ms",
        "retries",
        "value.serializer",
    }
)
LINE_READERS = ("org.apache.kafka.tools.LineMessageReader", "kafka.tools.ConsoleProducer$LineMessageReader")
ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}


@click.command("produce", epilog=EXAMPLES)
@click.argument("name", required=False, metavar="[TOPIC]", shell_complete=complete_topics)
@click.option("--topic", metavar="NAME", shell_complete=complete_topics, help="Kafka's spelling of TOPIC.")
@click.option("--partition", type=click.IntRange(0), help="Send all records to this partition.  [default: by key, else sticky]")
@click.option("--key-separator", metavar="TEXT", help="Lines are KEY TEXT VALUE; short for parse.key and key.separator.")
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
    type=click.Choice(list(ACKS)),
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
@click.option("--metadata-expiry-ms", type=int, hidden=True)
@click.option("--sync", is_flag=True, help="Wait for each record to be stored before the next is sent.")
@json_option
@cluster_options(known=KNOWN, old_config_flag="producer")
def produce(settings: ClientSettings, name: str | None, topic: str | None, as_json: bool, **flags: Any) -> None:
    """Send lines as records to TOPIC: from a pipe or file, or typed at a prompt.

    By default every record is stored exactly once and in order, also after retries (idempotent, acks=all). The exit code is 1
    if any record could not be stored. A topic that does not exist is created if the brokers have auto.create.topics.enable.
    """
    if (name is None) == (topic is None):
        raise click.UsageError("name the topic to send to, for example: ottla produce orders")
    line_reader = flags["line_reader"]
    if line_reader is not None and line_reader not in LINE_READERS:
        raise click.UsageError(f"--line-reader {line_reader}: Java classes cannot run here; use reader properties")
    options = build_options(name or topic or "", settings, flags)
    reader = LineReader(build_format(_reader_properties(flags)))
    settings = with_flags(settings, flags)
    if sys.stdin is None:
        raise click.UsageError("there is no standard input to read lines from")
    if can_ask():
        say(f"Type records for {options.topic}, one a line; Ctrl-D ends.", err=True)
    from ottla.cli.produce.running import produce_lines

    produced = with_cluster(
        settings, lambda cluster: produce_lines(cluster, options, reader, sys.stdin.fileno(), ">" if is_typed() else "")
    )
    if as_json:
        partitions = [
            {"partition": index, "records": each.records, "firstOffset": each.first_offset, "lastOffset": each.last_offset}
            for index, each in produced.partitions.items()
        ]
        print_json({"topic": options.topic, "records": produced.records, "partitions": partitions})
    elif sys.stderr.isatty():
        say(f"{counted(produced.records, 'record')} stored in {options.topic}.", err=True)


def _reader_properties(flags: dict[str, Any]) -> dict[str, str]:
    properties = read_properties(flags["reader_config"]) if flags["reader_config"] else {}
    properties |= parse_pairs(flags["reader_property"], "--reader-property")
    if flags["key_separator"] is not None:
        properties |= {"parse.key": "true", "key.separator": flags["key_separator"]}
    return properties


def build_options(topic: str, settings: ClientSettings, flags: dict[str, Any]) -> ProduceOptions:
    """Flags first, then client properties, then defaults."""
    properties = settings.properties

    def number(flag: str, name: str, default: int) -> int:
        if flags.get(flag) is not None:
            return int(flags[flag])
        return whole_number(name, properties[name], 0) if name in properties else default

    acks_text = flags["acks"] or properties.get("acks", "all").strip().lower()
    if acks_text not in ACKS:
        raise click.UsageError(f"acks must be all (-1), 1 or 0, not {acks_text!r}")
    codec_text = flags["compression"] or properties.get("compression.type", "none").strip().lower()
    codec = next((each for each in Codec if each.title == codec_text), None)
    if codec is None:
        raise click.UsageError(f"compression.type must be one of {', '.join(each.title for each in Codec)}, not {codec_text!r}")
    acks = ACKS[acks_text]
    idempotence = properties.get("enable.idempotence")
    if idempotence is not None and idempotence.strip().lower() == "true" and acks != -1:
        raise click.UsageError("enable.idempotence needs acks=all: set one or the other")
    defaults = ProduceOptions(topic)
    return ProduceOptions(
        topic=topic,
        partition=flags["partition"],
        acks=acks,
        idempotent=acks == -1 and (idempotence is None or idempotence.strip().lower() == "true"),
        codec=codec,
        batch_bytes=number("batch_size", "batch.size", defaults.batch_bytes),
        buffer_bytes=number("max_memory_bytes", "buffer.memory", defaults.buffer_bytes),
        linger_ms=number("linger_ms", "linger.ms", 0),
        max_block_ms=number("max_block_ms", "max.block.ms", defaults.max_block_ms),
        delivery_timeout_ms=number("", "delivery.timeout.ms", defaults.delivery_timeout_ms),
        retries=number("message_send_max_retries", "retries", defaults.retries),
        sync=flags["sync"],
    )


def with_flags(settings: ClientSettings, flags: dict[str, Any]) -> ClientSettings:
    """`settings` changed by those of Kafka's flags that are client settings."""
    from dataclasses import replace

    names = {
        "request_timeout_ms": "request_timeout_ms",
        "retry_backoff_ms": "retry_backoff_ms",
        "socket_buffer_size": "send_buffer_bytes",
    }
    given = {attribute: flags[flag] for flag, attribute in names.items() if flags[flag] is not None}
    if flags["metadata_expiry_ms"] is not None:
        warn("--metadata-expiry-ms is ignored: metadata is requested when it is needed")
    return replace(settings, **given)
