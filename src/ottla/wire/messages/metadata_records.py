"""RegisterBrokerRecord to ClearElrRecord. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class BrokerFeature(Struct):
    __slots__ = ("name", "min_supported_version", "max_supported_version")

    def __init__(
        self,
        *,
        name: str = "",
        min_supported_version: int = 0,
        max_supported_version: int = 0,
    ) -> None:
        self.name = name
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version
        self.unknown_tags = None


class BrokerEndpoint(Struct):
    __slots__ = ("name", "host", "port", "security_protocol")

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
        security_protocol: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.security_protocol = security_protocol
        self.unknown_tags = None


class RegisterBrokerRecord(Message):
    __slots__ = ("broker_id", "is_migrating_zk_broker", "incarnation_id", "broker_epoch", "end_points", "features", "rack", "fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        is_migrating_zk_broker: bool = False,
        incarnation_id: Uuid = ZERO_UUID,
        broker_epoch: int = 0,
        end_points: list[BrokerEndpoint] = EMPTY,
        features: list[BrokerFeature] = EMPTY,
        rack: str | None = "",
        fenced: bool = True,
        in_controlled_shutdown: bool = False,
        log_dirs: list[Uuid] = EMPTY,
        cordoned_log_dirs: list[Uuid] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.incarnation_id = incarnation_id
        self.broker_epoch = broker_epoch
        self.end_points = [] if end_points is EMPTY else end_points
        self.features = [] if features is EMPTY else features
        self.rack = rack
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = [] if log_dirs is EMPTY else log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs
        self.unknown_tags = None

    KEY = 0
    SCHEMA = """\
RegisterBrokerRecord key=0 type=metadata versions=0-4 flexible=0+
  BrokerId int32 0+ entity=brokerId
  IsMigratingZkBroker bool 2+ default=false
  IncarnationId uuid 0+
  BrokerEpoch int64 0+
  EndPoints []BrokerEndpoint 0+
    Name string 0+ key
    Host string 0+
    Port uint16 0+
    SecurityProtocol int16 0+
  Features []BrokerFeature 0+
    Name string 0+ key
    MinSupportedVersion int16 0+
    MaxSupportedVersion int16 0+
  Rack string 0+ nullable=0+
  Fenced bool 0+ default=true
  InControlledShutdown bool 1+ default=false
  LogDirs []uuid 3+ tag=0@3+
  CordonedLogDirs []uuid 4+ nullable=4+ tag=1@4+ default=null
"""
    STRUCTS = (BrokerEndpoint, BrokerFeature)


class UnregisterBrokerRecord(Message):
    __slots__ = ("broker_id", "broker_epoch")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.unknown_tags = None

    KEY = 1
    SCHEMA = """\
UnregisterBrokerRecord key=1 type=metadata versions=0 flexible=0+
  BrokerId int32 0+ entity=brokerId
  BrokerEpoch int64 0+
"""
    STRUCTS = ()


class TopicRecord(Message):
    __slots__ = ("name", "topic_id")

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: Uuid = ZERO_UUID,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.unknown_tags = None

    KEY = 2
    SCHEMA = """\
TopicRecord key=2 type=metadata versions=0 flexible=0+
  Name string 0+ entity=topicName
  TopicId uuid 0+
"""
    STRUCTS = ()


class PartitionRecord(Message):
    __slots__ = ("partition_id", "topic_id", "replicas", "isr", "removing_replicas", "adding_replicas", "leader", "leader_recovery_state", "leader_epoch", "partition_epoch", "directories", "eligible_leader_replicas", "last_known_elr")

    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: Uuid = ZERO_UUID,
        replicas: list[int] = EMPTY,
        isr: list[int] = EMPTY,
        removing_replicas: list[int] = EMPTY,
        adding_replicas: list[int] = EMPTY,
        leader: int = -1,
        leader_recovery_state: int = 0,
        leader_epoch: int = -1,
        partition_epoch: int = -1,
        directories: list[Uuid] = EMPTY,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.replicas = [] if replicas is EMPTY else replicas
        self.isr = [] if isr is EMPTY else isr
        self.removing_replicas = [] if removing_replicas is EMPTY else removing_replicas
        self.adding_replicas = [] if adding_replicas is EMPTY else adding_replicas
        self.leader = leader
        self.leader_recovery_state = leader_recovery_state
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.directories = [] if directories is EMPTY else directories
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.unknown_tags = None

    KEY = 3
    SCHEMA = """\
