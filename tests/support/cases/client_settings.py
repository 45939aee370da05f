"""Combinations of client settings: those that Apache's clients take, those that they refuse, and where Ottla is stricter.

`tests/unit/config/client/test_checks.py` gives them to Ottla, `tests/compat/test_config_tables.py` to Apache's clients.
"""

Config = dict[str, str]

_SASL = {"security.protocol": "SASL_PLAINTEXT"}
_PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";'
_SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="b";'

TAKEN: list[tuple[str, Config]] = [
    ("producer", {}),
    ("producer", {"acks": "0"}),
    ("producer", {"acks": "1"}),
    ("producer", {"acks": "-1", "enable.idempotence": "true"}),
    ("producer", {"retries": "0"}),
    ("producer", {"acks": "1", "enable.idempotence": "false", "max.in.flight.requests.per.connection": "100"}),
    ("producer", {"transactional.id": "t"}),
    ("producer", {"transactional.id": "t", "transaction.two.phase.commit.enable": "true"}),
    ("producer", {"request.timeout.ms": "200000"}),
    ("producer", {"linger.ms": "9223372036854775807"}),
    ("producer", {"delivery.timeout.ms": "30005"}),
    ("producer", {"batch.size": "0"}),
    ("producer", {"reconnect.backoff.ms": "70"}),
    ("producer", {"retry.backoff.ms": "5000"}),
    ("producer", {"metadata.recovery.strategy": "NONE"}),
    ("producer", {**_SASL, "sasl.mechanism": "PLAIN", "sasl.jaas.config": _PLAIN}),
    ("producer", {**_SASL, "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": _SCRAM}),
    ("producer", {"ssl.keystore.location": "/no/such/store.jks"}),
    ("producer", {"security.protocol": "ssl", "ssl.endpoint.identification.algorithm": ""}),
    ("consumer", {}),
    ("consumer", {"group.id": "g"}),
    ("consumer", {"group.id": "g", "group.protocol": "Consumer", "group.remote.assignor": "range"}),
    ("consumer", {"enable.auto.commit": "false"}),
    ("consumer", {"group.id": "g", "group.instance.id": "i"}),
    ("consumer", {"auto.offset.reset": "by_duration:PT1H"}),
    ("consumer", {"auto.offset.reset": "none"}),
    ("consumer", {"fetch.max.wait.ms": "30000"}),
    ("consumer", {"group.id": "g", "partition.assignment.strategy": "org.apache.kafka.clients.consumer.StickyAssignor"}),
    ("consumer", {"group.id": "g", "max.poll.interval.ms": "1"}),
    ("admin", {}),
    ("admin", {"request.timeout.ms": "90000"}),
]
"""(kind of client, settings)."""

