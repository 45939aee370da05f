"""Valid and invalid server.properties, as changes to small valid ones. Tests check them with Apache Kafka and with Ottla."""

from collections.abc import Mapping

COMBINED = {
    "process.roles": "broker,controller",
    "node.id": "7",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
}
BROKER = COMBINED | {"process.roles": "broker", "listeners": "PLAINTEXT://:9092"}
CONTROLLER = COMBINED | {"process.roles": "controller", "listeners": "CONTROLLER://:9093"}
MAP = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"

Changes = Mapping[str, str | None]
"""Setting → its text; None removes it."""

TAKEN: list[tuple[dict[str, str], Changes]] = [
    (COMBINED, {}),
    (BROKER, {}),
    (CONTROLLER, {}),
    (COMBINED, {"node.id": None, "broker.id": "4"}),
    (COMBINED, {"broker.id": "7"}),
    (COMBINED, {"process.roles": "controller,broker,broker"}),
    (COMBINED, {"process.roles": " broker , controller "}),
    (COMBINED, {"listeners": "plaintext://:9092,controller://:9093"}),
    (COMBINED, {"listeners": "PLAINTEXT://:0,CONTROLLER://:0"}),
    (COMBINED, {"listeners": "PLAINTEXT://[::1]:9092,CONTROLLER://127.0.0.1:9092"}),
    (COMBINED, {"listeners": "PLAINTEXT://[::]:9092,CONTROLLER://:9093", "advertised.listeners": "PLAINTEXT://a:9092"}),
    (COMBINED, {"listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9093", "advertised.listeners": "PLAINTEXT://a:1"}),
    (COMBINED, {"advertised.listeners": "PLAINTEXT://a:9092,CONTROLLER://a:9093"}),
    (COMBINED, {"listeners": "PLAINTEXT://:9092,CONTROLLER://0.0.0.0:9093"}),
    (COMBINED, {"listeners": "PLAINTEXT://[::]:9092,CONTROLLER://[::]:9093"}),
    (COMBINED, {"advertised.listeners": "PLAINTEXT://a:9092,CONTROLLER://a:9092"}),
    (COMBINED, {"listeners": "A://:1,PLAINTEXT://:2,CONTROLLER://:3", "listener.security.protocol.map": MAP + ",A:PLAINTEXT",
                "advertised.listeners": "PLAINTEXT://a:2"}),
    (COMBINED, {"listeners": "IN://:1,CONTROLLER://:2", "inter.broker.listener.name": "IN",
                "listener.security.protocol.map": "IN:PLAINTEXT,CONTROLLER:PLAINTEXT"}),
    (COMBINED, {"controller.quorum.voters": "7@a:1,8@b:2"}),
    (COMBINED, {"controller.quorum.voters": "7@a:1", "controller.quorum.bootstrap.servers": None}),
    (COMBINED, {"listener.security.protocol.map": MAP}),
    (BROKER, {"controller.quorum.voters": "1@a:1"}),
    (BROKER, {"controller.listener.names": "C1,C2"}),
    (COMBINED, {"log.dirs": "/a,/b", "cordoned.log.dirs": "/b"}),
    (COMBINED, {"log.dirs": "/a,/b", "cordoned.log.dirs": "*"}),
    (COMBINED, {"log.dirs": "/a,/a"}),
    (COMBINED, {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "a:1"}),
    (COMBINED, {"max.connections.per.ip.overrides": "::1:5, 127.0.0.1:6"}),
    (COMBINED, {"queued.max.request.bytes": "-5"}),
    (COMBINED, {"connections.max.idle.ms": "-1"}),
    (COMBINED, {"broker.heartbeat.interval.ms": "8000"}),
    (COMBINED, {"group.min.session.timeout.ms": "9", "group.max.session.timeout.ms": "8"}),
    (COMBINED, {"log.retention.ms": "-1"}),
    (COMBINED, {"log.retention.hours": "-7"}),
    (COMBINED, {"zookeeper.connect": "a:2181", "log.message.format.version": "3.0", "anything.at.all": "x"}),
    (COMBINED, {"num.replica.alter.log.dirs.threads": "3", "unstable.api.versions.enable": "true"}),
]  # fmt: skip

