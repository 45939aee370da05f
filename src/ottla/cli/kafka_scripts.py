"""What the scripts in Apache Kafka's bin/ are here: `kafka-topics.sh` is `ottla topics`. Imported for unknown commands only.

`python -m ottla.cli.kafka_scripts FOLDER` writes them as scripts: the image has them on its PATH.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

_SUFFIX = re.compile(r"\.(sh|bat|cmd)$")

SAME_OPTIONS: dict[str, str] = {
    "kafka-acls": "acls",
    "kafka-broker-api-versions": "brokers api-versions",
    "kafka-client-metrics": "client-metrics",
    "kafka-cluster": "cluster",
    "kafka-configs": "configs",
    "kafka-console-consumer": "consume",
    "kafka-console-producer": "produce",
    "kafka-consumer-groups": "groups",
    "kafka-consumer-perf-test": "perf consume",
    "kafka-delegation-tokens": "tokens",
    "kafka-delete-records": "delete-records",
    "kafka-dump-log": "dump-log",
    "kafka-e2e-latency": "perf latency",
    "kafka-features": "features",
    "kafka-get-offsets": "get-offsets",
    "kafka-leader-election": "elect-leaders",
    "kafka-log-dirs": "log-dirs",
    "kafka-metadata-quorum": "quorum",
    "kafka-producer-perf-test": "perf produce",
    "kafka-reassign-partitions": "reassign",
    "kafka-storage": "storage",
    "kafka-topics": "topics",
    "kafka-transactions": "transactions",
    "kafka-verifiable-consumer": "verifiable-consumer",
    "kafka-verifiable-producer": "verifiable-producer",
}
"""Scripts → the command that takes the same options."""

SENTENCES: dict[str, str] = {
    "connect-distributed": "Ottla has no Connect workers; Apache Kafka's work with Ottla's brokers",
    "connect-standalone": "Ottla has no Connect workers; Apache Kafka's work with Ottla's brokers",
    "kafka-groups": "write `ottla groups list`",
    "kafka-metadata-shell": "write `ottla dump-log --cluster-metadata-decoder --files FILE` for a segment or a snapshot",
    "kafka-run-class": "Java classes cannot run here: name the command itself, such as `ottla dump-log` or `ottla get-offsets`",
    "kafka-server-start": (
        "write `ottla server start server.properties`, or `ottla up` for a node with sane defaults and no file; "
        "`ottla storage sample` writes a file to begin with"
    ),
    "kafka-server-stop": "end a node with Ctrl-C, or with SIGTERM to its process: kill PID",
    "zookeeper-server-start": (
        "Kafka 4 has no ZooKeeper, and nothing has to run beside a node: `ottla up` starts one, and `ottla server start "
        "server.properties` starts one from a file"
    ),
}
"""Scripts without such a command → what to do instead."""


def spelling(words: Sequence[str]) -> str | None:
    """The sentence for a command line that begins with the name of one of Kafka's scripts; None for other names."""
    script = _SUFFIX.sub("", words[0].replace("\\", "/").rpartition("/")[2])
    for name in (script, f"kafka-{script}"):
        if (command := SAME_OPTIONS.get(name)) is not None:
            return f"{words[0]} is `ottla {command}` here: ottla {command} {shlex.join(words[1:])}".rstrip()
        if name in SENTENCES:
            return f"there is no {words[0]} here: {SENTENCES[name]}"
    if script.startswith(("kafka-", "connect-", "zookeeper-")):
        return f"there is no {words[0]} here: `ottla --help` lists the commands"
    return None


_OF_IMAGES = {
    "kafka-server-start": 'exec ottla server start "$@"',
    "kafka-server-stop": "exec kill -s TERM 1",
    "zookeeper-server-start": "echo 'Kafka 4 has no ZooKeeper, and nothing has to run beside a node.' >&2",
}
"""Scripts that an image has besides, where a node is process 1. Start scripts for older images begin with ZooKeeper."""


def write_scripts(folder: Path) -> None:
    """Write a shell script for each of Kafka's names, with the suffix of Apache's images, and without as in Confluent's."""
    lines = {name: f'exec ottla {command} "$@"' for name, command in SAME_OPTIONS.items()}
    lines |= {
        name: f"echo {shlex.quote(f'there is no {name} here: {sentence}')} >&2; exit 1" for name, sentence in SENTENCES.items()
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, line in sorted((lines | _OF_IMAGES).items()):
        script = folder / f"{name}.sh"
        script.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        script.chmod(0o755)
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(script.name)


if __name__ == "__main__":
    import sys

    write_scripts(Path(sys.argv[1]))
