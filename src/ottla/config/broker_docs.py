"""What each broker setting that Ottla goes by does, in our words. A setting without words here is accepted and has no effect.

Settings that stand in for a topic's (`TOPIC_SYNONYMS`) are told by what they stand in for.
"""

from __future__ import annotations

from ottla.config.topic_keys import TOPIC_KEYS, TOPIC_SYNONYMS, TOPIC_WITHOUT_EFFECT

_WORDS: dict[str, str] = {
    "add.partitions.to.txn.retry.backoff.max.ms": (
        "How long records of a transaction wait at most, when the transaction before is still being ended in its partitions."
    ),
    "add.partitions.to.txn.retry.backoff.ms": (
        "How long to wait before a transaction's coordinator is asked again, on behalf of records that wait for the end of the "
        "transaction before."
    ),
    "advertised.listeners": (
        "Where clients and other nodes are told to connect to, as NAME://host:port, if that differs from where the node "
        "listens: behind a proxy, in a container. A listener without an entry advertises its own address."
    ),
    "auto.create.topics.enable": "Make a topic when somebody asks for one that does not exist.",
    "broker.id": "The older name of node.id.",
    "broker.rack": "Where the broker stands. Replicas of one partition are spread over racks.",
    "broker.session.timeout.ms": "How long the controller waits for a broker's heartbeat before it takes leaderships from it.",
    "connections.max.idle.ms": "Close a connection on which nothing has happened for this long.",
    "controller.listener.names": "Which of the listeners are for the controller, and closed to clients.",
    "controller.quorum.bootstrap.servers": "Where to find the controllers, as host:port.",
    "controller.quorum.voters": (
        "The members of a quorum that is fixed for good, as id@host:port. Quorums that can change use "
        "controller.quorum.bootstrap.servers."
    ),
    "cordoned.log.dirs": "Log directories that no new partition is put in or moved to; `*` stands for all of them.",
    "default.replication.factor": "How many replicas a new topic's partitions have, if whoever makes it does not say.",
    "delete.topic.enable": "Let topics be deleted.",
    "fetch.max.bytes": "The most a fetch may return in bytes, whatever the client asks for. One batch is always returned.",
    "group.consumer.assignment.interval.ms": (
        "How long a consumer group waits at least from one assignment to the next, so that members that come or go one after "
        "the other need one and not many. 0 assigns at every change. Groups can have their own."
    ),
    "group.consumer.assignors": (
        "How consumer groups may share partitions: uniform (everybody as much, and little moves) or range (runs of partitions, "
        "the same of every topic). The first is for members that do not say. Classes of Java are not loaded."
    ),
    "group.consumer.heartbeat.interval.ms": (
        "How often members of consumer groups are told to send heartbeats. Groups can have their own."
    ),
    "group.consumer.max.assignment.interval.ms": "The longest consumer.assignment.interval.ms that a group can be given.",
    "group.consumer.max.heartbeat.interval.ms": "The longest consumer.heartbeat.interval.ms that a group can be given.",
    "group.consumer.max.session.timeout.ms": "The longest consumer.session.timeout.ms that a group can be given.",
    "group.consumer.max.size": "How many members a consumer group may have. Whoever comes when it is full is turned away.",
    "group.consumer.migration.policy": (
        "Whether groups with live members change their protocol: from classic to consumer when the first member of the latter "
        "joins (upgrade), back when the last one leaves (downgrade), both (bidirectional) or neither (disabled). Groups "
        "without members always can."
    ),
    "group.consumer.min.assignment.interval.ms": "The shortest consumer.assignment.interval.ms that a group can be given.",
    "group.consumer.min.heartbeat.interval.ms": "The shortest consumer.heartbeat.interval.ms that a group can be given.",
    "group.consumer.min.session.timeout.ms": "The shortest consumer.session.timeout.ms that a group can be given.",
    "group.consumer.session.timeout.ms": (
        "How long a member of a consumer group may be silent before it is removed, and its partitions go to others. Groups can "
        "have their own."
    ),
    "group.coordinator.rebalance.protocols": (
        "Which protocols groups may use: classic and consumer. share and streams are accepted, and not served."
    ),
    "group.initial.rebalance.delay.ms": (
        "How long a group that was empty waits for more members after the first has come, and again after each that comes, up "
        "to the rebalance timeout. It saves rebalances while an application starts, and makes its first records late."
    ),
    "group.max.session.timeout.ms": (
        "The longest session.timeout.ms that a member of a classic group may ask for. With a long one it takes long to see "
        "that a member has died."
    ),
    "group.max.size": "How many members a classic group may have. Whoever comes when it is full is turned away.",
    "group.min.session.timeout.ms": (
        "The shortest session.timeout.ms that a member of a classic group may ask for. With a short one members are removed "
        "that are only slow."
    ),
    "inter.broker.listener.name": "The listener at which brokers reach each other.",
    "listener.security.protocol.map": "Which security protocol each listener speaks, as NAME:PROTOCOL. Ottla serves PLAINTEXT.",
    "listeners": (
        "Where to take connections, as NAME://host:port. An empty host means all addresses of the machine, port 0 any free one."
    ),
    "log.cleaner.backoff.ms": "How long compaction rests when there is nothing to compact.",
    "log.cleaner.dedupe.buffer.size": (
        "The memory for the map of keys that compaction builds, shared by all that run. A larger map means fewer passes."
    ),
    "log.cleaner.enable": ("Compact logs in the background. Without it topics with the `compact` policy grow without bound."),
    "log.cleaner.io.buffer.load.factor": (
        "How full the map of keys may get, from 0 to 1. Fuller fits more keys and finds them more slowly."
    ),
    "log.cleaner.io.max.bytes.per.second": (
        "The most that compaction reads and writes in a second, so that clients keep their share of the disk."
    ),
    "log.cleaner.threads": "How many logs are compacted at once.",
    "log.dir": "Where partitions are kept, if log.dirs does not say.",
    "log.dirs": (
        "The directories in which partitions are kept, separated by commas, best one per disk. A new partition goes to the "
        "directory with the fewest. Wins over log.dir."
    ),
    "log.flush.offset.checkpoint.interval.ms": (
        "How often to write down how far each log is durable. What lies beyond is checked after a crash."
    ),
    "log.flush.start.offset.checkpoint.interval.ms": (
        "How often to write down where each log begins, so that deleted records do not come back after a crash."
    ),
    "log.initial.task.delay.ms": "How long after the start of a node retention, checkpoints and the like begin.",
    "log.retention.check.interval.ms": "How often to look for segments that retention lets go.",
    "max.connection.creation.rate": "The most new connections in a second. Those above it wait.",
    "max.connections": (
        "The most connections at a time. A listener can have a limit of its own: listener.name.NAME.max.connections."
    ),
    "max.connections.per.ip": "The most connections from one address at a time.",
    "max.connections.per.ip.overrides": "Other limits for some addresses, as host:count.",
    "max.incremental.fetch.session.cache.slots": (
        "How many fetch sessions are remembered. A client with a session names only the partitions that changed."
    ),
    "max.request.partition.size.limit": "The most partitions that one answer about topics describes; clients ask for the rest.",
    "metadata.log.dir": "Where the cluster's metadata log is kept; the first of log.dirs if not set.",
    "metadata.log.max.record.bytes.between.snapshots": "How many bytes the metadata log grows before a snapshot of it is made.",
    "metadata.log.max.snapshot.interval.ms": "How long the metadata log grows before a snapshot of it is made; 0 is for ever.",
    "metadata.log.segment.bytes": "The size at which a segment of the metadata log is closed and the next begun.",
    "metadata.log.segment.ms": "The age at which a segment of the metadata log is closed even if it is not full.",
    "metadata.max.retention.bytes": "How large metadata log and snapshots may get before what a newer snapshot has is deleted.",
    "metadata.max.retention.ms": "How long parts of the metadata log are kept that a newer snapshot has.",
    "node.id": "This node's number in the cluster, different from all others.",
    "num.partitions": "How many partitions a new topic has, if whoever makes it does not say.",
    "num.recovery.threads.per.data.dir": (
        "How many logs of each directory are opened at once at the start, and flushed at once at the end."
    ),
    "num.replica.alter.log.dirs.threads": (
        "How many partitions are moved to other log directories at once; as many as there are directories if not set."
    ),
    "offset.metadata.max.bytes": (
        "How many characters a consumer may leave with an offset that it commits. A commit with more is refused for that "
        "partition."
    ),
    "offsets.commit.timeout.ms": (
        "How long a group's change waits for the replicas of its partition of __consumer_offsets. After that the change is "
        "refused, and the coordinator reads that partition again."
    ),
    "offsets.retention.check.interval.ms": "How often to look for committed offsets that have expired, and for empty groups.",
    "offsets.retention.minutes": (
        "How long a committed offset is kept when nobody reads its topic any more: from the commit on, or for a group that has "
        "lost its members from when the last one went. An empty group goes with its last offset."
    ),
    "offsets.load.buffer.size": (
        "How many bytes of __consumer_offsets are read at a time when a group coordinator is loaded: at least one batch."
    ),
    "offsets.topic.compression.codec": (
        "What the records of committed offsets are compressed with: 0 nothing, 1 gzip, 2 snappy, 3 lz4, 4 zstd. Offsets that "
        "are committed within transactions never are."
    ),
    "offsets.topic.num.partitions": (
        "How many partitions __consumer_offsets is made with. Groups are spread over them, and with them over brokers. It must "
        "not be changed once the topic is there."
    ),
    "offsets.topic.replication.factor": (
        "How many replicas __consumer_offsets is made with. Where there are fewer brokers it cannot be made, and no group can "
        "be used: a single broker needs 1."
    ),
    "offsets.topic.segment.bytes": (
        "The size of the segments of __consumer_offsets. Small ones are compacted sooner, so that a coordinator starts faster."
    ),
    "ottla.metrics.port": (
        "Serve metrics in Prometheus's text format at http://HOST:PORT/metrics, on the address of the first listener for "
        "clients. 0 is any free port, -1 none. A setting of Ottla's own."
    ),
    "process.roles": "What this node does: `broker` keeps partitions and serves clients, `controller` runs the cluster.",
    "producer.id.expiration.check.interval.ms": "How often to look for producers that have been silent for too long.",
    "producer.id.expiration.ms": (
        "How long a partition remembers a silent producer. A retry after that is not recognised as one."
    ),
    "queued.max.request.bytes": (
        "The most memory that requests may take together, in bytes; -1: four times socket.request.max.bytes, and at least 256 "
        "MB. The members of all groups may take half as much."
    ),
    "replica.high.watermark.checkpoint.interval.ms": "How often to write down how far each partition is committed.",
    "replica.alter.log.dirs.io.max.bytes.per.second": (
        "The most that is copied in a second for each partition that moves to another log directory. Set at run time."
    ),
    "request.timeout.ms": (
        "How long the transaction coordinator waits for the replicas of what it writes: its own records, and the markers that "
        "end transactions. Records are refused then; markers are tried again."
    ),
    "security.inter.broker.protocol": (
        "The protocol that brokers speak to each other, where inter.broker.listener.name does not name a listener."
    ),
    "socket.listen.backlog.size": "How many connections may wait to be taken.",
    "socket.receive.buffer.bytes": "The size of the kernel's buffer for what comes in; -1 is the kernel's choice.",
    "socket.request.max.bytes": "The largest request that is taken. A larger one ends its connection.",
    "socket.send.buffer.bytes": "The size of the kernel's buffer for what goes out; -1 is the kernel's choice.",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (
        "How often to look for transactions that are open for longer than their producer's transaction.timeout.ms. They are "
        "aborted, and their producer is fenced."
    ),
    "transaction.max.timeout.ms": (
        "The longest transaction.timeout.ms that a producer may ask for. Whatever hangs open keeps readers of committed "
        "records waiting for so long."
    ),
    "transaction.partition.verification.enable": (
        "Ask a transaction's coordinator whether it knows of a partition before the transaction's first records are written "
        "there, so that late ones cannot open a transaction that nobody ends. Producers of transaction version 2 have their "
        "partitions added by that question, whatever this says."
    ),
    "transaction.remove.expired.transaction.cleanup.interval.ms": (
        "How often to look for transactional ids that have not been used for transactional.id.expiration.ms."
    ),
    "transaction.state.log.load.buffer.size": (
        "How many bytes of __transaction_state are read at a time when a transaction coordinator is loaded: at least one batch."
    ),
    "transaction.state.log.min.isr": (
        "How many replicas of __transaction_state must be in sync for transactions to go on: the min.insync.replicas that the "
        "topic is made with."
    ),
    "transaction.state.log.num.partitions": (
        "How many partitions __transaction_state is made with. Transactional ids are spread over them, and with them over "
        "brokers. It must not be changed once the topic is there."
    ),
    "transaction.state.log.replication.factor": (
        "How many replicas __transaction_state is made with. Where there are fewer brokers it cannot be made, and no "
        "transactional producer can be used: a single broker needs 1."
    ),
    "transaction.state.log.segment.bytes": (
        "The size of the segments of __transaction_state. Small ones are compacted sooner, so that a coordinator starts faster."
    ),
    "transaction.two.phase.commit.enable": (
        "Let producers keep transactions open without a timeout, for another system to decide on. No client can ask for that "
        "yet: the version of InitProducerId that has it is not stable."
    ),
    "transactional.id.expiration.ms": (
        "How long a transactional id is remembered that begins and ends no transaction. Its producer must be initialised again "
        "after that."
    ),
}


def _stand_in_words() -> dict[str, str]:
    words = {}
    for topic_name, synonyms in TOPIC_SYNONYMS.items():
        if topic_name in TOPIC_WITHOUT_EFFECT:
            continue
        for position, (name, factor) in enumerate(synonyms):
            note = f"For topics without {topic_name} of their own. {TOPIC_KEYS[topic_name].documentation}"
            if position:
                unit = {1: "", 60_000: "In minutes. ", 3_600_000: "In hours. "}[factor]
                others = " and ".join(other for other, _ in synonyms[:position])
                note = f"{unit}Counts only where {others} {'is' if position == 1 else 'are'} not set. {note}"
            words[name] = note
    return words


def documentation() -> dict[str, str]:
    """Setting → what it does, for every one that Ottla goes by."""
    return _WORDS | _stand_in_words()
