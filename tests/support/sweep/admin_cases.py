"""The cases of the sweep for topics, settings and the cluster, on the broker's listener and on the controller's."""

from collections.abc import Callable, Iterator

from tests.support.sweep.cases import UNKNOWN_ID, Topics, every_version
from tests.support.sweep.sweep import Case

from ottla.broker.requests.apis import ON_CONTROLLER
from ottla.ids import Uuid
from ottla.wire.apis import ApiKey
from ottla.wire.base import Message
from ottla.wire.messages import add_raft_voter, alter_client_quotas, alter_configs, create_topics, incremental_alter_configs
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_acls import DescribeAclsRequest
from ottla.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from ottla.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from ottla.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from ottla.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequestCursor as Cursor,
)
from ottla.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
NOT_AT_THE_CONTROLLER = {
    *("change, null", "change, same twice", "change a fixed setting of the broker", "alter a fixed setting of the broker"),
    *("users", "a user", "a user twice", "tokens"),
}
"""Cases that Apache's broker refuses and its controller accepts, or that its controller cannot answer."""

Makers = dict[str, Callable[[int], Message | None]]


def admin_cases(topics: Topics) -> Iterator[Case]:
    """All cases on the broker's listener, then those that the controller's listener serves too."""
    tables = tables_of_cases()
    for api_key, table in tables.items():
        for name, make in table("b").items():
            yield from every_version(name, api_key, make)
    for api_key, table in tables.items():
        if api_key in ON_CONTROLLER:
            for name, make in table("c").items():
                if name not in NOT_AT_THE_CONTROLLER:
                    yield from every_version(name, api_key, make, on_controller=True)


def tables_of_cases() -> dict[int, Callable[[str], Makers]]:
    """API key → its cases; the argument makes the names of topics unique."""
    return {
        ApiKey.CREATE_TOPICS: _create_topics,
        ApiKey.DELETE_TOPICS: _delete_topics,
        ApiKey.CREATE_PARTITIONS: _create_partitions,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
        ApiKey.DESCRIBE_CONFIGS: _describe_configs,
        ApiKey.ALTER_CONFIGS: _alter_configs,
        ApiKey.INCREMENTAL_ALTER_CONFIGS: _incremental_alter_configs,
        ApiKey.LIST_CONFIG_RESOURCES: _config_resources,
        ApiKey.ALTER_CLIENT_QUOTAS: _quotas_altered,
        ApiKey.DESCRIBE_CLIENT_QUOTAS: _quotas,
        ApiKey.DESCRIBE_ACLS: _acls,
        ApiKey.CREATE_ACLS: _acls_created,
        ApiKey.DELETE_ACLS: _acls_deleted,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _users_altered,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _users,
        ApiKey.CREATE_DELEGATION_TOKEN: lambda _: {"token": lambda version: CreateDelegationTokenRequest(max_lifetime_ms=-1)},
        ApiKey.RENEW_DELEGATION_TOKEN: lambda _: {"renew": lambda _: RenewDelegationTokenRequest(hmac=b"x" * 64)},
        ApiKey.EXPIRE_DELEGATION_TOKEN: lambda _: {"expire": lambda _: ExpireDelegationTokenRequest(hmac=b"x" * 64)},
        ApiKey.DESCRIBE_DELEGATION_TOKEN: lambda _: {"tokens": lambda _: DescribeDelegationTokenRequest(owners=None)},
        ApiKey.SASL_HANDSHAKE: lambda _: {"handshake": lambda _: SaslHandshakeRequest(mechanism="PLAIN")},
        ApiKey.SASL_AUTHENTICATE: lambda _: {"login": lambda _: SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret")},
        ApiKey.DESCRIBE_LOG_DIRS: _log_dirs,
        ApiKey.ALTER_REPLICA_LOG_DIRS: _move,
        ApiKey.ELECT_LEADERS: _elect,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: _reassign,
        ApiKey.LIST_PARTITION_REASSIGNMENTS: _reassignments,
        ApiKey.DESCRIBE_QUORUM: _quorum,
        ApiKey.UNREGISTER_BROKER: _unregistering,
        ApiKey.ADD_RAFT_VOTER: _adding_a_voter,
        ApiKey.REMOVE_RAFT_VOTER: _removing_a_voter,
        ApiKey.UPDATE_FEATURES: _features,
        ApiKey.DESCRIBE_CLUSTER: _cluster,
    }


def _create_topics(place: str) -> Makers:
    def request(
        name: str, partitions: int = 1, replicas: int = 1, validate: bool = False, config: tuple[str, str] | None = None
    ) -> create_topics.CreateTopicsRequest:
        configs = [create_topics.CreatableTopicConfig(name=config[0], value=config[1])] if config else []
        topic = create_topics.CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, configs=configs)
        return create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=5000, validate_only=validate)

    def assigned(name: str, *brokers: list[int]) -> create_topics.CreateTopicsRequest:
        made = request(name, -1, -1)
        made.topics[0].assignments = [
            create_topics.CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in enumerate(brokers)
        ]
        return made

    def twice(name: str) -> create_topics.CreateTopicsRequest:
        made = request(name)
        made.topics.append(request(name).topics[0])
        return made

    return {
        "create": lambda version: request(f"made-{place}{version}", 2, 1, config=("retention.ms", "777")),
        "create, defaults": lambda version: request(f"default-{place}{version}", -1, -1) if version >= 4 else None,
        "create, validated": lambda version: request(f"checked-{place}{version}", 2, 1, validate=True),
        "create, exists": lambda _: request("sweep"),
        "create, no partitions": lambda _: request("none", 0),
        "create, too many replicas": lambda _: request("none", 1, 2),
        "create, unknown setting": lambda _: request("none", config=("no.such", "1")),
        "create, invalid setting": lambda _: request("none", config=("retention.ms", "soon")),
        "create, invalid name": lambda _: request("not/valid"),
        "create, colliding name": lambda version: request("made_x.y" if version % 2 else "made.x_y", validate=True),
        "create, assigned": lambda version: assigned(f"placed-{place}{version}", [1], [1]),
        "create, assigned to an absent broker": lambda _: assigned("none", [9]),
        "create, assigned twice to one": lambda _: assigned("none", [1, 1]),
        "create, assigned unevenly": lambda _: assigned("none", [1], []),
        "create twice in one request": lambda version: twice(f"twice-{place}{version}"),
    }


