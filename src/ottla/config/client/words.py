"""Documents every client setting that Ottla honours: one or two sentences each, for docs/client-settings.md."""

from __future__ import annotations

_INTERCEPTORS = (
    "Objects, classes or paths of classes whose methods are called with every record; the keyword `interceptors` is the same. "
    "See [application.md](application.md#interceptors)."
)

COMMON_WORDS: dict[str, str] = {
    "bootstrap.servers": (
        "Brokers to connect to first, as host:port; the others are found through them. Several, for when one is down. Without "
        "a port: 9092."
    ),
    "client.dns.lookup": (
        "Every address that a host name has is tried. With `resolve_canonical_bootstrap_servers_only`, the bootstrap servers "
        "are connected to by the canonical names of their addresses."
    ),
    "client.id": "The name of this client in the logs, metrics and quotas of brokers.",
    "connections.max.idle.ms": "Close a connection after this long without traffic. Negative: never.",
    "default.api.timeout.ms": "How long a call may take in all, if it is given no timeout of its own.",
    "enable.metrics.push": "Send the client's metrics to brokers that ask for them (KIP-714).",
    "metadata.max.age.ms": "Refresh metadata after this long, even if nothing seems to have changed.",
    "metadata.recovery.rebootstrap.trigger.ms": (
        "Forget all brokers and start again from the bootstrap servers after this long without metadata (KIP-1102)."
    ),
    "metadata.recovery.strategy": (
        "What to do when no known broker can be reached: `rebootstrap`, or `none`: keep trying them. With `none`, calls fail "
        "if the cluster answers REBOOTSTRAP_REQUIRED."
    ),
    "metrics.num.samples": "How many samples the averages and rates in `metrics()` cover.",
    "metrics.sample.window.ms": "The time that one of these samples covers.",
    "receive.buffer.bytes": "The size of the socket's receive buffer. -1: what the system chooses.",
    "reconnect.backoff.max.ms": "The longest wait before connecting again. Waits double up to it, with a jitter of 20 %.",
    "reconnect.backoff.ms": "The first wait before connecting to a broker again. Given alone, waits do not grow, as in Kafka.",
    "request.timeout.ms": "How long to wait for a response. Then the request is retried, or fails.",
    "retry.backoff.max.ms": "The longest wait before a request is sent again.",
    "retry.backoff.ms": "The first wait before a failed request is sent again. Waits double, with a jitter of 20 %.",
    "send.buffer.bytes": "The size of the socket's send buffer. -1: what the system chooses.",
    "socket.connection.setup.timeout.max.ms": "The longest time to wait for a connection. The wait doubles with every failure.",
    "socket.connection.setup.timeout.ms": "How long to wait for a connection at first.",
}
"""Of all kinds of client."""

PRODUCER_WORDS: dict[str, str] = {
    "acks": (
        "Who must have a record before it counts as written: `all` (or -1) in-sync replicas, the leader (1), or no broker (0). "
        "With 0 or 1, idempotence is off."
    ),
    "batch.size": (
        "The size to which the records of a partition are gathered before they are sent. 0: every record on its own. Records "
        "without a key change their partition after about as many bytes; where batch.size is not given, after Kafka's 16384."
    ),
    "buffer.memory": "Memory for records that wait to be sent. When it is full, send() waits.",
    "compression.gzip.level": "The level of gzip. -1: its default.",
    "compression.lz4.level": "The level of lz4.",
    "compression.type": "How batches are compressed.",
    "compression.zstd.level": "The level of zstd.",
    "delivery.timeout.ms": "How long after send() a record is given up, waits and retries included.",
    "enable.idempotence": "Let brokers recognise repeated batches, so that retries write nothing twice and keep the order.",
    "interceptor.classes": _INTERCEPTORS,
    "key.serializer": (
        "Turns keys into bytes: a short name (`bytes`, `str`, `json`, `int64` …), a class name of Apache's, a function or an "
        "object, or its path package.module:Name."
    ),
    "linger.ms": (
        "How long to wait for more records before a batch that is not full is sent. A batch that a caller waits for, as with "
        "result(), await or flush(), is sent at once."
    ),
    "max.block.ms": "How long send() and the methods of transactions may wait for metadata, memory or the coordinator.",
    "max.in.flight.requests.per.connection": "How many requests may wait for a broker's response. At most 5 with idempotence.",
    "max.request.size": "The largest request, and so the largest record. Brokers have limits of their own.",
    "metadata.max.idle.ms": "Forget a topic that has had no record for this long.",
    "partitioner.adaptive.partitioning.enable": "Give partitions with long queues fewer of the records that have no key.",
    "partitioner.availability.timeout.ms": "Send no keyless records to a broker that takes no request for so long. 0: always.",
    "partitioner.class": (
        "Chooses partitions: `default` (hash of the key; without a key, sticky and adaptive), `roundrobin`, a class name of "
        "Apache's, a Python object, or its path. The keyword `partitioner` is the same."
    ),
    "partitioner.ignore.keys": "Spread records with keys like those without.",
    "retries": "How often a request is sent again, within delivery.timeout.ms.",
    "transaction.timeout.ms": "How long a transaction may be open before the coordinator aborts it.",
    "transaction.two.phase.commit.enable": "Two-phase commits: the coordinator never aborts transactions (KIP-939).",
    "transactional.id": "The name of a producer with transactions. It fences earlier producers of that name.",
    "value.serializer": "Turns values into bytes; see key.serializer.",
}

