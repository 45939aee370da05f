"""The broker settings of Kafka 4.3, one row of text each, so that importing all of them is cheap.

A row is: name | type | default | valid values | importance | update mode. `row_table` describes the format, `broker_keys` reads
it, and a test compares the rows with Apache Kafka's own table. The last rows are settings that are shown only where they are
set: Kafka's internal ones, and the quotas that can only be set at run time.
"""
# ruff: noqa: E501 - a row is a line

BROKER_ROWS = """\
add.partitions.to.txn.retry.backoff.max.ms | INT | 100 | [0,...] | HIGH | read-only
add.partitions.to.txn.retry.backoff.ms | INT | 20 | [1,...] | HIGH | read-only
advertised.listeners | LIST | null | filled distinct list | HIGH | read-only
alter.config.policy.class.name | CLASS | null | - | LOW | read-only
alter.log.dirs.replication.quota.window.num | INT | 11 | [1,...] | LOW | read-only
alter.log.dirs.replication.quota.window.size.seconds | INT | 1 | [1,...] | LOW | read-only
authorizer.class.name | STRING |  | non-null string | LOW | read-only
auto.create.topics.enable | BOOLEAN | true | - | HIGH | read-only
auto.leader.rebalance.enable | BOOLEAN | true | - | HIGH | read-only
background.threads | INT | 10 | [1,...] | HIGH | cluster-wide
broker.heartbeat.interval.ms | INT | 2000 | - | MEDIUM | read-only
broker.id | INT | -1 | - | HIGH | read-only
broker.rack | STRING | null | - | MEDIUM | read-only
broker.session.timeout.ms | INT | 9000 | - | MEDIUM | read-only
client.quota.callback.class | CLASS | null | - | LOW | read-only
compression.gzip.level | INT | -1 | [1,...,9] or -1 | MEDIUM | cluster-wide
compression.lz4.level | INT | 9 | [1,...,17] | MEDIUM | cluster-wide
compression.type | STRING | producer | [uncompressed, zstd, lz4, snappy, gzip, producer] | HIGH | cluster-wide
compression.zstd.level | INT | 3 | [-131072,...,22] | MEDIUM | cluster-wide
config.providers | LIST | [] | distinct list | LOW | cluster-wide
connection.failed.authentication.delay.ms | INT | 100 | [0,...] | LOW | read-only
connections.max.idle.ms | LONG | 600000 | - | MEDIUM | read-only
connections.max.reauth.ms | LONG | 0 | - | MEDIUM | read-only
controlled.shutdown.enable | BOOLEAN | true | - | MEDIUM | read-only
controller.listener.names | LIST | REQUIRED | filled distinct list | HIGH | read-only
controller.quorum.append.linger.ms | INT | 25 | [0,...] | MEDIUM | read-only
controller.quorum.auto.join.enable | BOOLEAN | false | - | LOW | read-only
controller.quorum.bootstrap.servers | LIST | [] | - | HIGH | read-only
controller.quorum.election.backoff.max.ms | INT | 1000 | [0,...] | HIGH | read-only
controller.quorum.election.timeout.ms | INT | 1000 | [0,...] | HIGH | read-only
controller.quorum.fetch.max.bytes | INT | 1048576 | [1,...] | LOW | read-only
controller.quorum.fetch.snapshot.max.bytes | INT | 1048576 | [1,...] | LOW | read-only
controller.quorum.fetch.timeout.ms | INT | 2000 | [0,...] | HIGH | read-only
controller.quorum.request.timeout.ms | INT | 2000 | [0,...] | MEDIUM | read-only
controller.quorum.retry.backoff.ms | INT | 20 | [0,...] | LOW | read-only
controller.quorum.voters | LIST | [] | - | HIGH | read-only
controller.quota.window.num | INT | 11 | [1,...] | LOW | read-only
controller.quota.window.size.seconds | INT | 1 | [1,...] | LOW | read-only
controller.socket.timeout.ms | INT | 30000 | - | MEDIUM | read-only
cordoned.log.dirs | LIST | [] | distinct list | MEDIUM | per-broker
create.topic.policy.class.name | CLASS | null | - | LOW | read-only
default.replication.factor | INT | 1 | - | MEDIUM | read-only
delegation.token.expiry.check.interval.ms | LONG | 3600000 | [1,...] | LOW | read-only
delegation.token.expiry.time.ms | LONG | 86400000 | [1,...] | MEDIUM | read-only
delegation.token.max.lifetime.ms | LONG | 604800000 | [1,...] | MEDIUM | read-only
delegation.token.secret.key | PASSWORD | null | - | MEDIUM | read-only
delete.records.purgatory.purge.interval.requests | INT | 1 | - | MEDIUM | read-only
delete.topic.enable | BOOLEAN | true | - | HIGH | read-only
early.start.listeners | LIST | null | distinct list | HIGH | read-only
fetch.max.bytes | INT | 57671680 | [1024,...] | MEDIUM | read-only
fetch.purgatory.purge.interval.requests | INT | 1000 | - | MEDIUM | read-only
follower.fetch.last.tiered.offset.enable | BOOLEAN | false | - | MEDIUM | cluster-wide
group.consumer.assignment.interval.ms | INT | 1000 | [0,...] | MEDIUM | cluster-wide
group.consumer.assignors | LIST | [uniform, range] | filled distinct list | MEDIUM | read-only
group.consumer.heartbeat.interval.ms | INT | 5000 | [1,...] | MEDIUM | read-only
group.consumer.max.assignment.interval.ms | INT | 15000 | [0,...] | MEDIUM | read-only
group.consumer.max.heartbeat.interval.ms | INT | 15000 | [1,...] | MEDIUM | read-only
group.consumer.max.session.timeout.ms | INT | 60000 | [1,...] | MEDIUM | read-only
group.consumer.max.size | INT | 2147483647 | [1,...] | MEDIUM | read-only
group.consumer.migration.policy | STRING | bidirectional | (case insensitive) [DISABLED, DOWNGRADE, UPGRADE, BIDIRECTIONAL] | MEDIUM | read-only
group.consumer.min.assignment.interval.ms | INT | 0 | [0,...] | MEDIUM | read-only
group.consumer.min.heartbeat.interval.ms | INT | 5000 | [1,...] | MEDIUM | read-only
group.consumer.min.session.timeout.ms | INT | 45000 | [1,...] | MEDIUM | read-only
group.consumer.session.timeout.ms | INT | 45000 | [1,...] | MEDIUM | read-only
group.coordinator.append.linger.ms | INT | -1 | [-1,...] | MEDIUM | read-only
group.coordinator.background.threads | INT | 2 | [1,...] | HIGH | read-only
group.coordinator.cached.buffer.max.bytes | INT | 1048588 | [524288,...] | MEDIUM | cluster-wide
group.coordinator.rebalance.protocols | LIST | [classic, consumer, streams] | filled [consumer, classic, share, streams] | MEDIUM | read-only
group.coordinator.threads | INT | 4 | [1,...] | HIGH | read-only
group.initial.rebalance.delay.ms | INT | 3000 | - | MEDIUM | read-only
group.max.session.timeout.ms | INT | 1800000 | - | MEDIUM | read-only
group.max.size | INT | 2147483647 | [1,...] | MEDIUM | read-only
group.min.session.timeout.ms | INT | 6000 | - | MEDIUM | read-only
group.share.assignment.interval.ms | INT | 1000 | [0,...] | MEDIUM | cluster-wide
group.share.assignors | LIST | [simple] | filled distinct list | MEDIUM | read-only
group.share.delivery.count.limit | INT | 5 | [2,...,10] | MEDIUM | read-only
group.share.heartbeat.interval.ms | INT | 5000 | [1,...] | MEDIUM | read-only
group.share.max.assignment.interval.ms | INT | 15000 | [0,...] | MEDIUM | read-only
group.share.max.delivery.count.limit | INT | 10 | [5,...,25] | MEDIUM | read-only
group.share.max.heartbeat.interval.ms | INT | 15000 | [1,...] | MEDIUM | read-only
group.share.max.partition.max.record.locks | INT | 4000 | [2000,...,10000] | MEDIUM | read-only
group.share.max.record.lock.duration.ms | INT | 60000 | [30000,...,3600000] | MEDIUM | read-only
group.share.max.session.timeout.ms | INT | 60000 | [1,...] | MEDIUM | read-only
group.share.max.share.sessions | INT | 2000 | [1,...] | MEDIUM | read-only
group.share.max.size | INT | 200 | [1,...,1000] | MEDIUM | read-only
group.share.min.assignment.interval.ms | INT | 0 | [0,...] | MEDIUM | read-only
group.share.min.delivery.count.limit | INT | 2 | [2,...,5] | MEDIUM | read-only
group.share.min.heartbeat.interval.ms | INT | 5000 | [1,...] | MEDIUM | read-only
group.share.min.partition.max.record.locks | INT | 100 | [100,...,2000] | MEDIUM | read-only
group.share.min.record.lock.duration.ms | INT | 15000 | [1000,...,30000] | MEDIUM | read-only
group.share.min.session.timeout.ms | INT | 45000 | [1,...] | MEDIUM | read-only
group.share.partition.max.record.locks | INT | 2000 | [100,...,10000] | MEDIUM | read-only
group.share.record.lock.duration.ms | INT | 30000 | [1000,...,3600000] | MEDIUM | read-only
group.share.session.timeout.ms | INT | 45000 | [1,...] | MEDIUM | read-only
group.streams.assignment.interval.ms | INT | 1000 | [0,...] | MEDIUM | cluster-wide
group.streams.heartbeat.interval.ms | INT | 5000 | [1,...] | MEDIUM | read-only
group.streams.initial.rebalance.delay.ms | INT | 3000 | [0,...] | MEDIUM | read-only
group.streams.max.assignment.interval.ms | INT | 15000 | [0,...] | MEDIUM | read-only
group.streams.max.heartbeat.interval.ms | INT | 15000 | [1,...] | MEDIUM | read-only
group.streams.max.session.timeout.ms | INT | 60000 | [1,...] | MEDIUM | read-only
group.streams.max.size | INT | 2147483647 | [1,...] | MEDIUM | read-only
group.streams.max.standby.replicas | INT | 2 | [0,...] | MEDIUM | read-only
group.streams.min.assignment.interval.ms | INT | 0 | [0,...] | MEDIUM | read-only
group.streams.min.heartbeat.interval.ms | INT | 5000 | [1,...] | MEDIUM | read-only
group.streams.min.session.timeout.ms | INT | 45000 | [1,...] | MEDIUM | read-only
group.streams.num.standby.replicas | INT | 0 | [0,...] | MEDIUM | read-only
group.streams.session.timeout.ms | INT | 45000 | [1,...] | MEDIUM | read-only
initial.broker.registration.timeout.ms | INT | 60000 | - | MEDIUM | read-only
inter.broker.listener.name | STRING | null | - | MEDIUM | read-only
kafka.metrics.polling.interval.secs | INT | 10 | [1,...] | LOW | read-only
kafka.metrics.reporters | LIST | [] | distinct list | LOW | read-only
leader.imbalance.check.interval.seconds | LONG | 300 | [1,...] | HIGH | read-only
listener.security.protocol.map | STRING | SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT | - | LOW | per-broker
listeners | LIST | [PLAINTEXT://:9092] | filled distinct list | HIGH | per-broker
log.cleaner.backoff.ms | LONG | 15000 | [0,...] | MEDIUM | cluster-wide
log.cleaner.dedupe.buffer.size | LONG | 134217728 | - | MEDIUM | cluster-wide
log.cleaner.delete.retention.ms | LONG | 86400000 | [0,...] | MEDIUM | cluster-wide
log.cleaner.enable | BOOLEAN | true | - | MEDIUM | read-only
log.cleaner.io.buffer.load.factor | DOUBLE | 0.9 | - | MEDIUM | cluster-wide
log.cleaner.io.buffer.size | INT | 524288 | [0,...] | MEDIUM | cluster-wide
log.cleaner.io.max.bytes.per.second | DOUBLE | 1.7976931348623157E308 | - | MEDIUM | cluster-wide
log.cleaner.max.compaction.lag.ms | LONG | 9223372036854775807 | [1,...] | MEDIUM | cluster-wide
log.cleaner.min.cleanable.ratio | DOUBLE | 0.5 | [0,...,1] | MEDIUM | cluster-wide
log.cleaner.min.compaction.lag.ms | LONG | 0 | [0,...] | MEDIUM | cluster-wide
log.cleaner.threads | INT | 1 | [0,...] | MEDIUM | cluster-wide
log.cleanup.policy | LIST | [delete] | [compact, delete] | MEDIUM | cluster-wide
log.dir | LIST | [/tmp/kafka-logs] | filled distinct list | HIGH | read-only
log.dir.failure.timeout.ms | LONG | 30000 | [1,...] | LOW | read-only
log.dirs | LIST | null | filled distinct list | HIGH | read-only
log.flush.interval.messages | LONG | 9223372036854775807 | [1,...] | HIGH | cluster-wide
log.flush.interval.ms | LONG | null | - | HIGH | cluster-wide
log.flush.offset.checkpoint.interval.ms | INT | 60000 | [0,...] | HIGH | read-only
log.flush.scheduler.interval.ms | LONG | 9223372036854775807 | - | HIGH | read-only
log.flush.start.offset.checkpoint.interval.ms | INT | 60000 | [0,...] | HIGH | read-only
log.index.interval.bytes | INT | 4096 | [0,...] | MEDIUM | cluster-wide
log.index.size.max.bytes | INT | 10485760 | [4,...] | MEDIUM | cluster-wide
log.local.retention.bytes | LONG | -2 | [-2,...] | MEDIUM | cluster-wide
log.local.retention.ms | LONG | -2 | [-2,...] | MEDIUM | cluster-wide
log.message.timestamp.after.max.ms | LONG | 3600000 | [0,...] | MEDIUM | cluster-wide
log.message.timestamp.before.max.ms | LONG | 9223372036854775807 | [0,...] | MEDIUM | cluster-wide
log.message.timestamp.type | STRING | CreateTime | [CreateTime, LogAppendTime] | MEDIUM | cluster-wide
log.preallocate | BOOLEAN | false | - | MEDIUM | cluster-wide
log.retention.bytes | LONG | -1 | - | HIGH | cluster-wide
log.retention.check.interval.ms | LONG | 300000 | [1,...] | MEDIUM | read-only
log.retention.hours | INT | 168 | - | HIGH | read-only
log.retention.minutes | INT | null | - | HIGH | read-only
log.retention.ms | LONG | null | - | HIGH | cluster-wide
log.roll.hours | INT | 168 | [1,...] | HIGH | read-only
log.roll.jitter.hours | INT | 0 | [0,...] | HIGH | read-only
log.roll.jitter.ms | LONG | null | - | HIGH | cluster-wide
log.roll.ms | LONG | null | - | HIGH | cluster-wide
log.segment.bytes | INT | 1073741824 | [1048576,...] | HIGH | cluster-wide
log.segment.delete.delay.ms | LONG | 60000 | [0,...] | HIGH | cluster-wide
max.connection.creation.rate | INT | 2147483647 | [0,...] | MEDIUM | cluster-wide
max.connections | INT | 2147483647 | [0,...] | MEDIUM | cluster-wide
max.connections.per.ip | INT | 2147483647 | [0,...] | MEDIUM | cluster-wide
max.connections.per.ip.overrides | STRING |  | - | MEDIUM | cluster-wide
max.incremental.fetch.session.cache.slots | INT | 1000 | [0,...] | MEDIUM | read-only
max.request.partition.size.limit | INT | 2000 | [1,...] | MEDIUM | read-only
message.max.bytes | INT | 1048588 | [0,...] | HIGH | cluster-wide
metadata.log.dir | STRING | null | - | HIGH | read-only
metadata.log.max.record.bytes.between.snapshots | LONG | 20971520 | [1,...] | HIGH | read-only
metadata.log.max.snapshot.interval.ms | LONG | 3600000 | [0,...] | HIGH | read-only
metadata.log.segment.bytes | INT | 1073741824 | [8388608,...] | HIGH | read-only
metadata.log.segment.ms | LONG | 604800000 | - | HIGH | read-only
metadata.max.idle.interval.ms | INT | 500 | [0,...] | LOW | read-only
metadata.max.retention.bytes | LONG | 104857600 | - | HIGH | read-only
metadata.max.retention.ms | LONG | 604800000 | - | HIGH | read-only
metric.reporters | LIST | [org.apache.kafka.common.metrics.JmxReporter] | distinct list | LOW | cluster-wide
metrics.num.samples | INT | 2 | [1,...] | LOW | read-only
metrics.recording.level | STRING | INFO | - | LOW | read-only
metrics.sample.window.ms | LONG | 30000 | [1,...] | LOW | read-only
min.insync.replicas | INT | 1 | [1,...] | HIGH | cluster-wide
node.id | INT | REQUIRED | [0,...] | HIGH | read-only
num.io.threads | INT | 8 | [1,...] | HIGH | cluster-wide
num.network.threads | INT | 3 | [1,...] | HIGH | cluster-wide
num.partitions | INT | 1 | [1,...] | MEDIUM | read-only
num.recovery.threads.per.data.dir | INT | 2 | [1,...] | HIGH | cluster-wide
num.replica.alter.log.dirs.threads | INT | null | - | HIGH | read-only
num.replica.fetchers | INT | 1 | [1,...] | HIGH | cluster-wide
offset.metadata.max.bytes | INT | 4096 | - | HIGH | read-only
offsets.commit.timeout.ms | INT | 5000 | [1,...] | HIGH | read-only
offsets.load.buffer.size | INT | 5242880 | [1,...] | HIGH | read-only
offsets.retention.check.interval.ms | LONG | 600000 | [1,...] | HIGH | read-only
offsets.retention.minutes | INT | 10080 | [1,...] | HIGH | read-only
offsets.topic.compression.codec | INT | 0 | - | HIGH | read-only
offsets.topic.num.partitions | INT | 50 | [1,...] | HIGH | read-only
offsets.topic.replication.factor | SHORT | 3 | [1,...] | HIGH | read-only
offsets.topic.segment.bytes | INT | 104857600 | [1,...] | HIGH | read-only
principal.builder.class | CLASS | org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder | - | MEDIUM | per-broker
process.roles | LIST | REQUIRED | filled [broker, controller] | HIGH | read-only
producer.id.expiration.ms | INT | 86400000 | [1,...] | LOW | cluster-wide
producer.purgatory.purge.interval.requests | INT | 1000 | - | MEDIUM | read-only
queued.max.request.bytes | LONG | -1 | - | MEDIUM | read-only
queued.max.requests | INT | 500 | [1,...] | HIGH | read-only
quota.window.num | INT | 11 | [1,...] | LOW | read-only
quota.window.size.seconds | INT | 1 | [1,...] | LOW | read-only
remote.fetch.max.wait.ms | INT | 500 | [1,...] | MEDIUM | cluster-wide
remote.list.offsets.request.timeout.ms | LONG | 30000 | [1,...] | MEDIUM | cluster-wide
remote.log.index.file.cache.total.size.bytes | LONG | 1073741824 | [1,...] | LOW | cluster-wide
remote.log.manager.copier.thread.pool.size | INT | 10 | [1,...] | MEDIUM | cluster-wide
remote.log.manager.copy.max.bytes.per.second | LONG | 9223372036854775807 | [1,...] | MEDIUM | cluster-wide
remote.log.manager.copy.quota.window.num | INT | 11 | [1,...] | MEDIUM | read-only
remote.log.manager.copy.quota.window.size.seconds | INT | 1 | [1,...] | MEDIUM | read-only
remote.log.manager.expiration.thread.pool.size | INT | 10 | [1,...] | MEDIUM | cluster-wide
remote.log.manager.fetch.max.bytes.per.second | LONG | 9223372036854775807 | [1,...] | MEDIUM | cluster-wide
remote.log.manager.fetch.quota.window.num | INT | 11 | [1,...] | MEDIUM | read-only
remote.log.manager.fetch.quota.window.size.seconds | INT | 1 | [1,...] | MEDIUM | read-only
remote.log.manager.follower.thread.pool.size | INT | 2 | [1,...] | MEDIUM | cluster-wide
remote.log.manager.task.interval.ms | LONG | 30000 | [1,...] | LOW | read-only
remote.log.manager.thread.pool.size | INT | 2 | [1,...] | MEDIUM | read-only
remote.log.metadata.custom.metadata.max.bytes | INT | 128 | [0,...] | LOW | read-only
remote.log.metadata.manager.class.name | STRING | org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager | non-empty string | MEDIUM | read-only
remote.log.metadata.manager.class.path | STRING | null | - | MEDIUM | read-only
remote.log.metadata.manager.impl.prefix | STRING | rlmm.config. | non-empty string | MEDIUM | read-only
remote.log.metadata.manager.listener.name | STRING | null | non-empty string | MEDIUM | read-only
remote.log.reader.max.pending.tasks | INT | 100 | [1,...] | MEDIUM | read-only
remote.log.reader.threads | INT | 10 | [1,...] | MEDIUM | cluster-wide
remote.log.storage.manager.class.name | STRING | null | non-empty string | MEDIUM | read-only
remote.log.storage.manager.class.path | STRING | null | - | MEDIUM | read-only
remote.log.storage.manager.impl.prefix | STRING | rsm.config. | non-empty string | MEDIUM | read-only
remote.log.storage.system.enable | BOOLEAN | false | - | MEDIUM | read-only
replica.fetch.backoff.ms | INT | 1000 | [0,...] | MEDIUM | read-only
replica.fetch.max.bytes | INT | 1048576 | [0,...] | MEDIUM | read-only
replica.fetch.min.bytes | INT | 1 | - | HIGH | read-only
replica.fetch.response.max.bytes | INT | 10485760 | [0,...] | MEDIUM | read-only
replica.fetch.wait.max.ms | INT | 500 | - | HIGH | read-only
replica.high.watermark.checkpoint.interval.ms | LONG | 5000 | - | HIGH | read-only
replica.lag.time.max.ms | LONG | 30000 | - | HIGH | read-only
replica.selector.class | STRING | null | - | MEDIUM | read-only
replica.socket.receive.buffer.bytes | INT | 65536 | - | HIGH | read-only
replica.socket.timeout.ms | INT | 30000 | - | HIGH | read-only
replication.quota.window.num | INT | 11 | [1,...] | LOW | read-only
replication.quota.window.size.seconds | INT | 1 | [1,...] | LOW | read-only
request.timeout.ms | INT | 30000 | - | HIGH | read-only
sasl.client.callback.handler.class | CLASS | null | - | MEDIUM | read-only
sasl.enabled.mechanisms | LIST | [GSSAPI] | distinct list | MEDIUM | per-broker
sasl.jaas.config | PASSWORD | null | - | MEDIUM | per-broker
sasl.kerberos.kinit.cmd | STRING | /usr/bin/kinit | - | MEDIUM | per-broker
sasl.kerberos.min.time.before.relogin | LONG | 60000 | - | MEDIUM | per-broker
sasl.kerberos.principal.to.local.rules | LIST | [DEFAULT] | distinct list | MEDIUM | per-broker
sasl.kerberos.service.name | STRING | null | - | MEDIUM | per-broker
sasl.kerberos.ticket.renew.jitter | DOUBLE | 0.05 | - | MEDIUM | per-broker
sasl.kerberos.ticket.renew.window.factor | DOUBLE | 0.8 | - | MEDIUM | per-broker
sasl.login.callback.handler.class | CLASS | null | - | MEDIUM | read-only
sasl.login.class | CLASS | null | - | MEDIUM | read-only
sasl.login.connect.timeout.ms | INT | null | - | LOW | read-only
sasl.login.read.timeout.ms | INT | null | - | LOW | read-only
sasl.login.refresh.buffer.seconds | SHORT | 300 | - | MEDIUM | per-broker
sasl.login.refresh.min.period.seconds | SHORT | 60 | - | MEDIUM | per-broker
sasl.login.refresh.window.factor | DOUBLE | 0.8 | - | MEDIUM | per-broker
sasl.login.refresh.window.jitter | DOUBLE | 0.05 | - | MEDIUM | per-broker
sasl.login.retry.backoff.max.ms | LONG | 10000 | - | LOW | read-only
sasl.login.retry.backoff.ms | LONG | 100 | - | LOW | read-only
sasl.mechanism.controller.protocol | STRING | GSSAPI | - | HIGH | read-only
sasl.mechanism.inter.broker.protocol | STRING | GSSAPI | - | MEDIUM | per-broker
sasl.oauthbearer.assertion.algorithm | STRING | RS256 | (case insensitive) [ES256, RS256] | MEDIUM | read-only
sasl.oauthbearer.assertion.claim.aud | STRING | null | - | MEDIUM | read-only
sasl.oauthbearer.assertion.claim.exp.seconds | INT | 300 | [0,...,86400] | LOW | read-only
sasl.oauthbearer.assertion.claim.iss | STRING | null | - | MEDIUM | read-only
sasl.oauthbearer.assertion.claim.jti.include | BOOLEAN | false | - | MEDIUM | read-only
sasl.oauthbearer.assertion.claim.nbf.seconds | INT | 60 | [0,...,3600] | LOW | read-only
sasl.oauthbearer.assertion.claim.sub | STRING | null | - | MEDIUM | read-only
sasl.oauthbearer.assertion.file | STRING | null | - | MEDIUM | read-only
sasl.oauthbearer.assertion.private.key.file | STRING | null | - | MEDIUM | read-only
sasl.oauthbearer.assertion.private.key.passphrase | PASSWORD | null | - | MEDIUM | read-only
sasl.oauthbearer.assertion.template.file | STRING | null | - | MEDIUM | read-only
sasl.oauthbearer.client.credentials.client.id | STRING | null | - | MEDIUM | read-only
sasl.oauthbearer.client.credentials.client.secret | PASSWORD | null | - | MEDIUM | read-only
sasl.oauthbearer.clock.skew.seconds | INT | 30 | - | LOW | read-only
sasl.oauthbearer.expected.audience | LIST | [] | distinct list | LOW | read-only
sasl.oauthbearer.expected.issuer | STRING | null | - | LOW | read-only
sasl.oauthbearer.jwks.endpoint.refresh.ms | LONG | 3600000 | - | LOW | read-only
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms | LONG | 10000 | - | LOW | read-only
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms | LONG | 100 | - | LOW | read-only
sasl.oauthbearer.jwks.endpoint.url | STRING | null | - | MEDIUM | read-only
sasl.oauthbearer.jwt.retriever.class | CLASS | org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever | - | MEDIUM | read-only
sasl.oauthbearer.jwt.validator.class | CLASS | org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator | - | MEDIUM | read-only
sasl.oauthbearer.scope | STRING | null | - | MEDIUM | read-only
sasl.oauthbearer.scope.claim.name | STRING | scope | - | LOW | read-only
sasl.oauthbearer.sub.claim.name | STRING | sub | - | LOW | read-only
sasl.oauthbearer.token.endpoint.url | STRING | null | - | MEDIUM | read-only
sasl.server.callback.handler.class | CLASS | null | - | MEDIUM | read-only
sasl.server.max.receive.size | INT | 524288 | - | MEDIUM | read-only
security.inter.broker.protocol | STRING | PLAINTEXT | [PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL] | MEDIUM | read-only
security.providers | STRING | null | - | LOW | read-only
share.coordinator.append.linger.ms | INT | -1 | [-1,...] | MEDIUM | read-only
share.coordinator.cached.buffer.max.bytes | INT | 1048588 | [524288,...] | MEDIUM | cluster-wide
share.coordinator.load.buffer.size | INT | 5242880 | [1,...] | HIGH | read-only
share.coordinator.snapshot.update.records.per.snapshot | INT | 500 | [0,...,500] | MEDIUM | read-only
share.coordinator.state.topic.compression.codec | INT | 0 | - | HIGH | read-only
share.coordinator.state.topic.min.isr | SHORT | 2 | [1,...] | HIGH | read-only
share.coordinator.state.topic.num.partitions | INT | 50 | [1,...] | HIGH | read-only
share.coordinator.state.topic.replication.factor | SHORT | 3 | [1,...] | HIGH | read-only
share.coordinator.state.topic.segment.bytes | INT | 104857600 | [1,...] | HIGH | read-only
share.coordinator.threads | INT | 1 | [1,...] | MEDIUM | read-only
share.coordinator.write.timeout.ms | INT | 5000 | [1,...] | HIGH | read-only
share.fetch.purgatory.purge.interval.requests | INT | 1000 | - | MEDIUM | read-only
socket.connection.setup.timeout.max.ms | LONG | 30000 | - | MEDIUM | read-only
socket.connection.setup.timeout.ms | LONG | 10000 | - | MEDIUM | read-only
socket.listen.backlog.size | INT | 50 | [1,...] | MEDIUM | read-only
socket.receive.buffer.bytes | INT | 102400 | - | HIGH | read-only
socket.request.max.bytes | INT | 104857600 | [1,...] | HIGH | read-only
socket.send.buffer.bytes | INT | 102400 | - | HIGH | read-only
ssl.allow.dn.changes | BOOLEAN | false | - | LOW | read-only
ssl.allow.san.changes | BOOLEAN | false | - | LOW | read-only
ssl.cipher.suites | LIST | [] | distinct list | MEDIUM | per-broker
ssl.client.auth | STRING | none | [required, requested, none] | MEDIUM | per-broker
ssl.enabled.protocols | LIST | [TLSv1.2, TLSv1.3] | distinct list | MEDIUM | per-broker
ssl.endpoint.identification.algorithm | STRING | https | - | LOW | per-broker
ssl.engine.factory.class | CLASS | null | - | LOW | per-broker
ssl.key.password | PASSWORD | null | - | MEDIUM | per-broker
ssl.keymanager.algorithm | STRING | SunX509 | - | MEDIUM | per-broker
ssl.keystore.certificate.chain | PASSWORD | null | - | MEDIUM | per-broker
ssl.keystore.key | PASSWORD | null | - | MEDIUM | per-broker
ssl.keystore.location | STRING | null | - | MEDIUM | per-broker
ssl.keystore.password | PASSWORD | null | - | MEDIUM | per-broker
ssl.keystore.type | STRING | JKS | - | MEDIUM | per-broker
ssl.principal.mapping.rules | STRING | DEFAULT | - | LOW | read-only
ssl.protocol | STRING | TLSv1.3 | - | MEDIUM | per-broker
ssl.provider | STRING | null | - | MEDIUM | per-broker
ssl.secure.random.implementation | STRING | null | - | LOW | per-broker
ssl.trustmanager.algorithm | STRING | PKIX | - | MEDIUM | per-broker
ssl.truststore.certificates | PASSWORD | null | - | MEDIUM | per-broker
ssl.truststore.location | STRING | null | - | MEDIUM | per-broker
ssl.truststore.password | PASSWORD | null | - | MEDIUM | per-broker
ssl.truststore.type | STRING | JKS | - | MEDIUM | per-broker
telemetry.max.bytes | INT | 1048576 | [1,...] | LOW | read-only
transaction.abort.timed.out.transaction.cleanup.interval.ms | INT | 10000 | [1,...] | LOW | read-only
transaction.max.timeout.ms | INT | 900000 | [1,...] | HIGH | read-only
transaction.partition.verification.enable | BOOLEAN | true | - | LOW | cluster-wide
transaction.remove.expired.transaction.cleanup.interval.ms | INT | 3600000 | [1,...] | LOW | read-only
transaction.state.log.load.buffer.size | INT | 5242880 | [1,...] | HIGH | read-only
transaction.state.log.min.isr | INT | 2 | [1,...] | HIGH | read-only
transaction.state.log.num.partitions | INT | 50 | [1,...] | HIGH | read-only
transaction.state.log.replication.factor | SHORT | 3 | [1,...] | HIGH | read-only
transaction.state.log.segment.bytes | INT | 104857600 | [1,...] | HIGH | read-only
transaction.two.phase.commit.enable | BOOLEAN | false | - | LOW | read-only
transactional.id.expiration.ms | INT | 604800000 | [1,...] | HIGH | read-only
unclean.leader.election.enable | BOOLEAN | false | - | HIGH | cluster-wide
controller.performance.always.log.threshold.ms | LONG | 2000 | [0,...] | MEDIUM | read-only | internal
controller.performance.sample.period.ms | LONG | 60000 | [100,...] | MEDIUM | read-only | internal
group.consumer.regex.refresh.interval.ms | INT | 600000 | [10000,...] | MEDIUM | read-only | internal
group.share.initialize.retry.interval.ms | INT | 30000 | [1,...] | LOW | read-only | internal
group.share.persister.class.name | STRING | org.apache.kafka.server.share.persister.DefaultStatePersister | - | MEDIUM | read-only | internal
internal.metadata.delete.delay.millis | LONG | 60000 | - | LOW | read-only | internal
internal.metadata.log.segment.bytes | INT | null | - | LOW | read-only | internal
internal.metadata.max.batch.size.in.bytes | INT | 8388608 | - | LOW | read-only | internal
log.initial.task.delay.ms | LONG | 30000 | [0,...] | LOW | read-only | internal
producer.id.expiration.check.interval.ms | INT | 600000 | [1,...] | LOW | read-only | internal
remote.log.index.file.cache.ttl.ms | LONG | 900000 | [-1,...] | LOW | read-only | internal
remote.log.manager.task.retry.backoff.max.ms | LONG | 30000 | [1,...] | LOW | read-only | internal
remote.log.manager.task.retry.backoff.ms | LONG | 500 | [1,...] | LOW | read-only | internal
remote.log.manager.task.retry.jitter | DOUBLE | 0.2 | [0,...,0.5] | LOW | read-only | internal
server.max.startup.time.ms | LONG | 9223372036854775807 | [0,...] | MEDIUM | read-only | internal
share.coordinator.cold.partition.snapshot.interval.ms | INT | 300000 | [1,...] | LOW | read-only | internal
share.coordinator.state.topic.prune.interval.ms | INT | 300000 | [1,...] | LOW | read-only | internal
unclean.leader.election.interval.ms | LONG | 300000 | [1,...] | MEDIUM | read-only | internal
unstable.api.versions.enable | BOOLEAN | false | - | HIGH | read-only | internal
unstable.feature.versions.enable | BOOLEAN | false | - | HIGH | read-only | internal
follower.replication.throttled.rate | LONG | 9223372036854775807 | [0,...] | MEDIUM | cluster-wide | internal
leader.replication.throttled.rate | LONG | 9223372036854775807 | [0,...] | MEDIUM | cluster-wide | internal
replica.alter.log.dirs.io.max.bytes.per.second | LONG | 9223372036854775807 | [0,...] | MEDIUM | cluster-wide | internal
"""
