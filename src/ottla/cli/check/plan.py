"""`ottla check --plan`: what a load needs: partitions, disk, memory, network, files. With the formulas, to argue about."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import click

from ottla.broker.checks.findings import size_text
from ottla.cli.common.output import is_for_people, print_json, print_table, say
from ottla.config.values import parse_duration_ms

PARTITION_BYTES_S = 10_000_000
"""One partition takes more, but one consumer of a group may not keep up."""
NODE_BYTES_S = 50_000_000
"""What one node (one loop) takes in, replicas included: docs/benchmarks.md has it at 59 MB/s with two others on two cores."""
DISK_FACTOR = 1.3
"""Compaction doubles the largest log for a while; segments are deleted whole."""
FULL_SHARE = 0.85
CACHE_S = 30
"""Records of the last 30 s are read from memory, as Kafka advises."""
PROCESS_BYTES, PARTITION_MEMORY_BYTES = 35_000_000, 6_500
SEGMENT_BYTES = 1 << 30
FILES_OPEN = 3
CONNECTIONS, OTHER_FILES = 1_000, 1_024
NETWORK_SHARE = 0.6
"""A link that is fuller has no room for a replica that catches up."""
_FACTORS = {
    "": 1,
    "b": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 1 << 10,
    "mi": 1 << 20,
    "gi": 1 << 30,
    "ti": 1 << 40,
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgt]i?)?b?(?:/s)?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Load:
    """What is to be carried, over all topics."""

    rate: float
    """Bytes per second from producers."""
    record_bytes: float = 1_000
    retention_s: float = 7 * 86_400
    replicas: int = 3
    consumers: int = 1
    """Groups that read everything."""
    brokers: int | None = None


class Need(NamedTuple):
    """One line of a plan."""

    id: str
    name: str
    value: float
    text: str
    formula: str


def plan_for(load: Load) -> list[Need]:
    """What `load` needs."""
    rate, replicas = load.rate, load.replicas
    brokers = load.brokers or max(replicas, math.ceil(rate * replicas / NODE_BYTES_S))
    if brokers < replicas:
        raise click.UsageError(f"--brokers {brokers} cannot keep --replicas {replicas}: each replica needs a broker of its own")
    partitions = math.ceil(max(rate / PARTITION_BYTES_S, brokers) / brokers) * brokers
    here = math.ceil(partitions * replicas / brokers)
    rate_in = rate * replicas / brokers
    rate_out = rate * (replicas - 1 + load.consumers) / brokers
    disk = rate * load.retention_s * replicas * DISK_FACTOR / FULL_SHARE / brokers
    partition_bytes = rate * load.retention_s / partitions
    segments = math.ceil(partition_bytes / SEGMENT_BYTES)
    memory = rate_in * CACHE_S + PROCESS_BYTES + here * PARTITION_MEMORY_BYTES
    files = FILES_OPEN * here + CONNECTIONS + OTHER_FILES
    link = max(rate_in, rate_out) * 8 / NETWORK_SHARE
    per_s = rate / load.record_bytes
    size, rate_text = size_text, f"{size_text(rate)}/s"
    per_node = f"rate × replicas / {size(NODE_BYTES_S)}/s a node, at least one for each of {replicas} replicas"
    whole = f"{_days(load.retention_s)} × {replicas} replicas × {DISK_FACTOR} for compaction"
    cache = f"{size(rate_in)}/s in × {CACHE_S} s of page cache"
    own = f"{size(PROCESS_BYTES)} + {here:,} replicas × {size(PARTITION_MEMORY_BYTES)}"
    segments_text = f"{FILES_OPEN * segments * here:,}"
    return [
        Need("records_per_s", "Records", per_s, f"{per_s:,.0f} a second",
             f"rate {rate_text} / record {size(load.record_bytes)}"),
        Need("brokers", "Brokers", brokers, str(brokers), "given" if load.brokers else per_node),
        Need("partitions", "Partitions", partitions, str(partitions),
             f"rate / {size(PARTITION_BYTES_S)}/s, at least one a broker, a multiple of {brokers} brokers"),
        Need("disk_bytes", "Disk, each broker", disk, size(disk), f"rate × {whole} / {FULL_SHARE} full at most / brokers"),
        Need("memory_bytes", "Memory, each broker", memory, size(memory),
             f"{cache} + {own}; more for consumers that are far behind"),
        Need("network_in_bytes_per_s", "Network in", rate_in, f"{size(rate_in)}/s", "rate × replicas / brokers"),
        Need("network_out_bytes_per_s", "Network out", rate_out, f"{size(rate_out)}/s",
             f"rate × ({replicas} replicas − 1 + {load.consumers} groups) / brokers"),
        Need("link_bits_per_s", "Link, each broker", link, f"{link / 1e9:.2g} Gbit/s",
             f"the larger of both × 8 / {NETWORK_SHARE} full at most"),
        Need("files_on_disk", "Files on disk", FILES_OPEN * segments * here, segments_text,
             f"{FILES_OPEN} × {segments:,} segments of {size(SEGMENT_BYTES)} × {here:,} replicas"),
        Need("open_files", "Open files", files, f"{files:,}",
             f"{FILES_OPEN} × {here:,} replicas + {CONNECTIONS:,} connections + {OTHER_FILES:,}"),
    ]  # fmt: skip


def _days(seconds: float) -> str:
    return f"{seconds / 86_400:g} days" if seconds >= 86_400 else f"{seconds / 3600:.3g} hours"


def show_plan(flags: Mapping[str, Any], as_json: bool) -> int:
    """Print the plan for the flags of the command."""
    if flags["rate"] is None:
        raise click.UsageError("--plan needs a load: --rate 50MB is what producers send in a second, over all topics")
    retention = flags["retention"] or "7d"
    retention_ms = parse_duration_ms(retention)
    if not retention_ms:
        raise click.UsageError(f"--retention does not understand {retention!r}: give 90m, 24h or 7d")
    load = Load(
        parse_size(flags["rate"], "--rate"),
        parse_size(flags["record_size"] or "1kB", "--record-size"),
        retention_ms / 1000,
        flags["replicas"] or 3,
        1 if flags["consumers"] is None else flags["consumers"],
        flags["brokers"],
    )
    needs = plan_for(load)
    if as_json:
        print_json({each.id: {"value": round(each.value), "text": each.text, "formula": each.formula} for each in needs})
    elif is_for_people():
        print_table(
            "What this load needs", ("Need", "Value", "=Formula"), [(each.name, each.text, each.formula) for each in needs]
        )
    else:
        for each in needs:
            say(f"{each.name}: {each.text} = {each.formula}")
    return 0


def parse_size(text: str, flag: str) -> float:
    """`512`, `10kB`, `1.5GiB`, `50MB/s`."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or not float(match[1]):
        raise click.UsageError(
            f"{flag} does not understand {text!r}: give a number of bytes above 0, such as 512, 10kB or 1.5GB"
        )
    return float(match[1]) * _FACTORS[(match[2] or "").lower()]
