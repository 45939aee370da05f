"""The producer, consumer and admin settings of Kafka 4.3, one row of text each, so that importing all of them is cheap.

`row_table` describes the format, `kinds` builds the tables, and a test compares the rows with Apache Kafka's own table.
"""
# ruff: noqa: E501 - a row is a line

COMMON_ROWS = """\
client.dns.lookup | STRING | use_all_dns_ips | [use_all_dns_ips, resolve_canonical_bootstrap_servers_only] | MEDIUM
config.providers | LIST | [] | distinct list | LOW
metadata.max.age.ms | LONG | 300000 | [0,...] | LOW
metadata.recovery.rebootstrap.trigger.ms | LONG | 300000 | [0,...] | LOW
metadata.recovery.strategy | STRING | rebootstrap | (case insensitive) [REBOOTSTRAP, NONE] | LOW
metric.reporters | LIST | [org.apache.kafka.common.metrics.JmxReporter] | distinct list | LOW
metrics.num.samples | INT | 2 | [1,...] | LOW
metrics.recording.level | STRING | INFO | [INFO, DEBUG, TRACE] | LOW
metrics.sample.window.ms | LONG | 30000 | [0,...] | LOW
reconnect.backoff.max.ms | LONG | 1000 | [0,...] | LOW
reconnect.backoff.ms | LONG | 50 | [0,...] | LOW
request.timeout.ms | INT | 30000 | [0,...] | MEDIUM
retry.backoff.max.ms | LONG | 1000 | [0,...] | LOW
retry.backoff.ms | LONG | 100 | [0,...] | LOW
send.buffer.bytes | INT | 131072 | [-1,...] | MEDIUM
socket.connection.setup.timeout.max.ms | LONG | 30000 | - | MEDIUM
socket.connection.setup.timeout.ms | LONG | 10000 | - | MEDIUM
"""

PRODUCER_ROWS = """\
acks | STRING | all | [all, -1, 0, 1] | LOW
batch.size | INT | 16384 | [0,...] | MEDIUM
bootstrap.servers | LIST | REQUIRED | filled distinct list | HIGH
buffer.memory | LONG | 33554432 | [0,...] | HIGH
client.id | STRING |  | - | MEDIUM
compression.gzip.level | INT | -1 | [1,...,9] or -1 | MEDIUM
compression.lz4.level | INT | 9 | [1,...,17] | MEDIUM
compression.type | STRING | none | [none, gzip, snappy, lz4, zstd] | HIGH
compression.zstd.level | INT | 3 | [-131072,...,22] | MEDIUM
connections.max.idle.ms | LONG | 540000 | - | MEDIUM
delivery.timeout.ms | INT | 120000 | [0,...] | MEDIUM
enable.idempotence | BOOLEAN | true | - | LOW
enable.metrics.push | BOOLEAN | true | - | LOW
interceptor.classes | LIST | [] | distinct list | LOW
key.serializer | CLASS | REQUIRED | - | HIGH
linger.ms | LONG | 5 | [0,...] | MEDIUM
max.block.ms | LONG | 60000 | [0,...] | MEDIUM
max.in.flight.requests.per.connection | INT | 5 | [1,...] | LOW
max.request.size | INT | 1048576 | [0,...] | MEDIUM
metadata.max.idle.ms | LONG | 300000 | [5000,...] | LOW
partitioner.adaptive.partitioning.enable | BOOLEAN | true | - | LOW
partitioner.availability.timeout.ms | LONG | 0 | [0,...] | LOW
partitioner.class | CLASS | null | - | MEDIUM
partitioner.ignore.keys | BOOLEAN | false | - | MEDIUM
receive.buffer.bytes | INT | 32768 | [-1,...] | MEDIUM
retries | INT | 2147483647 | [0,...,2147483647] | HIGH
transaction.timeout.ms | INT | 60000 | - | LOW
transaction.two.phase.commit.enable | BOOLEAN | false | - | LOW
transactional.id | STRING | null | non-empty string | LOW
value.serializer | CLASS | REQUIRED | - | HIGH
"""

