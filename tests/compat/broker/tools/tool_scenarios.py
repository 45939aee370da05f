"""The calls of Kafka's command line tools, in order: one list per subject, the same for Apache Kafka and Ottla.

Placeholders: `{broker}` and `{controller}` are addresses, `{one}` and `{two}` the log directories, `{file:NAME}` the path of a
file with the text `FILES[NAME]`. The scenarios run in order on one server, which is new.
"""

from dataclasses import dataclass

from tests.support.servers.kafka_server import HANG_S


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool (a name in `kafka_tools.TOOLS`), its arguments separated by blanks, and its standard input.

    With `settles` it is repeated until it prints the same twice: Apache's broker applies changes later than its controller.
    With `any_order` the lines of its output are sorted: records of several partitions come in any order.
    """

    tool: str
    arguments: str
    stdin: str = ""
    settles: bool = False
    any_order: bool = False


FILES = {
    "delete": '{"version": 1, "partitions": [{"topic": "records", "partition": 0, "offset": 3}]}',
    "delete-too-far": '{"version": 1, "partitions": [{"topic": "records", "partition": 0, "offset": 300}]}',
    "elect": '{"partitions": [{"topic": "records", "partition": 0}]}',
    "stay": '{"version": 1, "partitions": [{"topic": "spread", "partition": 0, "replicas": [1]}]}',
    "away": '{"version": 1, "partitions": [{"topic": "spread", "partition": 0, "replicas": [7]}]}',
    "spread": '{"version": 1, "topics": [{"topic": "spread"}]}',
}

READ_TIMEOUT_MS = HANG_S * 1000
"""Every consumer here ends after its `--max-messages`, so only a hang reaches this."""

BROKER, CONTROLLER = "--bootstrap-server {broker}", "--bootstrap-controller {controller}"


def _topics() -> list[Call]:
    made = [
        f"{BROKER} --create --topic plain --partitions 3 --replication-factor 1",
        f"{BROKER} --create --topic tuned --config retention.ms=1000000 --config cleanup.policy=compact",
        f"{BROKER} --create --topic placed --replica-assignment 1,1",
        f"{BROKER} --create --topic with.dot",
        f"{BROKER} --create --topic plain --if-not-exists",
        f"{BROKER} --create --topic plain",
        f"{BROKER} --create --topic too-many --partitions 1 --replication-factor 3",
        f"{BROKER} --create --topic none --partitions 0",
        f"{BROKER} --create --topic odd --config no.such.setting=1",
        f"{BROKER} --create --topic odd --config retention.ms=soon",
        f"{BROKER} --create --topic not/valid",
        f"{BROKER} --create --topic nowhere --replica-assignment 7",
    ]
    seen = [
        f"{BROKER} --list",
        f"{BROKER} --list --exclude-internal",
        f"{BROKER} --list --topic pl.*",
        f"{BROKER} --describe",
        f"{BROKER} --describe --topic plain",
        f"{BROKER} --describe --topic absent",
        f"{BROKER} --describe --topic absent --if-exists",
        f"{BROKER} --describe --topics-with-overrides",
        f"{BROKER} --describe --under-replicated-partitions",
        f"{BROKER} --describe --unavailable-partitions",
        f"{BROKER} --describe --at-min-isr-partitions",
        f"{BROKER} --describe --under-min-isr-partitions",
        f"{BROKER} --describe --topic plain --partition-size-limit-per-response 1",
    ]
    changed = [
        f"{BROKER} --alter --topic plain --partitions 5",
        f"{BROKER} --alter --topic plain --partitions 2",
        f"{BROKER} --alter --topic absent --partitions 2",
        f"{BROKER} --alter --topic absent --partitions 2 --if-exists",
        f"{BROKER} --alter --topic placed --partitions 3 --replica-assignment 1,1,1",
        f"{BROKER} --delete --topic tuned",
        f"{BROKER} --delete --topic absent",
        f"{BROKER} --delete --topic absent --if-exists",
        f"{BROKER} --list",
        f"{BROKER} --describe",
    ]
    return [Call("topics", arguments) for arguments in (*made, *seen, *changed)]


def _configs() -> list[Call]:
    topic, broker = "--entity-type topics --entity-name settings", "--entity-type brokers --entity-name 1"
    calls = [
        f"{BROKER} --alter {topic} --add-config retention.ms=60000,cleanup.policy=[compact,delete]",
        f"{BROKER} --describe {topic}",
        f"{BROKER} --describe {topic} --all",
        f"{BROKER} --alter {topic} --delete-config retention.ms",
        f"{BROKER} --alter {topic} --add-config retention.ms=never",
        f"{BROKER} --alter {topic} --add-config no.such=1",
        f"{BROKER} --alter --entity-type topics --entity-name absent --add-config retention.ms=1",
        f"{BROKER} --describe --entity-type topics",
        f"{BROKER} --describe {broker}",
        f"{BROKER} --alter {broker} --add-config log.cleaner.threads=2,log.retention.ms=900000000",
        f"{BROKER} --describe {broker}",
        f"{BROKER} --alter --entity-type brokers --entity-default --add-config log.segment.bytes=500000000",
        f"{BROKER} --describe --entity-type brokers --entity-default",
        f"{BROKER} --describe {topic} --all",
        f"{BROKER} --alter {broker} --add-config num.partitions=9",
        f"{BROKER} --alter {broker} --add-config log.cleaner.threads=0",
        f"{BROKER} --alter {broker} --delete-config log.cleaner.threads,log.retention.ms",
        f"{BROKER} --alter --entity-type brokers --entity-default --delete-config log.segment.bytes",
        f"{BROKER} --describe {broker}",
        f"{CONTROLLER} --alter {broker} --add-config log.cleaner.threads=2",
        f"{BROKER} --describe {broker}",
        f"{CONTROLLER} --alter {broker} --delete-config log.cleaner.threads",
    ]
    make = Call("topics", f"{BROKER} --create --topic settings --partitions 1")
    return [make, *(Call("configs", arguments, settles="--describe" in arguments) for arguments in calls)]


def _records() -> list[Call]:
    keyed = "--reader-property parse.key=true --reader-property key.separator=:"
    headed = f"{keyed} --reader-property parse.headers=true"
    shown = " ".join(
        f"--formatter-property print.{what}=true" for what in ("key", "headers", "partition", "offset", "timestamp")
    )
    read = f"{BROKER} --topic records --partition 0 --timeout-ms {READ_TIMEOUT_MS}"
    lines = "".join(f"line {number}\n" for number in range(20))
    return [
        Call("topics", f"{BROKER} --create --topic records --partitions 1"),
        Call("console_producer", f"{BROKER} --topic records", stdin=lines),
        Call("console_producer", f"{BROKER} --topic records {keyed} --command-property acks=1", stdin="a:one\nb:two\n"),
        Call("console_producer", f"{BROKER} --topic records {headed} --compression-codec zstd", stdin="h:1,i:2\tk:value\n"),
        Call("console_producer", f"{BROKER} --topic records --sync --compression-codec lz4", stdin="last\n"),
        Call("console_consumer", f"{read} --offset earliest --max-messages 24 {shown}"),
        Call("console_consumer", f"{read} --from-beginning --max-messages 3"),
        Call("console_consumer", f"{read} --offset 18 --max-messages 4 --isolation-level read_committed"),
        Call("console_consumer", f"{read} --offset 23 --max-messages 1 {shown}"),
        Call("get_offsets", f"{BROKER} --topic records"),
        Call("get_offsets", f"{BROKER} --topic-partitions records:0 --time earliest"),
        Call("get_offsets", f"{BROKER} --topic records --time -1"),
        Call("get_offsets", f"{BROKER} --topic records --time 0"),
        Call("get_offsets", f"{BROKER} --topic records --time earliest-local"),
        Call("get_offsets", f"{BROKER} --topic absent"),
        Call("delete_records", f"{BROKER} --offset-json-file {{file:delete}}"),
        Call("delete_records", f"{BROKER} --offset-json-file {{file:delete-too-far}}"),
        Call("get_offsets", f"{BROKER} --topic records --time earliest"),
        Call("console_consumer", f"{read} --from-beginning --max-messages 2"),
        Call("producer_performance", f"{BROKER} --topic records --num-records 2000 --record-size 50 --throughput -1"),
        Call(
            "producer_performance",
            f"{BROKER} --topic records --num-records 500 --record-size 50 --throughput -1 "
            "--command-property acks=1 --command-property enable.idempotence=false --command-property compression.type=gzip",
        ),
        Call("get_offsets", f"{BROKER} --topic records"),
    ]


def _cluster() -> list[Call]:
    return [
        Call("topics", f"{BROKER} --create --topic spread --partitions 4"),
        Call("producer_performance", f"{BROKER} --topic spread --num-records 1000 --record-size 50 --throughput -1"),
        Call("leader_election", f"{BROKER} --election-type preferred --path-to-json-file {{file:elect}}"),
        Call("leader_election", f"{BROKER} --election-type preferred --all-topic-partitions"),
        Call("leader_election", f"{BROKER} --election-type unclean --topic records --partition 9"),
        Call("reassign", f"{BROKER} --list"),
        Call("reassign", f"{BROKER} --generate --topics-to-move-json-file {{file:spread}} --broker-list 1"),
        Call("reassign", f"{BROKER} --execute --reassignment-json-file {{file:stay}} --throttle 50000000"),
        Call("reassign", f"{BROKER} --verify --reassignment-json-file {{file:stay}}"),
        Call("reassign", f"{BROKER} --cancel --reassignment-json-file {{file:stay}}"),
        Call("reassign", f"{BROKER} --execute --reassignment-json-file {{file:away}}"),
        Call("reassign", f"{CONTROLLER} --list"),
        Call("metadata_quorum", f"{BROKER} describe --status"),
        Call("metadata_quorum", f"{BROKER} describe --replication"),
        Call("metadata_quorum", f"{CONTROLLER} describe --status"),
        Call("metadata_quorum", f"{CONTROLLER} describe --replication --human-readable"),
        Call("cluster", f"cluster-id {BROKER}"),
        Call("cluster", f"cluster-id {CONTROLLER}"),
        Call("cluster", f"list-endpoints {BROKER}"),
        Call("cluster", f"list-endpoints {CONTROLLER}"),
        Call("log_dirs", f"{BROKER} --describe --topic-list spread"),
        Call("log_dirs", f"{BROKER} --describe --broker-list 1"),
        Call("log_dirs", f"{BROKER} --describe --broker-list 7"),
    ]


def _features() -> list[Call]:
    return [
        Call("features", f"{BROKER} describe"),
        Call("features", f"{CONTROLLER} describe"),
        Call("features", f"{BROKER} upgrade --feature metadata.version=31"),
        Call("features", f"{BROKER} upgrade --feature no.such.feature=1"),
        Call("features", f"{BROKER} downgrade --feature eligible.leader.replicas.version=0 --dry-run"),
        Call("features", f"{BROKER} downgrade --feature transaction.version=1"),
        Call("features", f"{BROKER} describe"),
        Call("features", f"{CONTROLLER} upgrade --feature transaction.version=2"),
        Call("features", f"{BROKER} upgrade --feature transaction.version=1"),
        Call("features", f"{BROKER} describe"),
    ]


def _groups() -> list[Call]:
    keyed = "--reader-property parse.key=true --reader-property key.separator=:"
    lines = "".join(f"{number}:line {number}\n" for number in range(30))
    read = f"{BROKER} --topic grouped --from-beginning --timeout-ms {READ_TIMEOUT_MS}"
    seen = [
        "--list",
        "--list --state",
        "--list --state stable",
        "--list --type",
        "--list --type consumer",
        "--describe --group one",
        "--describe --group one --offsets --verbose",
        "--describe --group one --members",
        "--describe --group one --state",
        "--describe --group two --state --verbose",
        "--describe --group absent",
        "--describe --all-groups --state",
        "--validate-regex ok.*",
    ]
    reset = [
        "--to-earliest --dry-run",
        "--to-offset 4 --execute",
        "--shift-by 3 --execute",
        "--shift-by -100 --execute",
        "--to-latest --execute",
        "--to-datetime 2000-01-01T00:00:00.000 --execute",
        "--by-duration PT1H --dry-run",
        "--to-current --export",
    ]
    after = [
        "--describe --group one",
        "--delete-offsets --group one --topic grouped:1",
        "--delete-offsets --group one --topic absent",
        "--delete-offsets --group absent --topic grouped",
        "--describe --group one",
        "--delete --group one",
        "--delete --group absent",
        "--list",
    ]
    return [
        Call("topics", f"{BROKER} --create --topic grouped --partitions 3"),
        Call("console_producer", f"{BROKER} --topic grouped {keyed}", stdin=lines),
        Call("console_consumer", f"{read} --group one --max-messages 30", any_order=True),
        Call(
            "console_consumer",
            f"{read} --group two --max-messages 30 --command-property group.protocol=consumer",
            any_order=True,
        ),
        *(Call("groups", f"{BROKER} {arguments}", any_order=True) for arguments in seen),
        *(Call("groups", f"{BROKER} --reset-offsets --group one --topic grouped {how}", any_order=True) for how in reset),
        Call("groups", f"{BROKER} --reset-offsets --group one --topic grouped:0,1 --to-offset 1 --execute"),
        Call("groups", f"{BROKER} --reset-offsets --group made --topic grouped --to-earliest --execute"),
        *(Call("groups", f"{BROKER} {arguments}", any_order=True) for arguments in after),
        Call("transactions", f"{BROKER} list"),
        Call("transactions", f"{BROKER} describe --transactional-id absent"),
        Call("transactions", f"{BROKER} find-hanging --broker-id 1"),
        Call("transactions", f"{BROKER} describe-producers --topic grouped --partition 0"),
    ]


SCENARIOS = {
    "topics": _topics(),
    "configs": _configs(),
    "records": _records(),
    "cluster": _cluster(),
    "features": _features(),
    "groups": _groups(),
}
"""By subject."""