def _delete_topics(place: str) -> Makers:
    def request(version: int, *names: str) -> DeleteTopicsRequest:
        if version >= 6:
            return DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=5000)
        return DeleteTopicsRequest(topic_names=list(names), timeout_ms=5000)

    def by_id(version: int, topic_id: Uuid, name: str | None = None) -> DeleteTopicsRequest | None:
        if version < 6:
            return None
        return DeleteTopicsRequest(topics=[DeleteTopicState(name=name, topic_id=topic_id)], timeout_ms=5000)

    return {
        "delete": lambda version: request(version, f"made-{place}{max(version, 2)}") if version >= 2 else None,
        "delete, absent": lambda version: request(version, "absent"),
        "delete, named twice": lambda version: request(version, f"placed-{place}2", f"placed-{place}2"),
        "delete by an unknown id": lambda version: by_id(version, UNKNOWN_ID),
        "delete by name and id": lambda version: by_id(version, UNKNOWN_ID, "sweep"),
        "delete by nothing": lambda version: by_id(version, Uuid(bytes(16))),
    }


def _create_partitions(place: str) -> Makers:
    def request(name: str, count: int, brokers: list[list[int]] | None = None, validate: bool = False) -> Message:
        assignments = None if brokers is None else [CreatePartitionsAssignment(broker_ids=ids) for ids in brokers]
        topic = CreatePartitionsTopic(name=name, count=count, assignments=assignments)
        return CreatePartitionsRequest(topics=[topic], timeout_ms=5000, validate_only=validate)

    first = 2 if place == "b" else 6
    return {
        "grow": lambda version: request("grown", first + version),
        "grow, validated": lambda _: request("grown", 50, validate=True),
        "grow to the same": lambda version: request("grown", first + 3),
        "grow to fewer": lambda _: request("grown", 1),
        "grow, absent": lambda _: request("absent", 3),
        "grow, too few assigned": lambda _: request("grown", 40, [[1]]),
        "grow, assigned to an absent broker": lambda version: request("grown", first + 4, [[5]]),
    }


