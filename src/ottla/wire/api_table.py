"""The rows behind `ottla.wire.apis`. Generated from the schema table by tools/generate_messages.py: do not edit."""

from typing import Final

# key, name, oldest, newest, flexible from (-1: never), listeners, cluster action, forwardable, unstable
ROWS: tuple[tuple[int, str, int, int, int, str, bool, bool, bool], ...] = (
    (0, "Produce", 3, 13, 9, "broker", False, False, False),
    (1, "Fetch", 4, 18, 12, "broker,controller", False, False, False),
    (2, "ListOffsets", 1, 11, 6, "broker", False, False, False),
    (3, "Metadata", 0, 13, 9, "broker", False, False, False),
    (4, "LeaderAndIsr", 0, -1, -1, "", True, False, False),
    (5, "StopReplica", 0, -1, -1, "", True, False, False),
    (6, "UpdateMetadata", 0, -1, -1, "", True, False, False),
    (7, "ControlledShutdown", 0, -1, -1, "", True, False, False),
    (8, "OffsetCommit", 2, 10, 8, "broker", False, False, False),
    (9, "OffsetFetch", 1, 10, 6, "broker", False, False, False),
    (10, "FindCoordinator", 0, 6, 3, "broker", False, False, False),
    (11, "JoinGroup", 0, 9, 6, "broker", False, False, False),
    (12, "Heartbeat", 0, 4, 4, "broker", False, False, False),
    (13, "LeaveGroup", 0, 5, 4, "broker", False, False, False),
    (14, "SyncGroup", 0, 5, 4, "broker", False, False, False),
    (15, "DescribeGroups", 0, 6, 5, "broker", False, False, False),
    (16, "ListGroups", 0, 5, 3, "broker", False, False, False),
    (17, "SaslHandshake", 0, 1, -1, "broker,controller", False, False, False),
    (18, "ApiVersions", 0, 4, 3, "broker,controller", False, False, False),
    (19, "CreateTopics", 2, 7, 5, "broker,controller", False, True, False),
    (20, "DeleteTopics", 1, 6, 4, "broker,controller", False, True, False),
    (21, "DeleteRecords", 0, 2, 2, "broker", False, False, False),
    (22, "InitProducerId", 0, 6, 2, "broker", False, False, True),
    (23, "OffsetForLeaderEpoch", 2, 4, 4, "broker", False, False, False),
    (24, "AddPartitionsToTxn", 0, 5, 3, "broker", False, False, False),
    (25, "AddOffsetsToTxn", 0, 4, 3, "broker", False, False, False),
    (26, "EndTxn", 0, 5, 3, "broker", False, False, False),
    (27, "WriteTxnMarkers", 1, 2, 1, "broker", True, False, False),
    (28, "TxnOffsetCommit", 0, 5, 3, "broker", False, False, False),
    (29, "DescribeAcls", 1, 3, 2, "broker,controller", False, False, False),
    (30, "CreateAcls", 1, 3, 2, "broker,controller", False, True, False),
    (31, "DeleteAcls", 1, 3, 2, "broker,controller", False, True, False),
    (32, "DescribeConfigs", 1, 4, 4, "broker,controller", False, False, False),
    (33, "AlterConfigs", 0, 2, 2, "broker,controller", False, True, False),
    (34, "AlterReplicaLogDirs", 1, 2, 2, "broker", False, False, False),
    (35, "DescribeLogDirs", 1, 5, 2, "broker", False, False, False),
    (36, "SaslAuthenticate", 0, 2, 2, "broker,controller", False, False, False),
    (37, "CreatePartitions", 0, 3, 2, "broker,controller", False, True, False),
    (38, "CreateDelegationToken", 1, 3, 2, "broker,controller", False, True, False),
    (39, "RenewDelegationToken", 1, 2, 2, "broker,controller", False, True, False),
    (40, "ExpireDelegationToken", 1, 2, 2, "broker,controller", False, True, False),
    (41, "DescribeDelegationToken", 1, 3, 2, "broker,controller", False, False, False),
    (42, "DeleteGroups", 0, 2, 2, "broker", False, False, False),
    (43, "ElectLeaders", 0, 2, 2, "broker,controller", False, True, False),
    (44, "IncrementalAlterConfigs", 0, 1, 1, "broker,controller", False, True, False),
    (45, "AlterPartitionReassignments", 0, 1, 0, "broker,controller", False, True, False),
    (46, "ListPartitionReassignments", 0, 0, 0, "broker,controller", False, True, False),
    (47, "OffsetDelete", 0, 0, -1, "broker", False, False, False),
    (48, "DescribeClientQuotas", 0, 1, 1, "broker", False, False, False),
    (49, "AlterClientQuotas", 0, 1, 1, "broker,controller", False, True, False),
    (50, "DescribeUserScramCredentials", 0, 0, 0, "broker,controller", False, False, False),
    (51, "AlterUserScramCredentials", 0, 0, 0, "broker,controller", False, True, False),
    (52, "Vote", 0, 2, 0, "controller", True, False, False),
    (53, "BeginQuorumEpoch", 0, 1, 1, "controller", True, False, False),
    (54, "EndQuorumEpoch", 0, 1, 1, "controller", True, False, False),
    (55, "DescribeQuorum", 0, 2, 0, "broker,controller", True, True, False),
    (56, "AlterPartition", 2, 3, 2, "controller", True, False, False),
    (57, "UpdateFeatures", 0, 2, 0, "broker,controller", True, True, False),
    (58, "Envelope", 0, 0, 0, "controller", True, False, False),
    (59, "FetchSnapshot", 0, 1, 0, "controller", False, False, False),
    (60, "DescribeCluster", 0, 2, 0, "broker,controller", False, False, False),
    (61, "DescribeProducers", 0, 0, 0, "broker", False, False, False),
    (62, "BrokerRegistration", 0, 4, 0, "controller", True, False, False),
    (63, "BrokerHeartbeat", 0, 2, 0, "controller", True, False, False),
    (64, "UnregisterBroker", 0, 0, 0, "broker,controller", False, True, False),
    (65, "DescribeTransactions", 0, 0, 0, "broker", False, False, False),
    (66, "ListTransactions", 0, 2, 0, "broker", False, False, False),
    (67, "AllocateProducerIds", 0, 0, 0, "controller", True, True, False),
    (68, "ConsumerGroupHeartbeat", 0, 1, 0, "broker", False, False, False),
    (69, "ConsumerGroupDescribe", 0, 1, 0, "broker", False, False, False),
    (70, "ControllerRegistration", 0, 0, 0, "controller", False, False, False),
    (71, "GetTelemetrySubscriptions", 0, 0, 0, "broker", False, False, False),
    (72, "PushTelemetry", 0, 0, 0, "broker", False, False, False),
    (73, "AssignReplicasToDirs", 0, 0, 0, "controller", False, False, False),
    (74, "ListConfigResources", 0, 1, 0, "broker", False, False, False),
    (75, "DescribeTopicPartitions", 0, 0, 0, "broker", False, False, False),
    (76, "ShareGroupHeartbeat", 1, 1, 1, "broker", False, False, False),
    (77, "ShareGroupDescribe", 1, 1, 1, "broker", False, False, False),
    (78, "ShareFetch", 1, 2, 1, "broker", False, False, False),
    (79, "ShareAcknowledge", 1, 2, 1, "broker", False, False, False),
    (80, "AddRaftVoter", 0, 1, 0, "controller,broker", False, True, False),
    (81, "RemoveRaftVoter", 0, 0, 0, "controller,broker", False, True, False),
    (82, "UpdateRaftVoter", 0, 0, 0, "controller", False, False, False),
    (83, "InitializeShareGroupState", 0, 0, 0, "broker", True, False, False),
    (84, "ReadShareGroupState", 0, 0, 0, "broker", True, False, False),
    (85, "WriteShareGroupState", 0, 1, 0, "broker", True, False, False),
    (86, "DeleteShareGroupState", 0, 0, 0, "broker", True, False, False),
    (87, "ReadShareGroupStateSummary", 0, 1, 0, "broker", True, False, False),
    (88, "StreamsGroupHeartbeat", 0, 0, 0, "broker", False, False, False),
    (89, "StreamsGroupDescribe", 0, 0, 0, "broker", False, False, False),
    (90, "DescribeShareGroupOffsets", 0, 1, 0, "broker", False, False, False),
    (91, "AlterShareGroupOffsets", 0, 0, 0, "broker", False, False, False),
    (92, "DeleteShareGroupOffsets", 0, 0, 0, "broker", False, False, False),
)