CONSUMER_WORDS: dict[str, str] = {
    "allow.auto.create.topics": "Let brokers create a topic that is subscribed to and does not exist, if they do that.",
    "auto.commit.interval.ms": "How often offsets are committed with enable.auto.commit.",
    "auto.offset.reset": (
        "Where to begin without a committed offset: `earliest`, `latest`, `by_duration:PT1H` (an hour ago), or `none`: raise "
        "an error."
    ),
    "check.crcs": "Check every batch's checksum.",
    "client.rack": "The rack of this client, so that it can fetch from a replica nearby.",
    "enable.auto.commit": "Commit in the background what was handed out by earlier polls. Always off without group.id.",
    "exclude.internal.topics": "Leave internal topics out when a pattern is subscribed to.",
    "fetch.max.bytes": "The most bytes in a response. At least one batch is always returned.",
    "fetch.max.wait.ms": "How long a broker waits for fetch.min.bytes before it answers.",
    "fetch.min.bytes": "How many bytes a broker waits for before it answers.",
    "group.id": "The group whose members share partitions and committed offsets. Without it: assign() only.",
    "group.instance.id": "Makes this a static member: it keeps its partitions over a restart within the session timeout.",
    "group.protocol": "`classic`, or `consumer`: assignment by the broker, without stopping all members (KIP-848).",
    "group.remote.assignor": "The broker's assignor, with group.protocol=consumer: `uniform`, `range` or one of its own.",
    "heartbeat.interval.ms": "How often a classic member sends heartbeats.",
    "interceptor.classes": _INTERCEPTORS,
    "isolation.level": "`read_committed` hides records of open and aborted transactions.",
    "key.deserializer": "Turns the bytes of keys into objects: as key.serializer of producers.",
    "max.partition.fetch.bytes": "The most bytes of one partition in a response. At least one batch is always returned.",
    "max.poll.interval.ms": "After this long without a poll, the member leaves its group, so that others can go on.",
    "max.poll.records": "The most records that one poll returns.",
    "partition.assignment.strategy": (
        "The assignors of a classic member, preferred ones first: `range`, `roundrobin`, `sticky`, `cooperative-sticky`, class "
        "names of Apache's, Python objects, or their paths."
    ),
    "session.timeout.ms": "After this long without a heartbeat, the broker evicts a classic member.",
    "value.deserializer": "Turns the bytes of values into objects; see key.deserializer.",
}

ADMIN_WORDS: dict[str, str] = {
    "bootstrap.controllers": "Controllers to connect to first, instead of brokers, as host:port.",
    "retries": "How often a call's request is sent again, within its timeout.",
}