REFUSED: list[tuple[str, Config, list[str]]] = [
    ("producer", {"acks": "2"}, ["acks=2"]),
    ("producer", {"enable.idempotence": "true", "acks": "0"}, ["acks=0", "enable.idempotence=true"]),
    ("producer", {"enable.idempotence": "true", "acks": "1"}, ["acks=1", "enable.idempotence=true"]),
    ("producer", {"enable.idempotence": "true", "retries": "0"}, ["retries=0", "enable.idempotence=true"]),
    (
        "producer",
        {"max.in.flight.requests.per.connection": "6"},
        ["max.in.flight.requests.per.connection=6", "enable.idempotence=true", "at most 5"],
    ),
    (
        "producer",
        {"max.in.flight.requests.per.connection": "6", "acks": "1"},
        ["max.in.flight.requests.per.connection=6", "enable.idempotence"],
    ),
    ("producer", {"transactional.id": ""}, ["transactional.id", "must not be empty"]),
    ("producer", {"transactional.id": "t", "enable.idempotence": "false"}, ["transactional.id", "enable.idempotence"]),
    ("producer", {"transactional.id": "t", "acks": "1"}, ["transactional.id", "enable.idempotence", "acks"]),
    (
        "producer",
        {"transactional.id": "t", "transaction.two.phase.commit.enable": "true", "transaction.timeout.ms": "60000"},
        ["transaction.timeout.ms", "transaction.two.phase.commit.enable=true"],
    ),
    (
        "producer",
        {"delivery.timeout.ms": "999", "linger.ms": "500", "request.timeout.ms": "500"},
        ["delivery.timeout.ms=999", "linger.ms=500", "request.timeout.ms=500"],
    ),
    ("producer", {"compression.type": "brotli"}, ["compression.type=brotli", "zstd"]),
    ("producer", {**_SASL, "sasl.mechanism": ""}, ["sasl.mechanism", "PLAIN"]),
    ("producer", {**_SASL, "sasl.mechanism": "PLAIN", "sasl.jaas.config": _PLAIN[:-1]}, ["sasl.jaas.config", "semicolon"]),
    ("producer", {"security.protocol": "SSL", "ssl.keystore.key": "x"}, ["ssl.keystore.key", "ssl.keystore.certificate.chain"]),
    (
        "consumer",
        {"group.id": "g", "heartbeat.interval.ms": "45000"},
        ["heartbeat.interval.ms=45000", "session.timeout.ms=45000"],
    ),
    ("consumer", {"group.id": "g", "session.timeout.ms": "3000"}, ["heartbeat.interval.ms=3000", "session.timeout.ms=3000"]),
    (
        "consumer",
        {"group.id": "g", "group.protocol": "consumer", "session.timeout.ms": "9000"},
        ["session.timeout.ms", "group.protocol=consumer"],
    ),
    (
        "consumer",
        {"group.id": "g", "group.protocol": "CONSUMER", "heartbeat.interval.ms": "9"},
        ["heartbeat.interval.ms", "group.protocol=consumer"],
    ),
    (
        "consumer",
        {
            "group.id": "g",
            "group.protocol": "consumer",
            "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor",
        },
        ["partition.assignment.strategy", "group.protocol=consumer"],
    ),
    ("consumer", {"group.id": "g", "group.remote.assignor": "uniform"}, ["group.remote.assignor", "group.protocol"]),
    ("consumer", {"group.id": ""}, ["group.id is empty"]),
    ("consumer", {"enable.auto.commit": "true"}, ["enable.auto.commit=true", "group.id"]),
    ("consumer", {"group.id": "g", "group.instance.id": ""}, ["group.instance.id", "must not be empty"]),
    ("consumer", {"auto.offset.reset": "by_duration:1h"}, ["auto.offset.reset=by_duration:1h", "PT1H"]),
    ("consumer", {"auto.offset.reset": "by_duration:-PT1H"}, ["auto.offset.reset"]),
    ("consumer", {"auto.offset.reset": "smallest"}, ["smallest is earliest here"]),
    ("consumer", {"isolation.level": "serializable"}, ["isolation.level=serializable", "read_committed"]),
    ("admin", {"bootstrap.controllers": "127.0.0.1:1"}, ["bootstrap.servers and bootstrap.controllers"]),
    ("admin", {"default.api.timeout.ms": "1000"}, ["default.api.timeout.ms=1000", "request.timeout.ms=30000"]),
]
"""(kind of client, settings, words of Ottla's error)."""

STRICTER: list[tuple[str, Config, list[str]]] = [
    # Apache's producer takes it, and then refuses every record.
    ("producer", {"batch.size": "1001", "buffer.memory": "1000"}, ["batch.size=1001", "buffer.memory=1000"]),
    # Apache's consumer takes it, and then refuses every subscription.
    ("consumer", {"group.id": "g", "partition.assignment.strategy": ""}, ["partition.assignment.strategy is empty"]),
    # Apache's heartbeat thread would spin.
    ("consumer", {"group.id": "g", "heartbeat.interval.ms": "0"}, ["heartbeat.interval.ms=0", "at least 1"]),
]
"""What Apache's clients take and Ottla refuses, with the words of Ottla's error."""