PartitionRecord key=3 type=metadata versions=0-2 flexible=0+
  PartitionId int32 0+ default=-1
  TopicId uuid 0+
  Replicas []int32 0+ entity=brokerId
  Isr []int32 0+
  RemovingReplicas []int32 0+ entity=brokerId
  AddingReplicas []int32 0+ entity=brokerId
  Leader int32 0+ default=-1 entity=brokerId
  LeaderRecoveryState int8 0+ tag=0@0+ default=0
  LeaderEpoch int32 0+ default=-1
  PartitionEpoch int32 0+ default=-1
  Directories []uuid 1+
  EligibleLeaderReplicas []int32 2+ nullable=2+ tag=1@2+ default=null entity=brokerId
  LastKnownElr []int32 2+ nullable=2+ tag=2@2+ default=null entity=brokerId
"""
    STRUCTS = ()


class ConfigRecord(Message):
    __slots__ = ("resource_type", "resource_name", "name", "value")

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.name = name
        self.value = value
        self.unknown_tags = None

    KEY = 4
    SCHEMA = """\
ConfigRecord key=4 type=metadata versions=0 flexible=0+
  ResourceType int8 0+
  ResourceName string 0+
  Name string 0+
  Value string 0+ nullable=0+
"""
    STRUCTS = ()


class PartitionChangeRecord(Message):
    __slots__ = ("partition_id", "topic_id", "isr", "leader", "replicas", "removing_replicas", "adding_replicas", "leader_recovery_state", "directories", "eligible_leader_replicas", "last_known_elr")

    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: Uuid = ZERO_UUID,
        isr: list[int] | None = None,
        leader: int = -2,
        replicas: list[int] | None = None,
        removing_replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        leader_recovery_state: int = -1,
        directories: list[Uuid] | None = None,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.isr = isr
        self.leader = leader
        self.replicas = replicas
        self.removing_replicas = removing_replicas
        self.adding_replicas = adding_replicas
        self.leader_recovery_state = leader_recovery_state
        self.directories = directories
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.unknown_tags = None

    KEY = 5
    SCHEMA = """\
PartitionChangeRecord key=5 type=metadata versions=0-2 flexible=0+
  PartitionId int32 0+ default=-1
  TopicId uuid 0+
  Isr []int32 0+ nullable=0+ tag=0@0+ default=null entity=brokerId
  Leader int32 0+ tag=1@0+ default=-2 entity=brokerId
  Replicas []int32 0+ nullable=0+ tag=2@0+ default=null entity=brokerId
  RemovingReplicas []int32 0+ nullable=0+ tag=3@0+ default=null entity=brokerId
  AddingReplicas []int32 0+ nullable=0+ tag=4@0+ default=null entity=brokerId
  LeaderRecoveryState int8 0+ tag=5@0+ default=-1
  Directories []uuid 1+ nullable=1+ tag=8@1+ default=null
  EligibleLeaderReplicas []int32 2+ nullable=2+ tag=6@2+ default=null entity=brokerId
  LastKnownElr []int32 2+ nullable=2+ tag=7@2+ default=null entity=brokerId
"""
    STRUCTS = ()


class FenceBrokerRecord(Message):
    __slots__ = ("id", "epoch")

    def __init__(
        self,
        *,
        id: int = 0,
        epoch: int = 0,
    ) -> None:
        self.id = id
        self.epoch = epoch
        self.unknown_tags = None

    KEY = 7
    SCHEMA = """\