SECURITY_WORDS: dict[str, str] = {
    "sasl.jaas.config": 'User name and password as Kafka writes them: `…PlainLoginModule required username="…" password="…";`. '
    "With `tokenauth=true` (SCRAM) they are the id and the HMAC of a delegation token.",
    "sasl.login.callback.handler.class": (
        "OAUTHBEARER: what fetches tokens: `aws-msk-iam`, `azure`, `google`, `oauth` (an endpoint or a file, see "
        "sasl.oauthbearer.token.endpoint.url), or a Python function, as `package.module:name`."
    ),
    "sasl.login.connect.timeout.ms": "OAUTHBEARER: the limit for connecting to the token endpoint; 10000 if it is not given.",
    "sasl.login.read.timeout.ms": "OAUTHBEARER: the limit for an answer of the token endpoint; 10000 if it is not given.",
    "sasl.login.retry.backoff.max.ms": "OAUTHBEARER: how long requests to the token endpoint are repeated.",
    "sasl.login.retry.backoff.ms": "OAUTHBEARER: the wait before the second request to the token endpoint; it doubles.",
    "sasl.oauthbearer.client.credentials.client.id": "OAUTHBEARER: the endpoint's client. Or clientId in sasl.jaas.config.",
    "sasl.oauthbearer.client.credentials.client.secret": "OAUTHBEARER: its secret. Or clientSecret in sasl.jaas.config.",
    "sasl.oauthbearer.header.urlencode": "OAUTHBEARER: whether client id and secret are URL-encoded in the request's header.",
    "sasl.oauthbearer.jwt.retriever.class": (
        "OAUTHBEARER: Kafka's DefaultJwtRetriever, ClientCredentialsJwtRetriever or FileJwtRetriever. The URL decides already."
    ),
    "sasl.oauthbearer.scope": "OAUTHBEARER: the scope that is asked for. Or scope in sasl.jaas.config.",
    "sasl.oauthbearer.token.endpoint.url": (
        "OAUTHBEARER: where tokens are fetched: a token endpoint (https, http), or a file (`file:///path`), which is read "
        "again when its token is due."
    ),
    "sasl.login.refresh.buffer.seconds": "OAUTHBEARER: a new token is fetched this long before the old one expires, or sooner.",
    "sasl.login.refresh.min.period.seconds": "OAUTHBEARER: how long a token is kept at least, if its lifetime allows that.",
    "sasl.login.refresh.window.factor": "OAUTHBEARER: the share of a token's lifetime after which a login fetches a new one.",
    "sasl.login.refresh.window.jitter": "OAUTHBEARER: up to this share is added by chance, to spread the load of many clients.",
    "sasl.mechanism": "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER. Kafka's default is GSSAPI, which is not supported.",
    "security.protocol": "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, in capitals or not.",
    "ssl.cipher.suites": "The allowed cipher suites of TLS 1.2, by Java's or OpenSSL's names. Empty: the default ones.",
    "ssl.enabled.protocols": "The allowed versions of TLS: TLSv1.2, TLSv1.3 or both.",
    "ssl.endpoint.identification.algorithm": "`https`: a certificate must be for the broker's host name; empty: any host.",
    "ssl.key.password": "The password of an encrypted private key.",
    "ssl.keystore.certificate.chain": "The client's certificate and its chain, as PEM text. Needs ssl.keystore.key.",
    "ssl.keystore.key": "The client's private key, as PEM text.",
    "ssl.keystore.location": "A file with the client's private key, certificate and chain: PEM, JKS or PKCS12.",
    "ssl.keystore.password": "The password of a JKS or PKCS12 store. Refused with PEM, as in Kafka: use ssl.key.password.",
    "ssl.keystore.type": "PEM, JKS or PKCS12. The file's bytes decide. PKCS12 needs pip install 'ottla[security]'.",
    "ssl.truststore.certificates": "The certificates to trust, as PEM text.",
    "ssl.truststore.location": "A file with the certificates to trust: PEM, JKS or PKCS12. Without it: those of the system.",
    "ssl.truststore.password": "The password of a JKS or PKCS12 store. Refused with PEM, as in Kafka: drop it.",
    "ssl.truststore.type": "PEM; see ssl.keystore.type.",
}
"""Of all kinds of client; `security` makes one `SecuritySettings` of them."""


def words_of(kind: str) -> dict[str, str]:
    """Setting → its documentation, of all settings that a kind of client honours."""
    own = {"producer": PRODUCER_WORDS, "consumer": CONSUMER_WORDS, "admin": ADMIN_WORDS}[kind]
    return {**COMMON_WORDS, **SECURITY_WORDS, **own}