def _describe_topic_partitions(_: str) -> Makers:
    def request(*names: str, limit: int = 2000, cursor: Cursor | None = None) -> Message:
        topics = [TopicRequest(name=name) for name in names]
        return DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=cursor)

    return {
        "partitions": lambda _: request("sweep", "keyed"),
        "partitions, absent": lambda _: request("absent", "sweep", "not/valid"),
        "partitions, first page": lambda _: request("keyed", "sweep", limit=2),
        "partitions, next page": lambda _: request(
            "keyed", "sweep", limit=2, cursor=Cursor(topic_name="sweep", partition_index=1)
        ),
        "partitions, negative cursor": lambda _: request("sweep", cursor=Cursor(topic_name="sweep", partition_index=-1)),
    }


def _describe_configs(_: str) -> Makers:
    def request(kind: int, name: str, keys: list[str] | None, version: int) -> Message:
        resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        return DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=version >= 3)

    some = ["retention.ms", "max.message.bytes", "cleanup.policy", "min.insync.replicas", "no.such"]
    broker = [
        "num.partitions",
        "log.retention.hours",
        "log.dirs",
        "message.max.bytes",
        "background.threads",
        "ssl.key.password",
    ]
    return {
        "settings of a topic": lambda version: request(TOPIC, "sweep", some, version),
        "all settings of a topic": lambda version: request(TOPIC, "keyed", None, version) if version == 4 else None,
        "settings of an absent topic": lambda version: request(TOPIC, "absent", some, version),
        "settings of a topic with no name": lambda version: request(TOPIC, "", some, version),
        "settings of the broker": lambda version: request(BROKER, "1", broker, version),
        "settings of all brokers": lambda version: request(BROKER, "", None, version),
        "settings of another broker": lambda version: request(BROKER, "7", broker, version),
        "settings of a broker with a name": lambda version: request(BROKER, "one", broker, version),
        "settings of nothing known": lambda version: request(99, "x", None, version),
    }


def _alter_configs(_: str) -> Makers:
    def request(kind: int, name: str, validate: bool = False, **configs: str | None) -> Message:
        entries = [alter_configs.AlterableConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        resource = alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=entries)
        return alter_configs.AlterConfigsRequest(resources=[resource], validate_only=validate)

    return {
        "alter": lambda _: request(TOPIC, "grown", retention_ms="99999999"),
        "alter, validated": lambda _: request(TOPIC, "grown", validate=True, retention_ms="1"),
        "alter, invalid": lambda _: request(TOPIC, "grown", retention_ms="x"),
        "alter, unknown setting": lambda _: request(TOPIC, "grown", no_such="1"),
        "alter, absent": lambda _: request(TOPIC, "absent", retention_ms="1"),
        "alter a fixed setting of the broker": lambda _: request(BROKER, "1", num_partitions="5"),
        "alter another broker": lambda _: request(BROKER, "x", log_cleaner_threads="1"),
    }


