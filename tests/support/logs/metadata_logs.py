"""Random metadata logs: valid sequences of every kind of record, under a given metadata.version.

`random_log(rng, count, version)` keeps a small model of topics, brokers and other entries, so that every record is valid after
those before it. There are few different ids, so that entries are changed, removed and created again.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from ottla.ids import Uuid
from ottla.metadata.features import (
    CONTROLLER_REGISTRATION_FROM,
    CORDONED_DIRECTORIES_FROM,
    DELEGATION_TOKENS_FROM,
    DIRECTORIES_FROM,
    ELR_FROM,
    METADATA_VERSION,
    SCRAM_FROM,
)
from ottla.wire.base import Message
from ottla.wire.messages import metadata_records as records

BROKERS = range(1, 6)


def some_uuid(rng: random.Random, kind: int, few: int = 8) -> Uuid:
    """One of a few ids of a kind."""
    return Uuid(bytes([kind]) * 8 + rng.randrange(1, few + 1).to_bytes(8, "big"))


def some(rng: random.Random, items: list[int], least: int = 0) -> list[int]:
    return rng.sample(items, rng.randint(min(least, len(items)), len(items)))


class LogMaker:
    """The state of the log so far, as far as the next record depends on it."""

    def __init__(self, rng: random.Random, version: int) -> None:
        self.rng = rng
        self.version = version
        self.topics: dict[Uuid, tuple[str, dict[int, int]]] = {}
        """Topic id → its name, and the number of replicas of each partition."""
        self.brokers: dict[int, int] = {}
        self.acls: set[Uuid] = set()
        self.made = 0

    def make(self, count: int) -> list[Message]:
        log: list[Message] = [records.FeatureLevelRecord(name=METADATA_VERSION, feature_level=self.version)]
        makers: list[Callable[[], Message | None]] = [
            *[self.topic, self.partition, self.partition, self.partition_change, self.partition_change, self.partition_change],
            *[self.topic_removal, self.broker, self.broker, self.broker_change, self.broker_change, self.unregistration],
            *[self.fencing, self.controller, self.config, self.config, self.producer_ids, self.feature, self.quota, self.acl],
            *[self.scram, self.token, self.clear_elr, self.nothing],
        ]
        while len(log) < count:
            record = self.rng.choice(makers)()
            if record is not None:
                log.append(record)
        return log

    def topic(self) -> Message:
        self.made += 1
        topic_id, name = Uuid(b"some topic" + self.made.to_bytes(6, "big")), f"topic-{self.made}"
        self.topics[topic_id] = (name, {})
        return records.TopicRecord(name=name, topic_id=topic_id)

    def _topic(self) -> Uuid | None:
        return self.rng.choice(list(self.topics)) if self.topics else None

    def partition(self) -> Message | None:
        topic_id = self._topic()
        if topic_id is None:
            return None
        partitions = self.topics[topic_id][1]
        number = self.rng.choice([len(partitions), len(partitions), self.rng.randint(0, len(partitions))])
        replicas = some(self.rng, list(BROKERS), 1)
        partitions[number] = len(replicas)
        rng = self.rng
        return records.PartitionRecord(
            partition_id=number,
            topic_id=topic_id,
            replicas=replicas,
            isr=some(rng, replicas),
            removing_replicas=some(rng, replicas) if rng.random() < 0.2 else [],
            adding_replicas=some(rng, replicas) if rng.random() < 0.2 else [],
            leader=rng.choice([-1, *replicas]),
            leader_recovery_state=rng.choice([0, 0, 1]),
            leader_epoch=rng.randrange(9),
            partition_epoch=rng.randrange(9),
            directories=self._directories(len(replicas)) if self.version >= DIRECTORIES_FROM else [],
            eligible_leader_replicas=rng.choice([None, some(rng, replicas)]) if self.version >= ELR_FROM else None,
            last_known_elr=rng.choice([None, some(rng, replicas)]) if self.version >= ELR_FROM else None,
        )

    def _directories(self, count: int) -> list[Uuid]:
        if self.rng.random() < 0.1:
            return []
        return [Uuid(self.rng.randrange(6).to_bytes(16, "big")) for _ in range(count)]

    def partition_change(self) -> Message | None:
        topic_id = self._topic()
        if topic_id is None or not self.topics[topic_id][1]:
            return None
        rng, partitions = self.rng, self.topics[topic_id][1]
        number = rng.choice(list(partitions))
        change = records.PartitionChangeRecord(partition_id=number, topic_id=topic_id)
        if rng.random() < 0.3:
            change.replicas = some(rng, list(BROKERS), 1)
            partitions[number] = len(change.replicas)
            if self.version >= DIRECTORIES_FROM:
                change.directories = self._directories(partitions[number])
        elif self.version >= DIRECTORIES_FROM and rng.random() < 0.2:
            change.directories = self._directories(partitions[number])
        if rng.random() < 0.5:
            change.isr = some(rng, list(BROKERS))
        if rng.random() < 0.5:
            change.leader = rng.choice([-1, *BROKERS])
        if rng.random() < 0.2:
            change.leader_recovery_state = rng.randrange(2)
        if rng.random() < 0.2:
            change.removing_replicas, change.adding_replicas = some(rng, list(BROKERS)), some(rng, list(BROKERS))
        if self.version >= ELR_FROM and rng.random() < 0.5:
            change.eligible_leader_replicas = some(rng, list(BROKERS))
            change.last_known_elr = some(rng, list(BROKERS))
        return change

    def topic_removal(self) -> Message | None:
        topic_id = self._topic()
        if topic_id is None or self.rng.random() < 0.5:
            return None
        del self.topics[topic_id]
        return records.RemoveTopicRecord(topic_id=topic_id)

    def broker(self) -> Message:
        rng, broker_id = self.rng, self.rng.choice(BROKERS)
        self.made += 1
        self.brokers[broker_id] = self.made
        has_cordoned = self.version >= CORDONED_DIRECTORIES_FROM and rng.random() < 0.5
        return records.RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=some_uuid(rng, 2),
            broker_epoch=self.made,
            end_points=[
                records.BrokerEndpoint(
                    name=name, host=f"host{rng.randrange(3)}", port=rng.randrange(65536), security_protocol=0
                )
                for name in rng.sample(["PLAINTEXT", "INSIDE", "OUTSIDE"], rng.randint(1, 3))
            ],
            features=[
                records.BrokerFeature(name=name, min_supported_version=0, max_supported_version=rng.randrange(5))
                for name in rng.sample(["metadata.version", "group.version", "other.version"], rng.randint(0, 3))
            ],
            rack=rng.choice([None, "a", "b"]),
            fenced=rng.random() < 0.5,
            in_controlled_shutdown=rng.random() < 0.3,
            log_dirs=self._unique_uuids(3) if self.version >= DIRECTORIES_FROM else [],
            cordoned_log_dirs=self._unique_uuids(3) if has_cordoned else None,
        )

    def _unique_uuids(self, kind: int) -> list[Uuid]:
        return list({some_uuid(self.rng, kind) for _ in range(self.rng.randrange(4))})

    def _registered(self) -> tuple[int, int] | None:
        return self.rng.choice(list(self.brokers.items())) if self.brokers else None

    def broker_change(self) -> Message | None:
        registered = self._registered()
        if registered is None:
            return None
        rng = self.rng
        change = records.BrokerRegistrationChangeRecord(broker_id=registered[0], broker_epoch=registered[1])
        change.fenced = rng.choice([-1, 0, 1])
        change.in_controlled_shutdown = rng.randrange(2)
        if self.version >= DIRECTORIES_FROM:
            change.log_dirs = self._unique_uuids(3)
        if self.version >= CORDONED_DIRECTORIES_FROM and rng.random() < 0.5:
            change.cordoned_log_dirs = self._unique_uuids(3)
        return change

    def fencing(self) -> Message | None:
        registered = self._registered()
        if registered is None:
            return None
        kind = self.rng.choice([records.FenceBrokerRecord, records.UnfenceBrokerRecord])
        return kind(id=registered[0], epoch=registered[1])

    def unregistration(self) -> Message | None:
        registered = self._registered()
        if registered is None or self.rng.random() < 0.5:
            return None
        del self.brokers[registered[0]]
        return records.UnregisterBrokerRecord(broker_id=registered[0], broker_epoch=registered[1])

    def controller(self) -> Message | None:
        if self.version < CONTROLLER_REGISTRATION_FROM:
            return None
        rng = self.rng
        return records.RegisterControllerRecord(
            controller_id=rng.choice(BROKERS),
            incarnation_id=some_uuid(rng, 4),
            zk_migration_ready=rng.random() < 0.5,
            end_points=[records.ControllerEndpoint(name="CONTROLLER", host="host", port=9093, security_protocol=0)],
            features=[records.ControllerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30)],
        )

    def config(self) -> Message:
        rng = self.rng
        topic_id = self._topic()
        resource_type, resource_name = rng.choice([(4, ""), (4, "1"), (4, "2"), (16, "metrics"), (32, "group")])
        if topic_id is not None and rng.random() < 0.5:
            resource_type, resource_name = 2, self.topics[topic_id][0]
        value = rng.choice([None, "1", "2", ""])
        return records.ConfigRecord(
            resource_type=resource_type, resource_name=resource_name, name=rng.choice(["retention.ms", "x", "y"]), value=value
        )

    def producer_ids(self) -> Message:
        self.made += 1
        return records.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=self.made * 1000)

    def feature(self) -> Message:
        name = self.rng.choice(["group.version", "transaction.version", "share.version", "eligible.leader.replicas.version"])
        return records.FeatureLevelRecord(name=name, feature_level=self.rng.randrange(2))

    def quota(self) -> Message:
        rng = self.rng
        kinds = sorted(rng.sample(["user", "client-id"], rng.randint(1, 2)))
        return records.ClientQuotaRecord(
            entity=[records.EntityData(entity_type=kind, entity_name=rng.choice([None, "a", ""])) for kind in kinds],
            key=rng.choice(["producer_byte_rate", "consumer_byte_rate"]),
            value=float(rng.randrange(9)),
            remove=rng.random() < 0.3,
        )

    def acl(self) -> Message:
        rng = self.rng
        if self.acls and rng.random() < 0.4:
            gone = rng.choice(sorted(self.acls))
            self.acls.remove(gone)
            return records.RemoveAccessControlEntryRecord(id=gone)
        self.made += 1
        entry = Uuid(b"access-control" + self.made.to_bytes(2, "big"))
        self.acls.add(entry)
        return records.AccessControlEntryRecord(
            id=entry,
            resource_type=2,
            resource_name="t",
            pattern_type=3,
            principal="User:a",
            host="*",
            operation=3,
            permission_type=rng.choice([2, 3]),
        )

    def scram(self) -> Message | None:
        if self.version < SCRAM_FROM:
            return None
        rng = self.rng
        name, mechanism = rng.choice("abc"), rng.randint(1, 2)
        if rng.random() < 0.3:
            return records.RemoveUserScramCredentialRecord(name=name, mechanism=mechanism)
        return records.UserScramCredentialRecord(
            name=name,
            mechanism=mechanism,
            salt=b"salt",
            stored_key=b"stored",
            server_key=b"server",
            iterations=rng.randint(4096, 9000),
        )

    def token(self) -> Message | None:
        if self.version < DELEGATION_TOKENS_FROM:
            return None
        rng = self.rng
        token_id = rng.choice(["t1", "t2", "t3"])
        if rng.random() < 0.3:
            return records.RemoveDelegationTokenRecord(token_id=token_id)
        return records.DelegationTokenRecord(
            owner="User:a",
            requester="User:b",
            renewers=["User:c"],
            issue_timestamp=rng.randrange(99),
            max_timestamp=rng.randrange(99),
            expiration_timestamp=rng.randrange(99),
            token_id=token_id,
        )

    def clear_elr(self) -> Message | None:
        topic_id = self._topic()
        if self.version < ELR_FROM or topic_id is None or self.rng.random() < 0.7:
            return None
        return records.ClearElrRecord(topic_name=self.rng.choice(["", self.topics[topic_id][0]]))

    def nothing(self) -> Message:
        return self.rng.choice([records.NoOpRecord(), records.ZkMigrationStateRecord(zk_migration_state=1)])


def random_log(rng: random.Random, count: int, version: int) -> list[Message]:
    """`count` records; the first finalises metadata.version."""
    return LogMaker(rng, version).make(count)
