"""Names that are no setting of a client: retired, misspelt, or of another library. The error says which name is right.

Imported only for a mistake, so its tables cost a correct client nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.config.client.kinds import KINDS, ClientKind
from ottla.config.client.security import OWN_KEYWORDS
from ottla.config.values import InvalidConfig
from ottla.errors.texts import near_words

_CREDENTIALS = "give the keywords sasl_plain_username and sasl_plain_password, or sasl.jaas.config"
_TOKEN_FUNCTION = "pass the function as the keyword sasl_oauth_token, or name it as sasl.login.callback.handler.class"
_PEM = "a PEM file in ssl.keystore.location, or texts in ssl.keystore.certificate.chain and ssl.keystore.key"
_VERSIONS = "versions are negotiated with every broker; drop it"
_QUEUE = "buffer.memory and fetch.max.bytes limit memory, in bytes"
_STATISTICS = "read the client's metrics(); drop it"
_THREADS = "callbacks are passed to the methods that they are for; drop it"

RETIRED: dict[str, str] = {
    "advertised.host.name": "it was a broker's",
    "auto.commit.enable": "use enable.auto.commit",
    "auto.create.topics": "use allow.auto.create.topics",
    "auto.include.jmx.reporter": "there is no JMX; drop it",
    "block.on.buffer.full": "use max.block.ms: how long send() waits for memory before it fails",
    "broker.list": "use bootstrap.servers",
    "compression.codec": "use compression.type",
    "compressed.topics": "compression.type holds for all topics; drop it",
    "consumer.id": "use client.id, or group.instance.id for a static member",
    "consumer.timeout.ms": "pass a timeout to poll() instead",
    "dual.commit.enabled": "offsets are kept in Kafka only; drop it",
    "fetch.message.max.bytes": "use max.partition.fetch.bytes",
    "fetch.wait.max.ms": "use fetch.max.wait.ms",
    "key.serializer.class": "use key.serializer",
    "message.send.max.retries": "use retries; delivery.timeout.ms limits the time that they take",
    "metadata.broker.list": "use bootstrap.servers",
    "metadata.fetch.timeout.ms": "use max.block.ms: how long send() waits for metadata before it fails",
    "num.consumer.fetchers": "one connection to each broker fetches; drop it",
    "offsets.channel.backoff.ms": "use retry.backoff.ms",
    "offsets.channel.socket.timeout.ms": "use request.timeout.ms",
    "offsets.commit.max.retries": "default.api.timeout.ms limits how long a commit is retried",
    "offsets.storage": "offsets are kept in Kafka only; drop it",
    "producer.type": "send() is asynchronous; wait for its result to send synchronously. Drop it",
    "queue.buffering.max.ms": "use linger.ms",
    "queue.buffering.max.messages": "use buffer.memory, in bytes",
    "queue.enqueue.timeout.ms": "use max.block.ms",
    "queued.max.message.chunks": _QUEUE,
    "rebalance.backoff.ms": "use retry.backoff.ms",
    "rebalance.max.retries": "rebalances are retried until they succeed; drop it",
    "refresh.leader.backoff.ms": "use retry.backoff.ms",
    "request.required.acks": "use acks",
    "send.buffer.bytes.config": "use send.buffer.bytes",
    "serializer.class": "use key.serializer and value.serializer",
    "socket.buffersize": "use receive.buffer.bytes",
    "timeout.ms": "use request.timeout.ms, or delivery.timeout.ms for the whole delivery",
    "topic.metadata.refresh.interval.ms": "use metadata.max.age.ms",
    "zk.connect": "clients have no ZooKeeper: use bootstrap.servers, with addresses of brokers",
}
"""Names of older Kafka clients → what to do instead."""

OTHER_LIBRARIES: dict[str, str] = {
    # librdkafka (confluent-kafka).
    "allow.auto.create.topic": "use allow.auto.create.topics",
    "api.version.fallback.ms": _VERSIONS,
    "api.version.request": _VERSIONS,
    "api.version.request.timeout.ms": _VERSIONS,
    "auto.commit.interval": "use auto.commit.interval.ms",
    "background.event.cb": _THREADS,
    "batch.num.messages": "use batch.size, in bytes",
    "broker.address.family": "both families are tried, as the system orders them; drop it",
    "broker.address.ttl": "names are resolved at every connection; drop it",
    "broker.version.fallback": _VERSIONS,
    "builtin.features": "it can only be read; drop it",
    "compression.level": "use compression.gzip.level, compression.lz4.level or compression.zstd.level",
    "connections.max.idle": "use connections.max.idle.ms",
    "consume.callback.max.messages": "use max.poll.records",
    "coordinator.query.interval.ms": "a lost coordinator is looked up at once; drop it",
    "debug": "set the level of Python's logger `ottla` to DEBUG instead",
    "default.topic.config": "give the settings directly",
    "delivery.report.only.error": "pass on_delivery to send()",
    "dr.cb": "pass on_delivery to send()",
    "dr.msg.cb": "pass on_delivery to send()",
    "enable.auto.offset.store": (
        "set enable.auto.commit=false and commit what you have processed. Auto commit here covers exactly what earlier polls "
        "handed out"
    ),
    "enable.background.thread": _THREADS,
    "enable.gapless.guarantee": "idempotence keeps the order; drop it",
    "enable.partition.eof": "compare position() with the end offsets instead",
    "enable.random.seed": "drop it",
    "enable.ssl.certificate.verification": "certificates are always verified: name the CA in ssl.truststore.location",
    "error.cb": "errors are raised by the call that they concern; drop it",
    "fetch.error.backoff.ms": "use retry.backoff.ms",
    "fetch.queue.backoff.ms": _QUEUE,
    "group.protocol.type": "it is always consumer; drop it",
    "internal.termination.signal": "drop it",
    "log.cb": "use Python's logger `ottla`",
    "log.connection.close": "use Python's logger `ottla`",
    "log.level": "set the level of Python's logger `ottla`",
    "log.queue": "use Python's logger `ottla`",
    "log.thread.name": "use Python's logger `ottla`",
    "logger": "use Python's logger `ottla`",
    "max.in.flight": "use max.in.flight.requests.per.connection",
    "message.copy.max.bytes": "drop it",
    "message.max.bytes": "use max.request.size",
    "message.timeout.ms": "use delivery.timeout.ms",
    "msg.order.cmp": "drop it",
    "oauth.cb": _TOKEN_FUNCTION,
    "oauthbearer.token.refresh.cb": _TOKEN_FUNCTION,
    "offset.store.method": "offsets are kept in Kafka only; drop it",
    "offset.store.path": "offsets are kept in Kafka only; drop it",
    "on.commit": "commit() returns or raises; drop it",
    "opaque": "drop it",
    "partitioner": "use partitioner.class",
    "plugin.library.paths": "plug-ins of librdkafka cannot be loaded; drop it",
    "queue.buffering.backpressure.threshold": "drop it",
    "queue.buffering.max.kbytes": "use buffer.memory, in bytes",
    "queued.max.messages.kbytes": _QUEUE,
    "queued.min.messages": _QUEUE,
    "rebalance.cb": "pass a listener to subscribe()",
    "receive.message.max.bytes": "fetch.max.bytes limits what a response has; drop it",
    "reconnect.backoff.jitter.ms": "use reconnect.backoff.ms, which has a jitter of its own",
    "sasl.mechanisms": "use sasl.mechanism",
    "sasl.password": _CREDENTIALS,
    "sasl.username": _CREDENTIALS,
    "socket.blocking.max.ms": "drop it",
    "socket.keepalive.enable": "drop it",
    "socket.max.fails": "every request has its own retries; drop it",
    "socket.nagle.disable": "Nagle's algorithm is always off; drop it",
    "socket.receive.buffer.bytes": "use receive.buffer.bytes",
    "socket.send.buffer.bytes": "use send.buffer.bytes",
    "socket.timeout.ms": "use request.timeout.ms",
    "ssl.ca.location": "use ssl.truststore.location with ssl.truststore.type=PEM",
    "ssl.ca.pem": "use ssl.truststore.certificates with ssl.truststore.type=PEM",
    "ssl.certificate.location": f"use {_PEM}",
    "ssl.certificate.pem": "use ssl.keystore.certificate.chain with ssl.keystore.type=PEM",
    "ssl.curves.list": "OpenSSL chooses the curves; drop it",
    "ssl.key.location": f"use {_PEM}",
    "ssl.key.pem": "use ssl.keystore.key with ssl.keystore.type=PEM",
    "ssl.sigalgs.list": "OpenSSL chooses the algorithms; drop it",
    "statistics.interval.ms": _STATISTICS,
    "stats.cb": _STATISTICS,
    "sticky.partitioning.linger.ms": "use batch.size: a partition is kept for about that many bytes",
    "throttle.cb": "read the client's metrics(); drop it",
    "topic.metadata.propagation.max.ms": "use max.block.ms",
    "topic.metadata.refresh.fast.interval.ms": "use retry.backoff.ms",
    "topic.metadata.refresh.sparse": "only topics in use are refreshed; drop it",
    # kafka-python and aiokafka.
    "api.version": _VERSIONS,
    "api.version.auto.timeout.ms": _VERSIONS,
    "auto.commit.cb": "commit() returns or raises; drop it",
    "connections.max.idle.secs": "use connections.max.idle.ms",
    "consumer.timeout": "pass a timeout to poll() instead",
    "kafka.client": "drop it",
    "legacy.iterator": "drop it",
    "loop": "the running loop is used; drop it",
    "max.batch.size": "use batch.size",
    "max.buffered.records": _QUEUE,
    "metric.group.prefix": "drop it",
    "metrics.enabled": "metrics are always kept; drop it",
    "rebalance.timeout.ms": "use max.poll.interval.ms",
    "sasl.kerberos.domain.name": "Kerberos (GSSAPI) is not supported",
    "sasl.kerberos.name": "Kerberos (GSSAPI) is not supported",
    "sasl.oauth.token.provider": _TOKEN_FUNCTION,
    "selector": "drop it",
    "sock.chunk.bytes": "drop it",
    "sock.chunk.buffer.count": "drop it",
    "socket.options": "use send.buffer.bytes and receive.buffer.bytes",
    "socks5.proxy": "proxies are not supported",
    "ssl.cafile": "use ssl.truststore.location with ssl.truststore.type=PEM",
    "ssl.cadata": "use ssl.truststore.certificates with ssl.truststore.type=PEM",
    "ssl.certfile": f"use {_PEM}",
    "ssl.check.hostname": "use ssl.endpoint.identification.algorithm: https, or empty for no check",
    "ssl.ciphers": "use ssl.cipher.suites",
    "ssl.context": "give ssl.truststore.*, ssl.keystore.* and ssl.cipher.suites instead",
    "ssl.crlfile": "lists of revoked certificates are not supported",
    "ssl.keyfile": f"use {_PEM}",
    "ssl.password": "use ssl.key.password",
    "value.serializer.class": "use value.serializer",
    # Kafka Streams and Connect, and settings of Apache's serializers.
    "key.serializer.encoding": "`str` is UTF-8; pass a function as key.serializer for another encoding",
    "value.serializer.encoding": "`str` is UTF-8; pass a function as value.serializer for another encoding",
    "serializer.encoding": "`str` is UTF-8; pass a function as value.serializer for another encoding",
    "key.deserializer.encoding": "`str` is UTF-8; pass a function as key.deserializer for another encoding",
    "value.deserializer.encoding": "`str` is UTF-8; pass a function as value.deserializer for another encoding",
    "deserializer.encoding": "`str` is UTF-8; pass a function as value.deserializer for another encoding",
    "application.id": "it is a setting of Kafka Streams: use group.id, or transactional.id for a producer",
    "default.key.serde": "it is a setting of Kafka Streams: use key.serializer or key.deserializer",
    "default.value.serde": "it is a setting of Kafka Streams: use value.serializer or value.deserializer",
    "key.converter": "it is a setting of Kafka Connect: use key.serializer or key.deserializer",
    "processing.guarantee": "it is a setting of Kafka Streams: use transactional.id and isolation.level",
    "value.converter": "it is a setting of Kafka Connect: use value.serializer or value.deserializer",
}
"""Names that other libraries have → what to do instead."""


def unknown(kind: ClientKind, name: object, *, is_keyword: bool) -> InvalidConfig:
    """The error for `name`, which `kind` does not have. `is_keyword`: it was a keyword, not a key of the mapping."""
    if not isinstance(name, str):
        return InvalidConfig(str(name), f"{name!r} is no name of a setting: the keys of the mapping must be texts")
    dotted = name.strip().replace("_", ".").lower()
    return InvalidConfig(dotted, f"{name} is no {kind.name} setting of Kafka 4.3{_advice(kind, name, dotted, is_keyword)}")


def _advice(kind: ClientKind, name: str, dotted: str, is_keyword: bool) -> str:
    """The rest of the sentence: what to write instead, in the spelling of a keyword or of Kafka."""

    def shown(setting: str) -> str:
        return setting.replace(".", "_") if is_keyword else setting

    if not is_keyword and name in OWN_KEYWORDS:
        return f": give {name} as a keyword, or use sasl.jaas.config"
    if dotted in kind.table:
        return f": write {shown(dotted)}" + ("; names with underscores are keywords" if "_" in name and not is_keyword else "")
    if dotted.startswith("zookeeper."):
        return f": {RETIRED['zk.connect']}"
    advice = RETIRED.get(dotted) or OTHER_LIBRARIES.get(dotted)
    if advice is not None:
        return f": {_spelt(advice, kind) if is_keyword else advice}{_owners(advice, kind)}"
    others = [other.name for other in KINDS if dotted in other.table]
    if others:
        same = {"key.deserializer": "key.serializer", "value.deserializer": "value.serializer"}
        same |= {deserializer: serializer for serializer, deserializer in same.items()}
        hint = f"; use {shown(same[dotted])}" if same.get(dotted) in kind.table else "; drop it here"
        return f": it is a setting of {' and '.join(others)} clients{hint}"
    rest = dotted.partition(".")[2]
    if rest in kind.table:
        return f"; did you mean {shown(rest)}?"
    near = near_words(dotted, kind.table)
    if near:
        return f"; did you mean {shown(near[0])}?"
    if _is_server_setting(dotted):
        return ": it is a setting of brokers or topics, not of clients"
    return ": see docs/client-settings.md for all of them"


_ON_COMMAND_LINES = {
    _CREDENTIALS: "set OTTLA_SASL_USERNAME and OTTLA_SASL_PASSWORD in the environment, or use sasl.jaas.config",
    RETIRED["consumer.timeout.ms"]: "use --timeout-ms of `ottla consume`",
    RETIRED["producer.type"]: "records are sent asynchronously; `ottla produce --sync` waits for each",
}
"""Advice for a program → the same for a command line."""


def replacement(kinds: Iterable[ClientKind], name: str) -> str | None:
    """What to do instead of giving a command the client setting `name`, which older clients or other libraries have.

    None if the name was never one. `kinds` are the clients that the command makes.
    """
    dotted = name.strip().replace("_", ".").lower()
    advice = RETIRED["zk.connect"] if dotted.startswith("zookeeper.") else RETIRED.get(dotted) or OTHER_LIBRARIES.get(dotted)
    if advice is None:
        return None
    advice = _ON_COMMAND_LINES.get(advice, advice)
    remarks = [_owners(advice, kind) for kind in kinds]
    return advice + ("" if "" in remarks else remarks[0])


def _is_server_setting(name: str) -> bool:
    from ottla.config.broker_keys import BROKER_KEYS
    from ottla.config.topic_keys import TOPIC_KEYS

    return name in BROKER_KEYS or name in TOPIC_KEYS


def _owners(advice: str, kind: ClientKind) -> str:
    """A remark if `advice` names a setting that only other kinds of client have."""
    words = [word.strip(",;:.") for word in advice.split(" ")]
    if any(word in kind.table for word in words):
        return ""
    owners = [other.name for other in KINDS if any(word in other.table for word in words)]
    return f", which is a setting of {' and '.join(owners)} clients" if owners else ""


def _spelt(advice: str, kind: ClientKind) -> str:
    """`advice` with the names of `kind`'s settings spelt as keywords."""
    return " ".join(_keyword(word, kind.table) for word in advice.split(" "))


def _keyword(word: str, names: Iterable[str]) -> str:
    bare = word.partition("=")[0].rstrip(",;:.")
    return bare.replace(".", "_") + word[len(bare) :] if "." in bare and bare in names else word