FenceBrokerRecord key=7 type=metadata versions=0 flexible=0+
  Id int32 0+ entity=brokerId
  Epoch int64 0+
"""
    STRUCTS = ()


class UnfenceBrokerRecord(Message):
    __slots__ = ("id", "epoch")

    def __init__(
        self,
        *,
        id: int = 0,
        epoch: int = 0,
    ) -> None:
        self.id = id
        self.epoch = epoch
        self.unknown_tags = None

    KEY = 8
    SCHEMA = """\
UnfenceBrokerRecord key=8 type=metadata versions=0 flexible=0+
  Id int32 0+ entity=brokerId
  Epoch int64 0+
"""
    STRUCTS = ()


class RemoveTopicRecord(Message):
    __slots__ = ("topic_id",)

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
    ) -> None:
        self.topic_id = topic_id
        self.unknown_tags = None

    KEY = 9
    SCHEMA = """\
RemoveTopicRecord key=9 type=metadata versions=0 flexible=0+
  TopicId uuid 0+
"""
    STRUCTS = ()


class DelegationTokenRecord(Message):
    __slots__ = ("owner", "requester", "renewers", "issue_timestamp", "max_timestamp", "expiration_timestamp", "token_id")

    def __init__(
        self,
        *,
        owner: str = "",
        requester: str = "",
        renewers: list[str] = EMPTY,
        issue_timestamp: int = 0,
        max_timestamp: int = 0,
        expiration_timestamp: int = 0,
        token_id: str = "",
    ) -> None:
        self.owner = owner
        self.requester = requester
        self.renewers = [] if renewers is EMPTY else renewers
        self.issue_timestamp = issue_timestamp
        self.max_timestamp = max_timestamp
        self.expiration_timestamp = expiration_timestamp
        self.token_id = token_id
        self.unknown_tags = None

    KEY = 10
    SCHEMA = """\
DelegationTokenRecord key=10 type=metadata versions=0 flexible=0+
  Owner string 0+
  Requester string 0+
  Renewers []string 0+
  IssueTimestamp int64 0+
  MaxTimestamp int64 0+
  ExpirationTimestamp int64 0+
  TokenId string 0+
"""
    STRUCTS = ()


class UserScramCredentialRecord(Message):
    __slots__ = ("name", "mechanism", "salt", "stored_key", "server_key", "iterations")

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        salt: bytes = b"",
        stored_key: bytes = b"",
        server_key: bytes = b"",
        iterations: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.salt = salt
        self.stored_key = stored_key
        self.server_key = server_key
        self.iterations = iterations
        self.unknown_tags = None

    KEY = 11
    SCHEMA = """\
UserScramCredentialRecord key=11 type=metadata versions=0 flexible=0+
  Name string 0+
  Mechanism int8 0+
  Salt bytes 0+
  StoredKey bytes 0+
  ServerKey bytes 0+
  Iterations int32 0+
"""
    STRUCTS = ()


class FeatureLevelRecord(Message):
    __slots__ = ("name", "feature_level")

    def __init__(
        self,
        *,
        name: str = "",
        feature_level: int = 0,
    ) -> None:
        self.name = name
        self.feature_level = feature_level
        self.unknown_tags = None

    KEY = 12
    SCHEMA = """\
FeatureLevelRecord key=12 type=metadata versions=0 flexible=0+
  Name string 0+
  FeatureLevel int16 0+
"""
    STRUCTS = ()


class EntityData(Struct):
    __slots__ = ("entity_type", "entity_name")

    def __init__(
        self,
        *,
        entity_type: str = "",
        entity_name: str | None = "",
    ) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name
        self.unknown_tags = None


class ClientQuotaRecord(Message):
    __slots__ = ("entity", "key", "value", "remove")

    def __init__(
        self,
        *,
        entity: list[EntityData] = EMPTY,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
    ) -> None:
        self.entity = [] if entity is EMPTY else entity
        self.key = key
        self.value = value
        self.remove = remove
        self.unknown_tags = None

    KEY = 14
    SCHEMA = """\