REFUSED: list[tuple[dict[str, str], Changes, str]] = [
    (COMBINED, {"node.id": None}, "node.id is not set"),
    (COMBINED, {"node.id": "-1"}, "node.id=-1: must be at least 0"),
    (COMBINED, {"broker.id": "3"}, "broker.id=3 and node.id=7 differ"),
    (COMBINED, {"process.roles": None}, "process.roles is not set"),
    (COMBINED, {"process.roles": ""}, "process.roles=: must not be empty"),
    (COMBINED, {"process.roles": "broker,king"}, "must be a comma-separated list of broker, controller"),
    (COMBINED, {"controller.listener.names": None}, "controller.listener.names is not set"),
    (COMBINED, {"listeners": "PLAINTEXT://:9092"}, "controller.listener.names has CONTROLLER, which listeners does not"),
    (COMBINED, {"listeners": "CONTROLLER://:9093"}, "no listener for clients"),
    (COMBINED, {"process.roles": "broker"}, "take it out of listeners"),
    (COMBINED, {"process.roles": "controller"}, "listeners has PLAINTEXT, but with process.roles=controller"),
    (COMBINED, {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9092"}, "both want port 9092"),
    (COMBINED, {"listeners": "PLAINTEXT://a:9092,CONTROLLER://[::1]:9092", "listener.security.protocol.map": MAP},
     "both want port 9092"),
    (COMBINED, {"listeners": "PLAINTEXT://:9092,plaintext://:9094,CONTROLLER://:9093"}, "listener PLAINTEXT twice"),
    (COMBINED, {"listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9093"}, "cannot connect to 0.0.0.0"),
    (COMBINED, {"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "cannot connect to 0.0.0.0"),
    (COMBINED, {"advertised.listeners": "SASL_SSL://a:1"}, "SASL_SSL, which listeners does not"),
    (COMBINED, {"advertised.listeners": ""}, "advertised.listeners=: must not be empty"),
    (COMBINED, {"listeners": "INSIDE://:9092,CONTROLLER://:9093"}, "INSIDE, which listener.security.protocol.map does not map"),
    (COMBINED, {"listeners": "PLAINTEXT:9092,CONTROLLER://:9093"}, "write NAME://host:port"),
    (COMBINED, {"listeners": "PLAINTEXT://:x,CONTROLLER://:9093"}, "a port from 0 to 65535"),
    (COMBINED, {"listeners": ""}, "listeners=: must not be empty"),
    (COMBINED, {"inter.broker.listener.name": "CONTROLLER"}, "brokers would reach each other at listener CONTROLLER"),
    (COMBINED, {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"}, "set only one of"),
    (COMBINED, {"controller.quorum.bootstrap.servers": None}, "neither controller.quorum.bootstrap.servers nor"),
    (COMBINED, {"controller.quorum.bootstrap.servers": "a"}, "write host:port"),
    (COMBINED, {"controller.quorum.voters": "1@a:1"}, "node 7 is a controller, but controller.quorum.voters names only 1"),
    (COMBINED, {"controller.quorum.voters": "a:1"}, "write id@host:port"),
    (BROKER, {"controller.quorum.voters": "7@a:1"}, "node 7 is only a broker, but controller.quorum.voters has it"),
    (BROKER, {"controller.quorum.auto.join.enable": "true"}, "is for controllers"),
    (BROKER, {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"}, "does not map the controllers' listener CONTROLLER"),
    (COMBINED, {"listener.security.protocol.map": f"{MAP},A:SSL,a:SSL"}, "maps listener A twice"),
    (COMBINED, {"listener.security.protocol.map": "PLAINTEXT:PLAIN"}, "each entry must be LISTENER:PROTOCOL"),
    (COMBINED, {"queued.max.request.bytes": "10"}, "has no room for one request"),
    (COMBINED, {"max.connections.per.ip": "0"}, "would refuse every connection"),
    (COMBINED, {"max.connections.per.ip.overrides": "a"}, "write host:count"),
    (COMBINED, {"replica.fetch.wait.max.ms": "40000"}, "is more than replica.socket.timeout.ms=30000"),
    (COMBINED, {"replica.fetch.wait.max.ms": "600", "replica.lag.time.max.ms": "500"}, "is more than replica.lag.time.max.ms"),
    (COMBINED, {"group.consumer.session.timeout.ms": "70000"}, "is more than group.consumer.max.session.timeout.ms=60000"),
    (COMBINED, {"group.consumer.min.session.timeout.ms": "1", "group.consumer.session.timeout.ms": "5000"}, "must be less"),
    (COMBINED, {"group.consumer.min.assignment.interval.ms": "2000"}, "more than group.consumer.assignment.interval.ms=1000"),
    (COMBINED, {"connections.max.idle.ms": "50"}, "connection.failed.authentication.delay.ms=100"),
    (COMBINED, {"cordoned.log.dirs": "/elsewhere"}, "cordoned.log.dirs has /elsewhere, which log.dirs does not"),
    (COMBINED, {"log.dirs": "/a", "cordoned.log.dirs": "/a,*"}, "* stands for all, alone"),
    (COMBINED, {"num.partitions": "0"}, "num.partitions=0: must be at least 1"),
    (COMBINED, {"num.partitions": "many"}, "must be a whole number"),
    (COMBINED, {"auto.create.topics.enable": "yes"}, "must be true or false"),
    (COMBINED, {"log.retention.ms": "0"}, "would delete everything at once"),
    (COMBINED, {"log.roll.ms": "0"}, "log.roll.ms=0: must be at least 1"),
    (COMBINED, {"log.cleaner.threads": "200"}, "leaves 1 MiB or less"),
    (COMBINED, {"log.dirs": "/a,,/b"}, "log.dirs="),
    (COMBINED, {"log.segment.bytes": "1000"}, "log.segment.bytes=1000: must be at least 1048576"),
    (COMBINED, {"compression.type": "brotli"}, "compression.type=brotli: must be one of"),
]  # fmt: skip

STRICTER: list[tuple[dict[str, str], Changes, str]] = [
    (COMBINED, {"listeners": "SSL://:9092,CONTROLLER://:9093", "listener.security.protocol.map": MAP,
                "security.inter.broker.protocol": "SSL"}, "ssl.keystore.location is not set, but listener SSL uses TLS"),
    (COMBINED, {"controller.quorum.voters": "7@a:1,7@b:2"}, "has an id twice"),
    (COMBINED, {f"log.cleaner.{edge}.compaction.lag.ms": lag for edge, lag in (("min", "9"), ("max", "8"))}, "more than log"),
    (COMBINED, {"listeners": "PLAINTEXT://:99999,CONTROLLER://:9093"}, "a port from 0 to 65535"),
    (COMBINED, {"log.dirs": "/a,/a/"}, "names a directory twice"),
    (COMBINED, {"listeners": "PLAINTEXT://::1:9092,CONTROLLER://:9093"}, "goes into brackets"),
]  # fmt: skip
"""Files that Apache's validation accepts, and that Apache refuses later or never."""


def file_of(base: Mapping[str, str], changes: Changes) -> dict[str, str]:
    merged: dict[str, str | None] = {**base, **changes}
    return {name: text for name, text in merged.items() if text is not None}