def _incremental_alter_configs(_: str) -> Makers:
    def request(kind: int, name: str, *changes: tuple[str, int, str | None], validate: bool = False) -> Message:
        entries = [
            incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ]
        resource = incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=entries)
        return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate)

    return {
        "change": lambda _: request(TOPIC, "grown", ("retention.ms", SET, "5000"), ("cleanup.policy", APPEND, "compact")),
        "change back": lambda _: request(
            TOPIC, "grown", ("retention.ms", DELETE, None), ("cleanup.policy", SUBTRACT, "compact")
        ),
        "change, validated": lambda _: request(TOPIC, "grown", ("retention.ms", SET, "1"), validate=True),
        "change, invalid": lambda _: request(TOPIC, "grown", ("retention.ms", SET, "x")),
        "change, null": lambda _: request(TOPIC, "grown", ("retention.ms", SET, None)),
        "change, append to a number": lambda _: request(TOPIC, "grown", ("retention.ms", APPEND, "1")),
        "change, same twice": lambda _: request(TOPIC, "grown", ("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
        "change, absent": lambda _: request(TOPIC, "absent", ("retention.ms", SET, "1")),
        "change the broker": lambda _: request(BROKER, "1", ("log.cleaner.threads", SET, "1")),
        "change all brokers": lambda _: request(BROKER, "", ("log.cleaner.threads", DELETE, None)),
        "change a fixed setting of the broker": lambda _: request(BROKER, "1", ("log.dirs", SET, "/x")),
    }


def _config_resources(_: str) -> Makers:
    return {
        "resources": lambda _: ListConfigResourcesRequest(),
        "resources, topics and brokers": lambda version: (
            ListConfigResourcesRequest(resource_types=[TOPIC, BROKER, METRICS, GROUP]) if version else None
        ),
        "resources of no kind": lambda version: ListConfigResourcesRequest(resource_types=[1]) if version else None,
    }


def _acls(_: str) -> Makers:
    def request(kind: int = 1, pattern: int = 1, name: str | None = None) -> Message:
        return DescribeAclsRequest(
            resource_type_filter=kind,
            resource_name_filter=name,
            pattern_type_filter=pattern,
            operation=1,
            permission_type=1,
        )

    return {"acls": lambda _: request(), "acls of a topic": lambda version: request(2, 3 if version else 1, "sweep")}


def _acls_created(_: str) -> Makers:
    def request() -> Message:
        made = AclCreation(
            resource_type=2,
            resource_name="sweep",
            resource_pattern_type=3,
            principal="User:alice",
            host="*",
            operation=3,
            permission_type=3,
        )
        return CreateAclsRequest(creations=[made])

    return {"acl": lambda _: request(), "no acls": lambda _: CreateAclsRequest()}


def _acls_deleted(_: str) -> Makers:
    def request() -> Message:
        wanted = DeleteAclsFilter(resource_type_filter=2, pattern_type_filter=3, operation=1, permission_type=1)
        return DeleteAclsRequest(filters=[wanted])

    return {"delete acls": lambda _: request(), "delete no acls": lambda _: DeleteAclsRequest()}


def _users_altered(_: str) -> Makers:
    def upsertion(name: str = "alice", mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
        return ScramCredentialUpsertion(
            name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"x" * 32
        )

    def request(*made: ScramCredentialUpsertion, gone: str | None = None) -> Message:
        deletions = [] if gone is None else [ScramCredentialDeletion(name=gone, mechanism=1)]
        return AlterUserScramCredentialsRequest(upsertions=list(made), deletions=deletions)

    return {
        "add user": lambda _: request(upsertion()),
        "add user, few iterations": lambda _: request(upsertion(iterations=1)),
        "add user, many iterations": lambda _: request(upsertion(iterations=100_000)),
        "add user, unknown mechanism": lambda _: request(upsertion(mechanism=9)),
        "add user, no name": lambda _: request(upsertion("")),
        "add user, twice": lambda _: request(upsertion("bob"), upsertion("bob", 2)),
        "remove unknown user": lambda _: request(gone="nobody"),
        "alter no users": lambda _: request(),
    }


def _users(_: str) -> Makers:
    return {
        "users": lambda _: DescribeUserScramCredentialsRequest(users=None),
        "a user": lambda _: DescribeUserScramCredentialsRequest(users=[UserName(name="alice"), UserName(name="nobody")]),
        "a user twice": lambda _: DescribeUserScramCredentialsRequest(users=[UserName(name="alice"), UserName(name="alice")]),
    }


def _quotas_altered(_: str) -> Makers:
    def request(entity: dict[str, str | None], *ops: tuple[str, float | None], validate: bool = False) -> Message:
        parts = [
            alter_client_quotas.AlterClientQuotasRequestEntityData(entity_type=type_, entity_name=name)
            for type_, name in entity.items()
        ]
        changes = [
            alter_client_quotas.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in ops
        ]
        entry = alter_client_quotas.AlterClientQuotasRequestEntryData(entity=parts, ops=changes)
        return alter_client_quotas.AlterClientQuotasRequest(entries=[entry], validate_only=validate)

    produce, fetch, percent, connections = (
        *("producer_byte_rate", "consumer_byte_rate", "request_percentage", "connection_creation_rate"),
    )
    return {
        "quotas": lambda _: request({"user": "sweep"}, (produce, 1e9), (percent, 90.5)),
        "quotas, again": lambda _: request({"user": "sweep"}, (produce, 1e9)),
        "quotas, of the default": lambda _: request({"user": "who", "client-id": None}, (fetch, 1e9)),
        "quotas, of an address": lambda _: request({"ip": "10.9.8.7"}, (connections, 5)),
        "quotas, validated": lambda _: request({"user": "never"}, (produce, 5), validate=True),
        "quotas, removed": lambda _: request({"user": "who", "client-id": None}, (fetch, None)),
        "quotas, absent removed": lambda _: request({"user": "nobody"}, ("no.such", None)),
        "quotas, unknown key": lambda _: request({"user": "sweep"}, ("no.such", 1)),
        "quotas, key of an address": lambda _: request({"user": "sweep"}, (connections, 1)),
        "quotas, key of a user": lambda _: request({"ip": "10.9.8.7"}, (produce, 1)),
        "quotas, key twice": lambda _: request({"user": "sweep"}, (produce, 1), (produce, 2)),
        "quotas, zero": lambda _: request({"user": "sweep"}, (produce, 0)),
        "quotas, fraction": lambda _: request({"user": "sweep"}, (produce, 1.5)),
        "quotas, too large": lambda _: request({"user": "sweep"}, (produce, 1e20)),
        "quotas, no entity": lambda _: request({}, (produce, 1)),
        "quotas, empty name": lambda _: request({"user": ""}, (produce, 1)),
        "quotas, unknown type": lambda _: request({"group": "g"}, (produce, 1)),
        "quotas, user and address": lambda _: request({"user": "sweep", "ip": "10.9.8.7"}, (produce, 1)),
        "quotas, no address": lambda _: request({"ip": "not an address"}, (connections, 1)),
    }


def _quotas(_: str) -> Makers:
    def request(*components: tuple[str, int, str | None], strict: bool = False) -> Message:
        wanted = [ComponentData(entity_type=type_, match_type=how, match=match) for type_, how, match in components]
        return DescribeClientQuotasRequest(components=wanted, strict=strict)

    return {
        "quotas of a user": lambda _: request(("user", 0, "sweep")),
        "quotas of any user": lambda _: request(("user", 2, None), strict=True),
        "quotas of the default user": lambda _: request(("user", 1, None)),
        "quotas of an address": lambda _: request(("ip", 0, "10.9.8.7")),
        "quotas of nothing": lambda _: request(strict=True),
        "quotas of an unknown type": lambda _: request(("group", 2, None)),
        "quotas of one type twice": lambda _: request(("user", 2, None), ("user", 0, "sweep")),
        "quotas of no name": lambda _: request(("user", 0, None)),
        "quotas of the default with a name": lambda _: request(("user", 1, "sweep")),
        "quotas matched in no way": lambda _: request(("user", 9, None)),
        "quotas of users and addresses": lambda _: request(("user", 2, None), ("ip", 2, None)),
    }


def _log_dirs(_: str) -> Makers:
    def request(name: str, *partitions: int) -> Message:
        return DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=name, partitions=list(partitions))])

    return {
        "log directories": lambda _: request("keyed", 0),
        "log directories, absent": lambda _: request("absent", 0),
        "log directories of no topics": lambda _: DescribeLogDirsRequest(topics=[]),
    }


