"""Runs the scenarios of tool calls and makes their outputs comparable: what differs between any two servers is replaced."""

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.compat.broker.tools.tool_scenarios import FILES, Call
from tests.support.peers.topics import await_leaders
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.kafka_tools import KafkaTools

UUID = "[A-Za-z0-9_-]{22}"
REPLACEMENTS = (
    (rf"(TopicId: |\"directoryId\": \"){UUID}", r"\1UUID"),
    (rf"^(\d+\s+){UUID}\b", r"\1UUID"),
    (r"\"log_dirs\":\[[^]]*\]", '"log_dirs":[D]'),
    (r"(HighWatermark|LeaderEpoch|MaxFollowerLagTimeMs):(\s+)\d+", r"\1: N"),
    (r"Epoch: \d+", "Epoch: N"),
    (r"CreateTime:\d+", "CreateTime:T"),
    (r"^\d+ +\t(\d+ +\t-?\d+ +\t\d+ +\t)\d{13}\t", r"P\t\1T\t"),
    (r"^(Could not \w+ \S+ to \d+\.) .*", r"\1"),
    (r"(records/sec|MB/sec|ms avg latency|ms max latency|ms [\d.]+th)", r"\1"),
)
"""Numbers that differ from run to run, by the text around them."""


SETTLE_S, SETTLE_TRIES_MAX = 0.3, 10


@dataclass(frozen=True, slots=True)
class Said:
    """The output of one call, made comparable."""

    call: str
    rc: int
    stdout: list[str]
    stderr: list[str]


def run_scenario(tools: KafkaTools, server: KafkaServer, calls: Sequence[Call], folder: Path) -> list[Said]:
    """All calls in turn."""
    one, _, two = str(server.properties["log.dirs"]).partition(",")
    names = {"broker": server.bootstrap, "controller": server.controller_bootstrap, "one": one, "two": two}
    known = {value: f"<{name}>" for name, value in names.items() if value} | {str(folder): "<folder>"}
    known |= {str(server.controller_port): "<controller-port>", str(server.port): "<broker-port>"}
    said = []
    for call in calls:
        arguments = [_filled(word, names, folder) for word in call.arguments.split()]
        found = _run(tools, call, arguments, known)
        if call.tool == "topics" and "--create" in arguments and found.rc == 0:
            name = arguments[arguments.index("--topic") + 1]
            await_leaders(server.bootstrap, name)
        for _ in range(SETTLE_TRIES_MAX if call.settles else 0):
            time.sleep(SETTLE_S)
            before, found = found, _run(tools, call, arguments, known)
            if before == found:
                break
        said.append(found)
    return said


def _run(tools: KafkaTools, call: Call, arguments: list[str], known: dict[str, str]) -> Said:
    result = tools.run(call.tool, *arguments, stdin=call.stdin, check=False)
    stdout, stderr = (_comparable(call.tool, text, known, result.rc) for text in (result.stdout, result.stderr))
    return Said(f"{call.tool} {call.arguments}", result.rc, sorted(stdout) if call.any_order else stdout, stderr)


def _filled(word: str, names: dict[str, str], folder: Path) -> str:
    named = re.fullmatch(r"\{file:(.*)\}", word)
    if named:
        path = folder / f"{named[1]}.json"
        path.write_text(FILES[named[1]])
        return str(path)
    return word.format_map(names) if "{" in word and "}" in word else word


def _comparable(tool: str, text: str, known: dict[str, str], rc: int) -> list[str]:
    for value in sorted(known, key=len, reverse=True):
        # A port is not a part of a longer number, as of a timestamp.
        text = re.sub(rf"(?<!\d){re.escape(value)}(?!\d)", known[value], text)
    if tool == "log_dirs":
        return [_sorted_json(line) for line in text.splitlines()]
    if tool == "producer_performance":
        return re.findall(r"^\d+ records sent", text, flags=re.MULTILINE)[-1:]
    if tool == "metadata_quorum":
        text = _without_numbers(text)
    if tool == "features":
        text = _without_groups(text)
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    if re.search(r"[a-z]Exception\b|[Ee]rror", text) and (rc != 0 or "Exception" in text):
        return _errors(text)
    return sorted(map(_sorted_configs, text.splitlines())) if tool == "topics" else text.splitlines()


def _sorted_configs(line: str) -> str:
    """A line about a topic, with its settings sorted: Apache prints them in the order of a hash table."""
    head, mark, configs = line.partition("Configs: ")
    return head + mark + ",".join(sorted(re.split(r",(?=[a-z.]+=)", configs)))


def _without_groups(text: str) -> str:
    """Features without those of share and streams groups, which Ottla keeps at level 0 until it serves such groups."""
    kept = [line for line in text.splitlines() if not line.startswith(("Feature: share.version", "Feature: streams.version"))]
    return "\n".join(kept)


def _errors(text: str) -> list[str]:
    """Only the kind of a failure: each server words its errors itself."""
    kinds = re.findall(r"\b(\w+Exception)\b", text)
    first = text.splitlines()[0].split(":")[0].strip()
    return [first if "rror" in first else "", *sorted(set(kinds))]


def _without_numbers(text: str) -> str:
    """The replication table: its columns without offsets and times, which move while it is made."""
    lines = []
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) > 5 and fields[0].strip().isdigit():
            line = "\t".join([fields[0].strip(), "UUID", fields[3].strip(), fields[-2].strip() or fields[-1].strip()])
        lines.append(line)
    return "\n".join(lines)


def _sorted_json(line: str) -> str:
    """Log directories and, separately, partitions with their sizes: the broker chooses the directory of a partition."""
    if not line.startswith("{"):
        return line
    data = json.loads(line)
    for broker in data["brokers"]:
        parts = [(part["partition"], part["isFuture"]) for folder in broker["logDirs"] for part in folder.pop("partitions")]
        broker["partitions"] = sorted(parts)
        broker["logDirs"].sort(key=lambda each: str(each["logDir"]))
    return json.dumps(data, sort_keys=True)