class ApiKey:
    """The numbers of the APIs, by name."""

    PRODUCE: Final = 0
    FETCH: Final = 1
    LIST_OFFSETS: Final = 2
    METADATA: Final = 3
    LEADER_AND_ISR: Final = 4
    STOP_REPLICA: Final = 5
    UPDATE_METADATA: Final = 6
    CONTROLLED_SHUTDOWN: Final = 7
    OFFSET_COMMIT: Final = 8
    OFFSET_FETCH: Final = 9
    FIND_COORDINATOR: Final = 10
    JOIN_GROUP: Final = 11
    HEARTBEAT: Final = 12
    LEAVE_GROUP: Final = 13
    SYNC_GROUP: Final = 14
    DESCRIBE_GROUPS: Final = 15
    LIST_GROUPS: Final = 16
    SASL_HANDSHAKE: Final = 17
    API_VERSIONS: Final = 18
    CREATE_TOPICS: Final = 19
    DELETE_TOPICS: Final = 20
    DELETE_RECORDS: Final = 21
    INIT_PRODUCER_ID: Final = 22
    OFFSET_FOR_LEADER_EPOCH: Final = 23
    ADD_PARTITIONS_TO_TXN: Final = 24
    ADD_OFFSETS_TO_TXN: Final = 25
    END_TXN: Final = 26
    WRITE_TXN_MARKERS: Final = 27
    TXN_OFFSET_COMMIT: Final = 28
    DESCRIBE_ACLS: Final = 29
    CREATE_ACLS: Final = 30
    DELETE_ACLS: Final = 31
    DESCRIBE_CONFIGS: Final = 32
    ALTER_CONFIGS: Final = 33
    ALTER_REPLICA_LOG_DIRS: Final = 34
    DESCRIBE_LOG_DIRS: Final = 35
    SASL_AUTHENTICATE: Final = 36
    CREATE_PARTITIONS: Final = 37
    CREATE_DELEGATION_TOKEN: Final = 38
    RENEW_DELEGATION_TOKEN: Final = 39
    EXPIRE_DELEGATION_TOKEN: Final = 40
    DESCRIBE_DELEGATION_TOKEN: Final = 41
    DELETE_GROUPS: Final = 42
    ELECT_LEADERS: Final = 43
    INCREMENTAL_ALTER_CONFIGS: Final = 44
    ALTER_PARTITION_REASSIGNMENTS: Final = 45
    LIST_PARTITION_REASSIGNMENTS: Final = 46
    OFFSET_DELETE: Final = 47
    DESCRIBE_CLIENT_QUOTAS: Final = 48
    ALTER_CLIENT_QUOTAS: Final = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS: Final = 50
    ALTER_USER_SCRAM_CREDENTIALS: Final = 51
    VOTE: Final = 52
    BEGIN_QUORUM_EPOCH: Final = 53
    END_QUORUM_EPOCH: Final = 54
    DESCRIBE_QUORUM: Final = 55
    ALTER_PARTITION: Final = 56
    UPDATE_FEATURES: Final = 57
    ENVELOPE: Final = 58
    FETCH_SNAPSHOT: Final = 59
    DESCRIBE_CLUSTER: Final = 60
    DESCRIBE_PRODUCERS: Final = 61
    BROKER_REGISTRATION: Final = 62
    BROKER_HEARTBEAT: Final = 63
    UNREGISTER_BROKER: Final = 64
    DESCRIBE_TRANSACTIONS: Final = 65
    LIST_TRANSACTIONS: Final = 66
    ALLOCATE_PRODUCER_IDS: Final = 67
    CONSUMER_GROUP_HEARTBEAT: Final = 68
    CONSUMER_GROUP_DESCRIBE: Final = 69
    CONTROLLER_REGISTRATION: Final = 70
    GET_TELEMETRY_SUBSCRIPTIONS: Final = 71
    PUSH_TELEMETRY: Final = 72
    ASSIGN_REPLICAS_TO_DIRS: Final = 73
    LIST_CONFIG_RESOURCES: Final = 74
    DESCRIBE_TOPIC_PARTITIONS: Final = 75
    SHARE_GROUP_HEARTBEAT: Final = 76
    SHARE_GROUP_DESCRIBE: Final = 77
    SHARE_FETCH: Final = 78
    SHARE_ACKNOWLEDGE: Final = 79
    ADD_RAFT_VOTER: Final = 80
    REMOVE_RAFT_VOTER: Final = 81
    UPDATE_RAFT_VOTER: Final = 82
    INITIALIZE_SHARE_GROUP_STATE: Final = 83
    READ_SHARE_GROUP_STATE: Final = 84
    WRITE_SHARE_GROUP_STATE: Final = 85
    DELETE_SHARE_GROUP_STATE: Final = 86
    READ_SHARE_GROUP_STATE_SUMMARY: Final = 87
    STREAMS_GROUP_HEARTBEAT: Final = 88
    STREAMS_GROUP_DESCRIBE: Final = 89
    DESCRIBE_SHARE_GROUP_OFFSETS: Final = 90
    ALTER_SHARE_GROUP_OFFSETS: Final = 91
    DELETE_SHARE_GROUP_OFFSETS: Final = 92