def _move(_: str) -> Makers:
    def request(path: str, topic: str, *partitions: int) -> Message:
        wanted = AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=list(partitions))])
        return AlterReplicaLogDirsRequest(dirs=[wanted])

    return {
        "move to nowhere": lambda _: request("/no/such/folder", "keyed", 0),
        "move to a relative path": lambda _: request("folder", "keyed", 0),
        "move, absent": lambda _: request("/no/such/folder", "absent", 0),
    }


def _elect(_: str) -> Makers:
    def request(version: int, kind: int, topics: list[TopicPartitions] | None) -> Message:
        return ElectLeadersRequest(election_type=kind if version else 0, topic_partitions=topics, timeout_ms=5000)

    return {
        "elect": lambda version: request(version, 0, [TopicPartitions(topic="sweep", partitions=[0, 1])]),
        "elect, unclean": lambda version: request(version, 1, [TopicPartitions(topic="sweep", partitions=[0])]),
        "elect, absent": lambda version: request(
            version, 0, [TopicPartitions(topic="absent", partitions=[0]), TopicPartitions(topic="sweep", partitions=[9])]
        ),
        "elect all": lambda version: request(version, 0, None),
    }


def _reassign(_: str) -> Makers:
    def request(version: int, topic: str, number: int, replicas: list[int] | None, same_factor: bool = False) -> Message:
        wanted = ReassignablePartition(partition_index=number, replicas=replicas)
        made = AlterPartitionReassignmentsRequest(timeout_ms=5000, topics=[ReassignableTopic(name=topic, partitions=[wanted])])
        made.allow_replication_factor_change = version == 0 or not same_factor
        return made

    return {
        "reassign to where it is": lambda version: request(version, "sweep", 0, [1]),
        "reassign nothing": lambda version: AlterPartitionReassignmentsRequest(timeout_ms=5000),
        "reassign, absent": lambda version: request(version, "absent", 0, [1]),
        "reassign, no such partition": lambda version: request(version, "sweep", 9, [1]),
        "reassign, no such broker": lambda version: request(version, "sweep", 0, [1, 7]),
        "reassign to nobody": lambda version: request(version, "sweep", 0, []),
        "reassign, twice the same": lambda version: request(version, "sweep", 0, [1, 1]),
        "reassign, another number": lambda version: request(version, "sweep", 0, [], same_factor=True),
        "reassign, taken back": lambda version: request(version, "sweep", 0, None),
    }