ClientQuotaRecord key=14 type=metadata versions=0 flexible=0+
  Entity []EntityData 0+
    EntityType string 0+
    EntityName string 0+ nullable=0+
  Key string 0+
  Value float64 0+
  Remove bool 0+
"""
    STRUCTS = (EntityData,)


class ProducerIdsRecord(Message):
    __slots__ = ("broker_id", "broker_epoch", "next_producer_id")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        next_producer_id: int = 0,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.next_producer_id = next_producer_id
        self.unknown_tags = None

    KEY = 15
    SCHEMA = """\
ProducerIdsRecord key=15 type=metadata versions=0 flexible=0+
  BrokerId int32 0+ entity=brokerId
  BrokerEpoch int64 0+ default=-1
  NextProducerId int64 0+
"""
    STRUCTS = ()


class BrokerRegistrationChangeRecord(Message):
    __slots__ = ("broker_id", "broker_epoch", "fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
        fenced: int = 0,
        in_controlled_shutdown: int = 0,
        log_dirs: list[Uuid] = EMPTY,
        cordoned_log_dirs: list[Uuid] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = [] if log_dirs is EMPTY else log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs
        self.unknown_tags = None

    KEY = 17
    SCHEMA = """\
BrokerRegistrationChangeRecord key=17 type=metadata versions=0-3 flexible=0+
  BrokerId int32 0+ entity=brokerId
  BrokerEpoch int64 0+
  Fenced int8 0+ tag=0@0+
  InControlledShutdown int8 1+ tag=1@1+
  LogDirs []uuid 2+ tag=2@2+
  CordonedLogDirs []uuid 3+ nullable=3+ tag=3@3+ default=null
"""
    STRUCTS = ()


class AccessControlEntryRecord(Message):
    __slots__ = ("id", "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type")

    def __init__(
        self,
        *,
        id: Uuid = ZERO_UUID,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 0,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.id = id
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type
        self.unknown_tags = None

    KEY = 18
    SCHEMA = """\
AccessControlEntryRecord key=18 type=metadata versions=0 flexible=0+
  Id uuid 0+
  ResourceType int8 0+
  ResourceName string 0+
  PatternType int8 0+
  Principal string 0+
  Host string 0+
  Operation int8 0+
  PermissionType int8 0+
"""
    STRUCTS = ()


class RemoveAccessControlEntryRecord(Message):
    __slots__ = ("id",)

    def __init__(
        self,
        *,
        id: Uuid = ZERO_UUID,
    ) -> None:
        self.id = id
        self.unknown_tags = None

    KEY = 19
    SCHEMA = """\
RemoveAccessControlEntryRecord key=19 type=metadata versions=0 flexible=0+
  Id uuid 0+
"""
    STRUCTS = ()


class NoOpRecord(Message):
    __slots__ = ()

    def __init__(
        self,
    ) -> None:
        self.unknown_tags = None

    KEY = 20
    SCHEMA = """\
NoOpRecord key=20 type=metadata versions=0 flexible=0+
"""
    STRUCTS = ()


class ZkMigrationStateRecord(Message):
    __slots__ = ("zk_migration_state",)

    def __init__(
        self,
        *,
        zk_migration_state: int = 0,
    ) -> None:
        self.zk_migration_state = zk_migration_state
        self.unknown_tags = None

    KEY = 21
    SCHEMA = """\
ZkMigrationStateRecord key=21 type=metadata versions=0 flexible=0+
  ZkMigrationState int8 0+
"""
    STRUCTS = ()


class RemoveUserScramCredentialRecord(Message):
    __slots__ = ("name", "mechanism")

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.unknown_tags = None

    KEY = 22
    SCHEMA = """\
