"""Documents every broker setting that has an effect in Ottla. A setting that is not here is accepted and has no effect.

Defaults for topic settings (`TOPIC_SYNONYMS`) are documented by the topic setting.
"""

from __future__ import annotations

from ottla.config.topic_keys import TOPIC_KEYS, TOPIC_SYNONYMS, TOPIC_WITHOUT_EFFECT

_WORDS: dict[str, str] = {
    "add.partitions.to.txn.retry.backoff.max.ms": (
        "How long records of a transaction wait at most while the producer's previous transaction is still being ended."
    ),
    "add.partitions.to.txn.retry.backoff.ms": (
        "How long to wait before asking a transaction's coordinator again, for records that wait for the end of the previous "
        "transaction."
    ),
    "advertised.listeners": (
        "The addresses that clients and other nodes connect to, as NAME://host:port, if they differ from listeners: behind a "
        "proxy, in a container. A listener without an entry advertises its own address."
    ),
    "alter.log.dirs.replication.quota.window.num": (
        "Over how many windows the rate of moves to other log directories is measured."
    ),
    "alter.log.dirs.replication.quota.window.size.seconds": "How long each of these windows is.",
    "authorizer.class.name": (
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer: check every request against the access control lists of the "
        "cluster. Set it on every node, with the same super.users (separated by semicolons, such as User:admin), who may do "
        "everything, and allow.everyone.if.no.acl.found. Empty: everybody may do everything."
    ),
    "auto.create.topics.enable": "Create a topic when a client asks for one that does not exist.",
    "auto.leader.rebalance.enable": (
        "Give partitions back to their preferred leaders, the first of their replicas, when these are in sync again."
    ),
    "broker.heartbeat.interval.ms": "How often a broker tells the active controller of its cluster that it is alive.",
    "broker.id": "The older name of node.id.",
    "broker.rack": "The rack of the broker. Replicas of one partition are spread over racks.",
    "broker.session.timeout.ms": "How long the controller waits for a broker's heartbeat before it moves leadership away.",
    "confluent.basic.auth.user.info": (
        "The login for confluent.schema.registry.url, as user:password. Confluent Server's setting; Kafka does not have it."
    ),
    "confluent.schema.registry.url": (
        "The schema registry that is asked about the schema ids of records, for topics with confluent.value.schema.validation "
        "or confluent.key.schema.validation: http://HOST:PORT, or several, separated by commas. `ottla up` sets it to its own "
        "registry; by default it is the one of ottla.schema.registry.port. Confluent Server's setting; Kafka does not have it."
    ),
    "connection.failed.authentication.delay.ms": "How late a failed login is answered, so that guessing passwords takes long.",
    "connections.max.reauth.ms": (
        "How long a session lasts after a login; 0: without end. Clients log in again before, on the same connection. For one "
        "listener or mechanism: listener.name.NAME.MECHANISM.connections.max.reauth.ms, in lower case."
    ),
    "connections.max.idle.ms": "Close a connection after this long without traffic.",
    "controller.listener.names": "Which of the listeners are for the controller. Clients cannot use them.",
    "controller.quorum.auto.join.enable": (
        "Let this controller become a voter of a quorum that can change, as soon as it has caught up. If its directory was "
        "replaced, it removes its old one from the voters first. Turn it off before you remove the controller."
    ),
    "controller.quorum.bootstrap.servers": (
        "The addresses of the controllers, as host:port. A node that names only itself is a cluster of its own, to which no "
        "controllers can be added."
    ),
    "controller.quorum.election.backoff.max.ms": "The longest wait of a controller before it stands when the leader resigns.",
    "controller.quorum.election.timeout.ms": (
        "How long an election may take before the next one. Each controller draws its own time between this and twice this."
    ),
    "controller.quorum.fetch.max.bytes": "The most bytes of the metadata log in one response. At least one batch is returned.",
    "controller.quorum.fetch.snapshot.max.bytes": "The most bytes of a metadata snapshot in one response.",
    "controller.quorum.fetch.timeout.ms": (
        "How long a controller waits for the quorum's leader before it asks the others for their votes. A leader that no "
        "majority has fetched from for 1.5 times this resigns."
    ),
    "controller.quorum.request.timeout.ms": "How long a controller waits for the answer to a request to another one.",
    "controller.quorum.retry.backoff.ms": "How long to wait before a failed request to another controller is sent again.",
    "controller.quorum.voters": (
        "The members of a quorum that never changes, as id@host:port. Quorums that can change use "
        "controller.quorum.bootstrap.servers."
    ),
    "controller.quota.window.num": "How many windows' worth of changes of the metadata a client can save up.",
    "controller.quota.window.size.seconds": "How long each of these windows is.",
    "cordoned.log.dirs": "Log directories that get no new or moved partitions; `*` means all of them.",
    "default.replication.factor": "How many replicas a new topic's partitions have, if its creation does not say.",
    "delete.topic.enable": "Allow topics to be deleted.",
    "fetch.max.bytes": (
        "The most bytes that a fetch may return, even if the client asks for more. At least one batch is always returned."
    ),
    "follower.replication.throttled.rate": (
        "The most bytes in a second that a broker fetches for replicas listed in follower.replication.throttled.replicas, as "
        "long as they are not in sync. Set at run time."
    ),
    "group.consumer.assignment.interval.ms": (
        "The shortest time between two assignments of a consumer group, so that several members that join or leave cause one "
        "assignment. 0 assigns at every change. Groups can have their own."
    ),
    "group.consumer.assignors": (
        "How consumer groups may assign partitions: uniform (evenly, moving few partitions) or range (contiguous ranges, the "
        "same for every topic). The first applies to members that do not choose. Java classes are not loaded."
    ),
    "group.consumer.heartbeat.interval.ms": "How often members of consumer groups send heartbeats. Groups can have their own.",
    "group.consumer.max.assignment.interval.ms": "The longest consumer.assignment.interval.ms that a group can be given.",
    "group.consumer.max.heartbeat.interval.ms": "The longest consumer.heartbeat.interval.ms that a group can be given.",
    "group.consumer.max.session.timeout.ms": "The longest consumer.session.timeout.ms that a group can be given.",
    "group.consumer.max.size": "How many members a consumer group may have. Further members are refused.",
    "group.consumer.migration.policy": (
        "Whether groups with members change their protocol: from classic to consumer when the first consumer-protocol member "
        "joins (upgrade), back when the last one leaves (downgrade), both (bidirectional) or neither (disabled). Empty groups "
        "always can."
    ),
    "group.consumer.min.assignment.interval.ms": "The shortest consumer.assignment.interval.ms that a group can be given.",
    "group.consumer.min.heartbeat.interval.ms": "The shortest consumer.heartbeat.interval.ms that a group can be given.",
    "group.consumer.min.session.timeout.ms": "The shortest consumer.session.timeout.ms that a group can be given.",
    "group.consumer.session.timeout.ms": (
        "How long a member of a consumer group may send no heartbeat before it is evicted and its partitions are reassigned. "
        "Groups can have their own."
    ),
    "group.coordinator.rebalance.protocols": (
        "Which protocols groups may use: classic and consumer. share and streams are accepted, but not served."
    ),
    "group.initial.rebalance.delay.ms": (
        "How long an empty group waits for more members after one has joined, and again after each further one, up to the "
        "rebalance timeout. It saves rebalances while an application starts, and delays its first records."
    ),
    "group.max.session.timeout.ms": (
        "The longest session.timeout.ms that a member of a classic group may ask for. With a long timeout, dead members are "
        "noticed late."
    ),
    "group.max.size": "How many members a classic group may have. Further members are refused.",
    "group.min.session.timeout.ms": (
        "The shortest session.timeout.ms that a member of a classic group may ask for. With a short timeout, slow members are "
        "evicted."
    ),
    "initial.broker.registration.timeout.ms": "How long a starting broker tries to register with the controller.",
    "inter.broker.listener.name": "The listener at which brokers reach each other.",
    "leader.imbalance.check.interval.seconds": "How often the controller looks for partitions without their preferred leader.",
    "leader.replication.throttled.rate": (
        "The most bytes in a second that a broker sends to followers of partitions listed in "
        "leader.replication.throttled.replicas, as long as those are not in sync. Set at run time."
    ),
    "listener.security.protocol.map": (
        "Which security protocol each listener uses, as NAME:PROTOCOL: PLAINTEXT, SSL (TLS), SASL_PLAINTEXT or SASL_SSL."
    ),
    "listeners": (
        "Addresses to listen on, as NAME://host:port. An empty host means all addresses of the machine, port 0 any free port."
    ),
    "log.cleaner.backoff.ms": "How long compaction sleeps when there is nothing to compact.",
    "log.cleaner.dedupe.buffer.size": (
        "The memory for the key maps of all running compactions together. A larger map means fewer passes."
    ),
    "log.cleaner.enable": "Compact logs in the background. Without it, topics with the `compact` policy grow without limit.",
    "log.cleaner.io.buffer.load.factor": (
        "How full the key map of a compaction may get, from 0 to 1. A fuller map holds more keys, but lookups are slower."
    ),
    "log.cleaner.io.max.bytes.per.second": (
        "The most bytes that compaction reads and writes in a second, so that clients keep their share of the disk."
    ),
    "log.cleaner.threads": "How many logs are compacted at the same time.",
    "log.dir": "The directory for partitions, if log.dirs is not set.",
    "log.dirs": (
        "The directories for partitions, separated by commas, ideally one per disk. A new partition goes to the directory with "
        "the fewest. Overrides log.dir."
    ),
    "log.flush.offset.checkpoint.interval.ms": (
        "How often to write a checkpoint of how far each log is durable. Records beyond it are checked after a crash."
    ),
    "log.flush.start.offset.checkpoint.interval.ms": (
        "How often to write a checkpoint of each log's start offset, so that deleted records do not return after a crash."
    ),
    "log.initial.task.delay.ms": "How long after a node's start background work begins, such as retention and checkpoints.",
    "log.retention.check.interval.ms": "How often to check for segments that retention deletes.",
    "max.connection.creation.rate": "The most new connections in a second. Further ones wait.",
    "max.connections": (
        "The most connections at a time. A listener can have its own limit: listener.name.NAME.max.connections."
    ),
    "max.connections.per.ip": "The most connections from one address at a time.",
    "max.connections.per.ip.overrides": "Limits for single addresses, as host:count.",
    "max.incremental.fetch.session.cache.slots": (
        "How many fetch sessions are cached. A client with a session sends only the partitions that changed."
    ),
    "max.request.partition.size.limit": (
        "The most partitions in one DescribeTopicPartitions response. Clients ask for the rest with a cursor."
    ),
    "metadata.log.dir": "The directory of the cluster's metadata log; the first of log.dirs if not set.",
    "metadata.log.max.record.bytes.between.snapshots": "How many bytes the metadata log grows before a snapshot is written.",
    "metadata.log.max.snapshot.interval.ms": "How long the metadata log grows before a snapshot is written; 0: no time limit.",
    "metadata.log.segment.bytes": "The size at which a new segment of the metadata log is rolled.",
    "metadata.log.segment.ms": "The age at which a new segment of the metadata log is rolled even if the old one is not full.",
    "metadata.max.retention.bytes": (
        "How large the metadata log and its snapshots may get before parts that a newer snapshot covers are deleted."
    ),
    "metadata.max.retention.ms": "How long parts of the metadata log are kept that a newer snapshot covers.",
    "node.id": "This node's number, unique in the cluster.",
    "num.partitions": "How many partitions a new topic has, if its creation does not say.",
    "num.recovery.threads.per.data.dir": (
        "How many logs of each directory are opened at the same time at the start, and flushed at the same time at shutdown."
    ),
    "num.replica.alter.log.dirs.threads": (
        "How many partitions move to other log directories at the same time; if not set, as many as there are directories."
    ),
    "offset.metadata.max.bytes": (
        "How many characters of metadata a consumer may commit with an offset. With more, the commit of that partition fails."
    ),
    "offsets.commit.timeout.ms": (
        "How long a group's change waits for the replicas of its partition of __consumer_offsets. After that the request fails "
        "with COORDINATOR_NOT_AVAILABLE, and the client asks again; the change takes effect when the replicas have it."
    ),
    "offsets.retention.check.interval.ms": "How often to check for expired offsets and empty groups.",
    "offsets.retention.minutes": (
        "How long a committed offset is kept after the group has stopped reading its topic: counted from the commit, or from "
        "when the last member left the group. An empty group is deleted with its last offset."
    ),
    "offsets.load.buffer.size": (
        "How many bytes of __consumer_offsets are read at a time when a group coordinator loads, but at least one batch."
    ),
    "offsets.topic.compression.codec": (
        "The compression of records in __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd. Offsets that are committed "
        "in transactions are never compressed."
    ),
    "offsets.topic.num.partitions": (
        "How many partitions __consumer_offsets is created with. Groups are spread over them, and so over brokers. It must not "
        "be changed once the topic exists."
    ),
    "offsets.topic.replication.factor": (
        "How many replicas __consumer_offsets is created with. With fewer brokers it cannot be created, and groups do not "
        "work: a single broker needs 1."
    ),
    "offsets.topic.segment.bytes": (
        "The segment size of __consumer_offsets. Small segments are compacted sooner, so that a coordinator loads faster."
    ),
    "ottla.check.enable": (
        "Look at the machine at the start, as `ottla check` does, and log a line for each thing that will fail or hurt. It "
        "takes some 20 ms in a thread, after the node is up. Kafka does not have this setting."
    ),
    "ottla.command.config": (
        "A file of client settings, as for --command-config: what the console and the schema registry of this node connect to "
        "it with. They use the listeners with its security.protocol; without a file those with PLAINTEXT. Kafka does not have "
        "this setting."
    ),
    "ottla.console.host": (
        "The address that ottla.console.port is opened on. Everybody who reaches it sees records and settings without a "
        "login. Kafka does not have this setting."
    ),
    "ottla.console.port": (
        "Serve a web console beside the node, as `ottla console` does; it only shows. The process starts with the first "
        "connection. Needs ottla[console]. 0 is any free port, -1 none. For `ottla server start`; `ottla up` serves one by "
        "itself. Kafka does not have this setting."
    ),
    "ottla.max.groups": (
        "How many groups this node coordinates at most, those that only have committed offsets included. A new group beyond "
        "that is refused with GROUP_MAX_SIZE_REACHED. A group takes about 1.4 kB. Kafka does not have this setting."
    ),
    "ottla.max.producer.ids": (
        "How many producers the partitions of this node remember at most, each producer counted in every partition it writes "
        "to. Beyond that the producers that have been idle the longest are forgotten before producer.id.expiration.ms, but "
        "none that was active in the last five minutes or has an open transaction. If all are active, a batch of a new "
        "producer is refused with THROTTLING_QUOTA_EXCEEDED. Kafka does not have this setting."
    ),
    "ottla.max.transactional.ids": (
        "How many transactional ids this node coordinates at most. A new one beyond that is refused with POLICY_VIOLATION; "
        "unused ones expire after transactional.id.expiration.ms. An id takes about 0.6 kB. Kafka does not have this setting."
    ),
    "ottla.metrics.host": (
        "The address that ottla.metrics.port is opened on, such as 0.0.0.0. The default is that of the first listener for "
        "clients. Kafka does not have this setting."
    ),
    "ottla.metrics.port": (
        "Serve metrics in Prometheus's text format at http://HOST:PORT/metrics, and the node's health at /healthz and /readyz. "
        "0 is any free port, -1 none. Kafka does not have this setting."
    ),
    "ottla.schema.registry.host": (
        "The address that ottla.schema.registry.port is opened on, such as 0.0.0.0. Kafka does not have this setting."
    ),
    "ottla.schema.registry.port": (
        "Serve a schema registry beside the node, as `ottla registry` does. The process starts with the first connection. "
        "Needs ottla[registry]. 0 is any free port, -1 none. For `ottla server start`; `ottla up` serves one by itself. Kafka "
        "does not have this setting."
    ),
    "process.roles": "What this node does: `broker` stores partitions and serves clients, `controller` manages the cluster.",
    "producer.id.expiration.check.interval.ms": "How often to check for producers that have expired.",
    "producer.id.expiration.ms": (
        "How long a partition keeps the state of a producer that sends nothing. A later retry is not recognised as a duplicate."
    ),
    "queued.max.request.bytes": (
        "The most memory that all requests together may use, in bytes; -1: four times socket.request.max.bytes, and at least "
        "256 MB. The members of all groups may use half as much."
    ),
    "replica.fetch.backoff.ms": "The longest pause until a follower fetches a failed partition again. The first is 50 ms.",
    "replica.fetch.max.bytes": "The most bytes of one partition in a follower's fetch. The first batch is sent even if larger.",
    "replica.fetch.min.bytes": "How many bytes a follower's fetch waits for.",
    "replica.fetch.response.max.bytes": "The most bytes of all partitions in the response to a follower's fetch.",
    "replica.fetch.wait.max.ms": "How long a follower's fetch waits for records. Keep it below replica.lag.time.max.ms.",
    "replica.lag.time.max.ms": (
        "A replica that has not had all records of its leader for this long leaves the in-sync replicas. acks=all does not "
        "wait for it any more."
    ),
    "replica.selector.class": (
        "org.apache.kafka.common.replica.RackAwareReplicaSelector sends consumers that name their rack (client.rack) to a "
        "replica in it. Other classes have no effect: consumers read from leaders."
    ),
    "replica.socket.timeout.ms": "How long a follower waits for the answer to a fetch before it connects again.",
    "replica.high.watermark.checkpoint.interval.ms": "How often to write a checkpoint of each partition's high watermark.",
    "replica.alter.log.dirs.io.max.bytes.per.second": (
        "The most bytes copied in a second for all partitions together that move to another log directory. Set at run time."
    ),
    "quota.window.num": "Over how many windows the rates of clients with quotas are measured.",
    "quota.window.size.seconds": "How long each of these windows is.",
    "replication.quota.window.num": "Over how many windows the rate of throttled replicas is measured.",
    "replication.quota.window.size.seconds": "How long each of these windows is.",
    "request.timeout.ms": (
        "How long the transaction coordinator waits for the replicas of its own records and of the markers that end "
        "transactions. After that, records fail and markers are retried."
    ),
    "delegation.token.expiry.check.interval.ms": "How often expired delegation tokens are removed.",
    "delegation.token.expiry.time.ms": "How long a delegation token is valid after it was made or renewed.",
    "delegation.token.max.lifetime.ms": "How long a delegation token can be renewed. Then a new one is needed.",
    "delegation.token.secret.key": (
        "The secret that delegation tokens are made with, the same on all nodes. Without it there are none."
    ),
    "sasl.enabled.mechanisms": (
        "The mechanisms that clients may log in with: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. For one listener: "
        "listener.name.NAME.sasl.enabled.mechanisms."
    ),
    "sasl.jaas.config": (
        'The users of PLAIN (user_NAME="PASSWORD") and what this node logs in with at other nodes (username, password); for '
        "OAUTHBEARER the rules for unsecured tokens. It counts only as listener.name.NAME.MECHANISM.sasl.jaas.config, in lower "
        "case."
    ),
    "sasl.mechanism.controller.protocol": "The SASL mechanism with which nodes log in to controllers.",
    "sasl.mechanism.inter.broker.protocol": (
        "The SASL mechanism with which brokers log in to each other, with the user of that mechanism's sasl.jaas.config. "
        "It must be one of the listener's sasl.enabled.mechanisms."
    ),
    "sasl.oauthbearer.clock.skew.seconds": "How far the clock of the tokens' issuer may be off.",
    "sasl.oauthbearer.expected.audience": "One of these must be in a token's audience; empty: any audience is accepted.",
    "sasl.oauthbearer.expected.issuer": "The only issuer whose tokens are accepted.",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": "How often the key set is read again.",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "The longest pause before the key set is tried again.",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "The first pause before the key set is tried again; further ones grow.",
    "sasl.oauthbearer.jwks.endpoint.url": (
        "Where the keys are that sign tokens: https://… or file:///…. Without it, tokens are not signed, and anybody can make "
        "one. Apache Kafka also needs sasl.server.callback.handler.class with OAuthBearerValidatorCallbackHandler. Authorities "
        "for https are the options ssl.truststore.* of sasl.jaas.config, or else those of the listener."
    ),
    "sasl.oauthbearer.scope.claim.name": "The claim of a token that has its scope.",
    "sasl.oauthbearer.sub.claim.name": "The claim of a token that has the user's name.",
    "sasl.server.callback.handler.class": (
        "How OAUTHBEARER checks tokens: OAuthBearerValidatorCallbackHandler for signed ones, which a key set implies; see "
        "sasl.oauthbearer.jwks.endpoint.url."
    ),
    "sasl.server.max.receive.size": "The largest request before a login.",
    "security.inter.broker.protocol": ("The protocol between brokers, if inter.broker.listener.name does not name a listener."),
    "socket.listen.backlog.size": "How many connections may wait to be accepted.",
    "socket.receive.buffer.bytes": "The size of the kernel's receive buffer; -1 is the kernel's default.",
    "socket.request.max.bytes": "The largest request that is accepted. A larger one closes its connection.",
    "socket.send.buffer.bytes": "The size of the kernel's send buffer; -1 is the kernel's default.",
    "ssl.cipher.suites": (
        "The cipher suites that TLS may use, by Java's or OpenSSL's names; empty: OpenSSL's default. Like all settings of TLS, "
        "it can be set for one listener: listener.name.NAME.ssl.cipher.suites, with the listener's name in lower case."
    ),
    "ssl.client.auth": (
        "Whether clients show a certificate: none, requested or required. On SASL_SSL listeners only "
        "listener.name.NAME.ssl.client.auth counts."
    ),
    "ssl.enabled.protocols": "The versions of TLS that may be used.",
    "ssl.endpoint.identification.algorithm": (
        "https: a node that connects to a listener checks that the certificate is for the host it connects to. Empty: it does "
        "not."
    ),
    "ssl.key.password": "The password of the private key, if it is not that of the key store, or if a PEM key is encrypted.",
    "ssl.keystore.certificate.chain": (
        "The certificate with its chain as PEM text, in place of ssl.keystore.location. Line breaks are written as \\n."
    ),
    "ssl.keystore.key": "The private key of ssl.keystore.certificate.chain as PEM text.",
    "ssl.keystore.location": (
        "The file with the node's certificate, its chain and its private key: PEM, JKS or PKCS12. PKCS12 needs ottla[security]."
    ),
    "ssl.keystore.password": "The password of ssl.keystore.location, for JKS and PKCS12.",
    "ssl.keystore.type": "The kind of ssl.keystore.location: JKS, PKCS12 or PEM.",
    "ssl.principal.mapping.rules": (
        "How the subject of a client's certificate becomes the name of its principal: a list of DEFAULT and "
        "RULE:pattern/replacement/ (with L or U at the end for lower or upper case); the first whose pattern matches all of "
        "the subject counts. If none does, the client's first request closes its connection."
    ),
    "ssl.protocol": "The newest version of TLS that may be used.",
    "ssl.truststore.certificates": "The trusted certificates as PEM text, in place of ssl.truststore.location.",
    "ssl.truststore.location": (
        "The file with the certificates whose owners are trusted, such as that of your certificate authority: PEM, JKS or "
        "PKCS12. Without one, those of the operating system are."
    ),
    "ssl.truststore.password": "The password of ssl.truststore.location, for JKS and PKCS12.",
    "ssl.truststore.type": "The kind of ssl.truststore.location: JKS, PKCS12 or PEM.",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (
        "How often to check for transactions that are open for longer than their producer's transaction.timeout.ms. They are "
        "aborted, and their producer is fenced."
    ),
    "transaction.max.timeout.ms": (
        "The longest transaction.timeout.ms that a producer may ask for. A transaction that is left open blocks read_committed "
        "consumers for this long."
    ),
    "transaction.partition.verification.enable": (
        "Ask a transaction's coordinator whether it has added a partition before writing the transaction's first records "
        "there, so that late records cannot leave a transaction open for ever. For producers of transaction version 2 this is "
        "always on: the check itself adds the partition."
    ),
    "transaction.remove.expired.transaction.cleanup.interval.ms": (
        "How often to check for transactional ids that have not been used for transactional.id.expiration.ms."
    ),
    "transaction.state.log.load.buffer.size": (
        "How many bytes of __transaction_state are read at a time when a transaction coordinator loads, but at least one batch."
    ),
    "transaction.state.log.min.isr": (
        "How many replicas of __transaction_state must be in sync for transactions to work: the min.insync.replicas that the "
        "topic is created with."
    ),
    "transaction.state.log.num.partitions": (
        "How many partitions __transaction_state is created with. Transactional ids are spread over them, and so over brokers. "
        "It must not be changed once the topic exists."
    ),
    "transaction.state.log.replication.factor": (
        "How many replicas __transaction_state is created with. With fewer brokers it cannot be created, and transactions do "
        "not work: a single broker needs 1."
    ),
    "transaction.state.log.segment.bytes": (
        "The segment size of __transaction_state. Small segments are compacted sooner, so that a coordinator loads faster."
    ),
    "transaction.two.phase.commit.enable": (
        "Let producers keep transactions open without a timeout, so that another system can decide about them, and serve "
        "InitProducerId version 6, with which they ask for it (KIP-939; unstable in Apache Kafka 4.3, which never advertises "
        "it). Nothing but a request ends such a transaction: one that is forgotten blocks read_committed readers."
    ),
    "transactional.id.expiration.ms": (
        "How long an unused transactional id is kept. After that its producer must be initialised again."
    ),
}


def _stand_in_words() -> dict[str, str]:
    words = {}
    for topic_name, synonyms in TOPIC_SYNONYMS.items():
        if topic_name in TOPIC_WITHOUT_EFFECT:
            continue
        for position, (name, factor) in enumerate(synonyms):
            note = f"The default of {topic_name} for topics. {TOPIC_KEYS[topic_name].documentation}"
            if position:
                unit = {1: "", 60_000: "In minutes. ", 3_600_000: "In hours. "}[factor]
                others = " and ".join(other for other, _ in synonyms[:position])
                note = f"{unit}Used only if {others} {'is' if position == 1 else 'are'} not set. {note}"
            words[name] = note
    return words


def documentation() -> dict[str, str]:
    """Setting → documentation, for every setting that has an effect."""
    return _WORDS | _stand_in_words()