def _reassignments(_: str) -> Makers:
    def request(*topics: str) -> Message:
        wanted = [ListPartitionReassignmentsTopics(name=name, partition_indexes=[0, 9]) for name in topics]
        return ListPartitionReassignmentsRequest(timeout_ms=5000, topics=wanted)

    return {
        "reassignments": lambda version: ListPartitionReassignmentsRequest(timeout_ms=5000),
        "reassignments of some": lambda version: request("sweep", "absent"),
        "reassignments of none": lambda version: request(),
    }


def _quorum(_: str) -> Makers:
    def request(name: str, *partitions: int) -> Message:
        parts = [DescribeQuorumRequestPartitionData(partition_index=index) for index in partitions]
        return DescribeQuorumRequest(topics=[DescribeQuorumRequestTopicData(topic_name=name, partitions=parts)])

    return {
        "quorum": lambda _: request("__cluster_metadata", 0),
        "quorum of another partition": lambda _: request("__cluster_metadata", 1),
        "quorum of another topic": lambda _: request("sweep", 0),
    }


def _unregistering(_: str) -> Makers:
    return {"unregister, unknown": lambda _: UnregisterBrokerRequest(broker_id=99)}


def _adding_a_voter(_: str) -> Makers:
    endpoint = add_raft_voter.Listener(name="CONTROLLER", host="127.0.0.1", port=9)

    def request(cluster_id: str | None, *listeners: add_raft_voter.Listener) -> Message:
        return AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=5000,
            voter_id=99,
            voter_directory_id=UNKNOWN_ID,
            listeners=list(listeners),
        )

    return {
        "add a voter of another cluster": lambda _: request("another", endpoint),
        "add a voter without address": lambda _: request(None),
    }


def _removing_a_voter(_: str) -> Makers:
    def request(cluster_id: str | None) -> Message:
        return RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=99, voter_directory_id=UNKNOWN_ID)

    return {
        "remove a voter of another cluster": lambda _: request("another"),
        "remove a voter, unknown": lambda _: request(None),
    }


def _features(_: str) -> Makers:
    def request(version: int, name: str, level: int, kind: int = 1, validate: bool = False) -> Message:
        update = FeatureUpdateKey(feature=name, max_version_level=level)
        if version:
            update.upgrade_type = kind
        else:
            update.allow_downgrade = kind > 1
        return UpdateFeaturesRequest(feature_updates=[update], timeout_ms=5000, validate_only=validate and version > 0)

    return {
        "feature, unknown": lambda version: request(version, "no.such", 1),
        "feature, too high": lambda version: request(version, "metadata.version", 99),
        "feature, unchanged": lambda version: request(version, "transaction.version", 2),
        "feature, down without leave": lambda version: request(version, "transaction.version", 1),
        "feature, checked": lambda version: request(version, "transaction.version", 1, 2, True) if version else None,
        "feature, down in no known way": lambda version: request(version, "transaction.version", 1, 9) if version else None,
        "features, none": lambda _: UpdateFeaturesRequest(feature_updates=[]),
    }


def _cluster(place: str) -> Makers:
    def request(version: int, kind: int, fenced: bool = False) -> Message:
        return DescribeClusterRequest(
            include_cluster_authorized_operations=True,
            endpoint_type=kind if version else 1,
            include_fenced_brokers=fenced and version >= 2,
        )

    return {
        "cluster": lambda version: request(version, 1, True),
        "cluster, controllers": lambda version: request(version, 2) if version else None,
        "cluster, neither": lambda version: request(version, 5) if version else None,
    }