CONSUMER_ROWS = """\
allow.auto.create.topics | BOOLEAN | true | - | MEDIUM
auto.commit.interval.ms | INT | 5000 | [0,...] | LOW
auto.offset.reset | STRING | latest | offset reset or none | MEDIUM
bootstrap.servers | LIST | REQUIRED | filled distinct list | HIGH
check.crcs | BOOLEAN | true | - | LOW
client.id | STRING |  | - | LOW
client.rack | STRING |  | - | LOW
connections.max.idle.ms | LONG | 540000 | - | MEDIUM
default.api.timeout.ms | INT | 60000 | [0,...] | MEDIUM
enable.auto.commit | BOOLEAN | true | - | MEDIUM
enable.metrics.push | BOOLEAN | true | - | LOW
exclude.internal.topics | BOOLEAN | true | - | MEDIUM
fetch.max.bytes | INT | 52428800 | [0,...] | MEDIUM
fetch.max.wait.ms | INT | 500 | [0,...] | LOW
fetch.min.bytes | INT | 1 | [0,...] | HIGH
group.id | STRING | null | - | HIGH
group.instance.id | STRING | null | non-empty string | MEDIUM
group.protocol | STRING | classic | (case insensitive) [CONSUMER, CLASSIC] | HIGH
group.remote.assignor | STRING | null | - | MEDIUM
heartbeat.interval.ms | INT | 3000 | - | HIGH
interceptor.classes | LIST | [] | distinct list | LOW
isolation.level | STRING | read_uncommitted | [read_committed, read_uncommitted] | MEDIUM
key.deserializer | CLASS | REQUIRED | - | HIGH
max.partition.fetch.bytes | INT | 1048576 | [0,...] | HIGH
max.poll.interval.ms | INT | 300000 | [1,...] | MEDIUM
max.poll.records | INT | 500 | [1,...] | MEDIUM
partition.assignment.strategy | LIST | [class org.apache.kafka.clients.consumer.RangeAssignor, class org.apache.kafka.clients.consumer.CooperativeStickyAssignor] | distinct list | MEDIUM
receive.buffer.bytes | INT | 65536 | [-1,...] | MEDIUM
session.timeout.ms | INT | 45000 | - | HIGH
share.acknowledgement.mode | STRING | implicit | [implicit, explicit] | MEDIUM
share.acquire.mode | STRING | BATCH_OPTIMIZED | (case insensitive) [BATCH_OPTIMIZED, RECORD_LIMIT] | MEDIUM
value.deserializer | CLASS | REQUIRED | - | HIGH
"""

ADMIN_ROWS = """\
bootstrap.controllers | LIST | [] | distinct list | HIGH
bootstrap.servers | LIST | [] | distinct list | HIGH
client.id | STRING |  | - | MEDIUM
connections.max.idle.ms | LONG | 300000 | - | MEDIUM
default.api.timeout.ms | INT | 60000 | [0,...] | MEDIUM
enable.metrics.push | BOOLEAN | false | - | LOW
receive.buffer.bytes | INT | 65536 | [-1,...] | MEDIUM
retries | INT | 2147483647 | [0,...,2147483647] | LOW
"""