RemoveUserScramCredentialRecord key=22 type=metadata versions=0 flexible=0+
  Name string 0+
  Mechanism int8 0+
"""
    STRUCTS = ()


class BeginTransactionRecord(Message):
    __slots__ = ("name",)

    def __init__(
        self,
        *,
        name: str | None = None,
    ) -> None:
        self.name = name
        self.unknown_tags = None

    KEY = 23
    SCHEMA = """\
BeginTransactionRecord key=23 type=metadata versions=0 flexible=0+
  Name string 0+ nullable=0+ tag=0@0+ default=null
"""
    STRUCTS = ()


class EndTransactionRecord(Message):
    __slots__ = ()

    def __init__(
        self,
    ) -> None:
        self.unknown_tags = None

    KEY = 24
    SCHEMA = """\
EndTransactionRecord key=24 type=metadata versions=0 flexible=0+
"""
    STRUCTS = ()


class AbortTransactionRecord(Message):
    __slots__ = ("reason",)

    def __init__(
        self,
        *,
        reason: str | None = None,
    ) -> None:
        self.reason = reason
        self.unknown_tags = None

    KEY = 25
    SCHEMA = """\
AbortTransactionRecord key=25 type=metadata versions=0 flexible=0+
  Reason string 0+ nullable=0+ tag=0@0+ default=null
"""
    STRUCTS = ()


class RemoveDelegationTokenRecord(Message):
    __slots__ = ("token_id",)

    def __init__(
        self,
        *,
        token_id: str = "",
    ) -> None:
        self.token_id = token_id
        self.unknown_tags = None

    KEY = 26
    SCHEMA = """\
RemoveDelegationTokenRecord key=26 type=metadata versions=0 flexible=0+
  TokenId string 0+
"""
    STRUCTS = ()


class ControllerFeature(Struct):
    __slots__ = ("name", "min_supported_version", "max_supported_version")

    def __init__(
        self,
        *,
        name: str = "",
        min_supported_version: int = 0,
        max_supported_version: int = 0,
    ) -> None:
        self.name = name
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version
        self.unknown_tags = None


class ControllerEndpoint(Struct):
    __slots__ = ("name", "host", "port", "security_protocol")

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
        security_protocol: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.security_protocol = security_protocol
        self.unknown_tags = None


class RegisterControllerRecord(Message):
    __slots__ = ("controller_id", "incarnation_id", "zk_migration_ready", "end_points", "features")

    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: Uuid = ZERO_UUID,
        zk_migration_ready: bool = False,
        end_points: list[ControllerEndpoint] = EMPTY,
        features: list[ControllerFeature] = EMPTY,
    ) -> None:
        self.controller_id = controller_id
        self.incarnation_id = incarnation_id
        self.zk_migration_ready = zk_migration_ready
        self.end_points = [] if end_points is EMPTY else end_points
        self.features = [] if features is EMPTY else features
        self.unknown_tags = None

    KEY = 27
    SCHEMA = """\
RegisterControllerRecord key=27 type=metadata versions=0 flexible=0+
  ControllerId int32 0+
  IncarnationId uuid 0+
  ZkMigrationReady bool 0+
  EndPoints []ControllerEndpoint 0+
    Name string 0+ key
    Host string 0+
    Port uint16 0+
    SecurityProtocol int16 0+
  Features []ControllerFeature 0+
    Name string 0+ key
    MinSupportedVersion int16 0+
    MaxSupportedVersion int16 0+
"""
    STRUCTS = (ControllerEndpoint, ControllerFeature)


class ClearElrRecord(Message):
    __slots__ = ("topic_name",)

    def __init__(
        self,
        *,
        topic_name: str = "",
    ) -> None:
        self.topic_name = topic_name
        self.unknown_tags = None

    KEY = 28
    SCHEMA = """\
ClearElrRecord key=28 type=metadata versions=0 flexible=0+
  TopicName string 0+ entity=topicName
"""
    STRUCTS = ()
