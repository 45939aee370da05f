"""What the scripts in Apache Kafka's bin/ are here: `kafka-topics.sh` is `ottla topics`. Imported for unknown commands only."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

_SUFFIX = re.compile(r"\.(sh|bat|cmd)$")

SAME_OPTIONS: dict[str, str] = {
    "kafka-broker-api-versions": "brokers api-versions",
    "kafka-cluster": "cluster",
    "kafka-configs": "configs",
    "kafka-console-consumer": "consume",
    "kafka-console-producer": "produce",
    "kafka-consumer-groups": "groups",
    "kafka-consumer-perf-test": "perf consume",
    "kafka-delete-records": "delete-records",
    "kafka-dump-log": "dump-log",
    "kafka-e2e-latency": "perf latency",
    "kafka-features": "features",
    "kafka-get-offsets": "get-offsets",
    "kafka-leader-election": "elect-leaders",
    "kafka-log-dirs": "log-dirs",
    "kafka-metadata-quorum": "quorum",
    "kafka-preferred-replica-election": "elect-leaders --all",
    "kafka-producer-perf-test": "perf produce",
    "kafka-reassign-partitions": "reassign",
    "kafka-storage": "storage",
    "kafka-topics": "topics",
    "kafka-transactions": "transactions",
    "kafka-verifiable-consumer": "verifiable-consumer",
    "kafka-verifiable-producer": "verifiable-producer",
}
"""Scripts → the command that takes the same options."""

_NO_ZOOKEEPER = (
    "Kafka 4 has no ZooKeeper, and nothing has to run beside a node: `ottla up` starts one, and `ottla server start "
    "server.properties` starts one from a file"
)
_NO_SHARE_GROUPS = "there are no share groups yet: `ottla consume` reads without a group, or as a member of one with --group"
_NO_CONNECT = "Ottla has no Connect workers; Apache Kafka's work with Ottla's brokers"
_NO_STREAMS = "Ottla has no Kafka Streams; Apache Kafka's works with Ottla's brokers"
_NO_ACLS = "Ottla has no access control yet; of other clusters, ottla.Admin changes ACLs: admin.create_acls(…)"

SENTENCES: dict[str, str] = {
    "connect-distributed": _NO_CONNECT,
    "connect-mirror-maker": _NO_CONNECT,
    "connect-plugin-path": _NO_CONNECT,
    "connect-standalone": _NO_CONNECT,
    "kafka-acls": _NO_ACLS,
    "kafka-client-metrics": "write `ottla configs alter --entity-type client-metrics …`",
    "kafka-console-share-consumer": _NO_SHARE_GROUPS,
    "kafka-delegation-tokens": "no command does this; ottla.Admin does: admin.create_delegation_token(…)",
    "kafka-groups": "write `ottla groups list`",
    "kafka-jmx": "there is no JMX: set ottla.metrics.port, and Prometheus reads the metrics of a node there",
    "kafka-metadata-shell": "write `ottla dump-log --cluster-metadata-decoder --files FILE` for a segment or a snapshot",
    "kafka-mirror-maker": _NO_CONNECT,
    "kafka-replica-verification": "write `ottla topics describe --check`",
    "kafka-consumer-offset-checker": "write `ottla groups describe GROUP`, which shows offsets and lag",
    "kafka-run-class": "Java classes cannot run here: name the command itself, such as `ottla dump-log` or `ottla get-offsets`",
    "kafka-simple-consumer-shell": "write `ottla consume TOPIC --partition 0 --offset earliest`",
    "kafka-server-start": (
        "write `ottla server start server.properties`, or `ottla up` for a node with sane defaults and no file; "
        "`ottla storage sample` writes a file to begin with"
    ),
    "kafka-server-stop": "end a node with Ctrl-C, or with SIGTERM to its process: kill PID",
    "kafka-share-consumer-perf-test": _NO_SHARE_GROUPS,
    "kafka-share-groups": _NO_SHARE_GROUPS,
    "kafka-streams-application-reset": _NO_STREAMS,
    "kafka-streams-groups": _NO_STREAMS,
    "kafka-verifiable-share-consumer": _NO_SHARE_GROUPS,
    "trogdor": "Ottla has no Trogdor; `ottla perf` measures, and ottla.testing injects faults",
    "zookeeper-security-migration": _NO_ZOOKEEPER,
    "zookeeper-server-start": _NO_ZOOKEEPER,
    "zookeeper-server-stop": _NO_ZOOKEEPER,
    "zookeeper-shell": f"{_NO_ZOOKEEPER}. `ottla cluster describe` and `ottla quorum describe` show what ZooKeeper kept",
}
"""Scripts without such a command → what to do instead."""


CLASSES: dict[str, str] = {
    "BrokerApiVersionsCommand": "kafka-broker-api-versions",
    "ClusterTool": "kafka-cluster",
    "ConfigCommand": "kafka-configs",
    "ConsoleConsumer": "kafka-console-consumer",
    "ConsoleProducer": "kafka-console-producer",
    "ConsumerGroupCommand": "kafka-consumer-groups",
    "ConsumerOffsetChecker": "kafka-consumer-offset-checker",
    "ConsumerPerformance": "kafka-consumer-perf-test",
    "DeleteRecordsCommand": "kafka-delete-records",
    "DumpLogSegments": "kafka-dump-log",
    "EndToEndLatency": "kafka-e2e-latency",
    "FeatureCommand": "kafka-features",
    "GetOffsetShell": "kafka-get-offsets",
    "JmxTool": "kafka-jmx",
    "LeaderElectionCommand": "kafka-leader-election",
    "LogDirsCommand": "kafka-log-dirs",
    "MetadataQuorumCommand": "kafka-metadata-quorum",
    "ProducerPerformance": "kafka-producer-perf-test",
    "ReassignPartitionsCommand": "kafka-reassign-partitions",
    "SimpleConsumerShell": "kafka-simple-consumer-shell",
    "StorageTool": "kafka-storage",
    "TopicCommand": "kafka-topics",
    "TransactionsCommand": "kafka-transactions",
}
"""Classes that books give to kafka-run-class → the script that runs them."""


def spelling(words: Sequence[str]) -> str | None:
    """The sentence for a command line that begins with the name of one of Kafka's scripts; None for other names."""
    script = _SUFFIX.sub("", words[0].replace("\\", "/").rpartition("/")[2])
    if script == "kafka-run-class" and len(words) > 1 and (run := CLASSES.get(words[1].rpartition(".")[2])) is not None:
        return spelling([run, *words[2:]])
    for name in (script, f"kafka-{script}"):
        if (command := SAME_OPTIONS.get(name)) is not None:
            return f"{words[0]} is `ottla {command}` here: ottla {command} {shlex.join(words[1:])}".rstrip()
        if name in SENTENCES:
            return f"there is no {words[0]} here: {SENTENCES[name]}"
    return None