SECURITY_ROWS = """\
sasl.client.callback.handler.class | CLASS | null | - | MEDIUM
sasl.jaas.config | PASSWORD | null | - | MEDIUM
sasl.kerberos.kinit.cmd | STRING | /usr/bin/kinit | - | LOW
sasl.kerberos.min.time.before.relogin | LONG | 60000 | - | LOW
sasl.kerberos.service.name | STRING | null | - | MEDIUM
sasl.kerberos.ticket.renew.jitter | DOUBLE | 0.05 | - | LOW
sasl.kerberos.ticket.renew.window.factor | DOUBLE | 0.8 | - | LOW
sasl.login.callback.handler.class | CLASS | null | - | MEDIUM
sasl.login.class | CLASS | null | - | MEDIUM
sasl.login.connect.timeout.ms | INT | null | - | LOW
sasl.login.read.timeout.ms | INT | null | - | LOW
sasl.login.refresh.buffer.seconds | SHORT | 300 | [0,...,3600] | LOW
sasl.login.refresh.min.period.seconds | SHORT | 60 | [0,...,900] | LOW
sasl.login.refresh.window.factor | DOUBLE | 0.8 | [0.5,...,1.0] | LOW
sasl.login.refresh.window.jitter | DOUBLE | 0.05 | [0.0,...,0.25] | LOW
sasl.login.retry.backoff.max.ms | LONG | 10000 | - | LOW
sasl.login.retry.backoff.ms | LONG | 100 | - | LOW
sasl.mechanism | STRING | GSSAPI | - | MEDIUM
sasl.oauthbearer.assertion.algorithm | STRING | RS256 | (case insensitive) [ES256, RS256] | MEDIUM
sasl.oauthbearer.assertion.claim.aud | STRING | null | - | MEDIUM
sasl.oauthbearer.assertion.claim.exp.seconds | INT | 300 | [0,...,86400] | LOW
sasl.oauthbearer.assertion.claim.iss | STRING | null | - | MEDIUM
sasl.oauthbearer.assertion.claim.jti.include | BOOLEAN | false | - | MEDIUM
sasl.oauthbearer.assertion.claim.nbf.seconds | INT | 60 | [0,...,3600] | LOW
sasl.oauthbearer.assertion.claim.sub | STRING | null | - | MEDIUM
sasl.oauthbearer.assertion.file | STRING | null | - | MEDIUM
sasl.oauthbearer.assertion.private.key.file | STRING | null | - | MEDIUM
sasl.oauthbearer.assertion.private.key.passphrase | PASSWORD | null | - | MEDIUM
sasl.oauthbearer.assertion.template.file | STRING | null | - | MEDIUM
sasl.oauthbearer.client.credentials.client.id | STRING | null | - | MEDIUM
sasl.oauthbearer.client.credentials.client.secret | PASSWORD | null | - | MEDIUM
sasl.oauthbearer.clock.skew.seconds | INT | 30 | - | LOW
sasl.oauthbearer.expected.audience | LIST | [] | distinct list | LOW
sasl.oauthbearer.expected.issuer | STRING | null | - | LOW
sasl.oauthbearer.header.urlencode | BOOLEAN | false | - | LOW
sasl.oauthbearer.jwks.endpoint.refresh.ms | LONG | 3600000 | - | LOW
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms | LONG | 10000 | - | LOW
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms | LONG | 100 | - | LOW
sasl.oauthbearer.jwks.endpoint.url | STRING | null | - | MEDIUM
sasl.oauthbearer.jwt.retriever.class | CLASS | org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever | - | MEDIUM
sasl.oauthbearer.jwt.validator.class | CLASS | org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator | - | MEDIUM
sasl.oauthbearer.scope | STRING | null | - | MEDIUM
sasl.oauthbearer.scope.claim.name | STRING | scope | - | LOW
sasl.oauthbearer.sub.claim.name | STRING | sub | - | LOW
sasl.oauthbearer.token.endpoint.url | STRING | null | - | MEDIUM
security.protocol | STRING | PLAINTEXT | (case insensitive) [SASL_SSL, PLAINTEXT, SSL, SASL_PLAINTEXT] | MEDIUM
security.providers | STRING | null | - | LOW
ssl.cipher.suites | LIST | [] | distinct list | LOW
ssl.enabled.protocols | LIST | [TLSv1.2, TLSv1.3] | distinct list | MEDIUM
ssl.endpoint.identification.algorithm | STRING | https | - | LOW
ssl.engine.factory.class | CLASS | null | - | LOW
ssl.key.password | PASSWORD | null | - | HIGH
ssl.keymanager.algorithm | STRING | SunX509 | - | LOW
ssl.keystore.certificate.chain | PASSWORD | null | - | HIGH
ssl.keystore.key | PASSWORD | null | - | HIGH
ssl.keystore.location | STRING | null | - | HIGH
ssl.keystore.password | PASSWORD | null | - | HIGH
ssl.keystore.type | STRING | JKS | - | MEDIUM
ssl.protocol | STRING | TLSv1.3 | - | MEDIUM
ssl.provider | STRING | null | - | MEDIUM
ssl.secure.random.implementation | STRING | null | - | LOW
ssl.trustmanager.algorithm | STRING | PKIX | - | LOW
ssl.truststore.certificates | PASSWORD | null | - | HIGH
ssl.truststore.location | STRING | null | - | HIGH
ssl.truststore.password | PASSWORD | null | - | HIGH
ssl.truststore.type | STRING | JKS | - | MEDIUM
"""
"""TLS and SASL, the same for all kinds of client."""
