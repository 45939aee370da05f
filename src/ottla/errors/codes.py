"""Kafka's error codes: number, name, whether a retry can help, whether metadata should be refreshed first, and what each means.

The numbers, names and the two flags are the protocol's. The sentences are Ottla's; they say what happened and what to do.
`ErrorCode.NOT_CONTROLLER` is an int: it compares and packs as 41. `error_name` and `error_meaning` also accept a code that
is not in the table, such as one from a newer peer.
"""

from enum import IntEnum


class ErrorCode(IntEnum):
    """One error of the protocol. `retriable`: the same request may succeed later. `refreshes_metadata`: after a refresh."""

    retriable: bool
    refreshes_metadata: bool
    meaning: str

    def __new__(cls, code: int, retry: str, meaning: str) -> "ErrorCode":
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retry != ""
        member.refreshes_metadata = retry == "after refresh"
        member.meaning = meaning
        return member

    UNKNOWN_SERVER_ERROR = (-1, "", "The server met an error it has no code for; its log says which.")
    NONE = (0, "", "No error.")
    OFFSET_OUT_OF_RANGE = (1, "", "The offset lies outside what the partition holds; reset it to the start, the end or a time.")
    CORRUPT_MESSAGE = (
        2,
        "retry",
        "The batch does not match its checksum or breaks the record format; send it again, or check the client if it persists.",
    )
    UNKNOWN_TOPIC_OR_PARTITION = (
        3,
        "after refresh",
        "This broker does not know the topic or partition; refresh metadata, or create the topic.",
    )
    INVALID_FETCH_SIZE = (4, "", "The fetch size asked for is not allowed; ask for a positive number of bytes.")
    LEADER_NOT_AVAILABLE = (
        5,
        "after refresh",
        "The partition has no leader right now, as happens during an election; refresh metadata and try again.",
    )
    NOT_LEADER_OR_FOLLOWER = (
        6,
        "after refresh",
        "This broker is neither leader nor follower of the partition; refresh metadata and ask the broker it names.",
    )
    REQUEST_TIMED_OUT = (
        7,
        "retry",
        "The server did not finish within the request's timeout; try again, and note that the work may have been done.",
    )
    BROKER_NOT_AVAILABLE = (8, "", "No broker can be reached for this; check that the cluster is up.")
    REPLICA_NOT_AVAILABLE = (
        9,
        "after refresh",
        "The replica asked for is not here or not ready; refresh metadata and try again.",
    )
    MESSAGE_TOO_LARGE = (
        10,
        "",
        "The batch is larger than the topic's max.message.bytes; send less at once or raise the setting.",
    )
    STALE_CONTROLLER_EPOCH = (11, "", "The request comes from a controller that has since been replaced; it is ignored.")
    OFFSET_METADATA_TOO_LARGE = (
        12,
        "",
        "The text stored with the offset is longer than offset.metadata.max.bytes; shorten it.",
    )
    NETWORK_EXCEPTION = (13, "after refresh", "The connection ended before the answer arrived; connect again and retry.")
    COORDINATOR_LOAD_IN_PROGRESS = (14, "retry", "The coordinator is still reading its state from the log; try again shortly.")
    COORDINATOR_NOT_AVAILABLE = (15, "retry", "The coordinator is not available yet; look it up again and retry.")
    NOT_COORDINATOR = (
        16,
        "retry",
        "This broker is not the coordinator of that group or transaction; look the coordinator up again.",
    )
    INVALID_TOPIC_EXCEPTION = (17, "", "The topic's name is not allowed, or the operation is not allowed on this topic.")
    RECORD_LIST_TOO_LARGE = (
        18,
        "",
        "The batch is larger than one log segment may be; send less at once or raise segment.bytes.",
    )
    NOT_ENOUGH_REPLICAS = (
        19,
        "retry",
        "Fewer replicas are in sync than min.insync.replicas demands; nothing was written, try again when they are back.",
    )
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        "retry",
        "The batch was written, then too few replicas were in sync to confirm it; a retry can write it a second time.",
    )
    INVALID_REQUIRED_ACKS = (21, "", "acks must be 0, 1 or -1 (all).")
    ILLEGAL_GENERATION = (22, "", "The member speaks for a generation of the group that has passed; join again.")
    INCONSISTENT_GROUP_PROTOCOL = (
        23,
        "",
        "The member shares no assignment protocol with the group, or is of another protocol type; align the members' settings.",
    )
    INVALID_GROUP_ID = (24, "", "The group id is empty or not allowed.")
    UNKNOWN_MEMBER_ID = (25, "", "The coordinator does not know this member, which may have been evicted; join again.")
    INVALID_SESSION_TIMEOUT = (
        26,
        "",
        "The session timeout lies outside the broker's group.min.session.timeout.ms and group.max.session.timeout.ms.",
    )
    REBALANCE_IN_PROGRESS = (27, "", "The group is rebalancing; join again before going on.")
    INVALID_COMMIT_OFFSET_SIZE = (
        28,
        "",
        "The offsets to commit are too large to be written as one batch; commit fewer at once.",
    )
    TOPIC_AUTHORIZATION_FAILED = (
        29,
        "",
        "The principal may not do this on the topic; grant the permission or use another principal.",
    )
    GROUP_AUTHORIZATION_FAILED = (
        30,
        "",
        "The principal may not do this on the group; grant the permission or use another principal.",
    )
    CLUSTER_AUTHORIZATION_FAILED = (
        31,
        "",
        "The principal may not do this on the cluster; grant the permission or use another principal.",
    )
    INVALID_TIMESTAMP = (
        32,
        "",
        "A record's timestamp is too far from the broker's clock, or the batch's timestamps contradict each other.",
    )
    UNSUPPORTED_SASL_MECHANISM = (33, "", "The broker does not offer this SASL mechanism; choose one it listed in its answer.")
    ILLEGAL_SASL_STATE = (34, "", "This request is not allowed at this point of the authentication exchange.")
    UNSUPPORTED_VERSION = (
        35,
        "",
        "The broker does not speak this version of the request; choose one from its ApiVersions answer.",
    )
    TOPIC_ALREADY_EXISTS = (36, "", "A topic of this name exists already.")
    INVALID_PARTITIONS = (37, "", "The number of partitions is not allowed.")
    INVALID_REPLICATION_FACTOR = (
        38,
        "",
        "The replication factor is below 1 or above the number of brokers that can take replicas.",
    )
    INVALID_REPLICA_ASSIGNMENT = (
        39,
        "",
        "The replica assignment is not allowed, for example because it names a broker twice or one that does not exist.",
    )
    INVALID_CONFIG = (40, "", "A setting has an unknown name or a value that is not allowed.")
    NOT_CONTROLLER = (41, "retry", "This node is not the active controller; find the controller and ask it.")
    INVALID_REQUEST = (42, "", "The request is well formed but contradicts itself or the protocol; the broker's log says how.")
    UNSUPPORTED_FOR_MESSAGE_FORMAT = (43, "", "The partition's message format is too old for this request.")
    POLICY_VIOLATION = (44, "", "The cluster's policy refuses the request.")
    OUT_OF_ORDER_SEQUENCE_NUMBER = (
        45,
        "",
        "The producer's sequence number leaves a gap, so an earlier batch is missing; it must fail or start a new epoch.",
    )
    DUPLICATE_SEQUENCE_NUMBER = (46, "", "The batch was written before; the producer may treat it as sent.")
    INVALID_PRODUCER_EPOCH = (
        47,
        "",
        "The producer's epoch is older than the newest one seen; another instance has taken its place.",
    )
    INVALID_TXN_STATE = (48, "", "The transaction is not in a state that allows this.")
    INVALID_PRODUCER_ID_MAPPING = (49, "", "The producer id is not the one that belongs to this transactional id.")
    INVALID_TRANSACTION_TIMEOUT = (
        50,
        "",
        "The transaction timeout is above the broker's transaction.max.timeout.ms; ask for less.",
    )
    CONCURRENT_TRANSACTIONS = (51, "retry", "Another operation on the same transaction is still under way; try again shortly.")
    TRANSACTION_COORDINATOR_FENCED = (52, "", "The transaction coordinator that sent this has been replaced by a newer one.")
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = (
        53,
        "",
        "The principal may not use this transactional id; grant the permission or use another principal.",
    )
    SECURITY_DISABLED = (54, "", "No authorizer is set up on this cluster, so there are no permissions to work on.")
    OPERATION_NOT_ATTEMPTED = (55, "", "The operation was not tried, because one before it in the same request failed.")
    KAFKA_STORAGE_ERROR = (
        56,
        "after refresh",
        "A log directory failed on disk; refresh metadata, since its partitions move to other brokers or stay offline.",
    )
    LOG_DIR_NOT_FOUND = (57, "", "The broker has no log directory of this path.")
    SASL_AUTHENTICATION_FAILED = (58, "", "Authentication failed; check the credentials.")
    UNKNOWN_PRODUCER_ID = (
        59,
        "",
        "The broker has forgotten this producer id, for example because its records have expired; start a new epoch.",
    )
    REASSIGNMENT_IN_PROGRESS = (60, "", "A reassignment of this partition is under way; wait until it is done or cancel it.")
    DELEGATION_TOKEN_AUTH_DISABLED = (61, "", "Delegation tokens are not switched on in this cluster.")
    DELEGATION_TOKEN_NOT_FOUND = (62, "", "No such delegation token exists here; it may have been removed.")
    DELEGATION_TOKEN_OWNER_MISMATCH = (63, "", "Only the owner or a renewer of the delegation token may do this.")
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (
        64,
        "",
        "Delegation tokens can be asked for only over an authenticated connection that was not itself opened with a token.",
    )
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = (
        65,
        "",
        "The principal may not use this delegation token; grant the permission or use another principal.",
    )
    DELEGATION_TOKEN_EXPIRED = (66, "", "The delegation token has expired; ask for a new one.")
    INVALID_PRINCIPAL_TYPE = (67, "", "The principal type is not supported for this; use User.")
    NON_EMPTY_GROUP = (68, "", "The group still has members; stop them first.")
    GROUP_ID_NOT_FOUND = (69, "", "No group of this id exists.")
    FETCH_SESSION_ID_NOT_FOUND = (
        70,
        "retry",
        "The broker does not hold this fetch session; start a new one with a full fetch.",
    )
    INVALID_FETCH_SESSION_EPOCH = (
        71,
        "retry",
        "The fetch session's epoch is not the one expected next; start a new session with a full fetch.",
    )
    LISTENER_NOT_FOUND = (
        72,
        "after refresh",
        "The partition's leader does not have the listener this client came in on; refresh metadata, or add the listener.",
    )
    TOPIC_DELETION_DISABLED = (73, "", "Topic deletion is switched off; set delete.topic.enable to true.")
    FENCED_LEADER_EPOCH = (74, "after refresh", "The client's leader epoch is older than the broker's; refresh metadata.")
    UNKNOWN_LEADER_EPOCH = (
        75,
        "retry",
        "The client's leader epoch is newer than the broker's; try again when the broker has caught up.",
    )
    UNSUPPORTED_COMPRESSION_TYPE = (
        76,
        "",
        "The client's version cannot read the batch's compression codec; use a newer client or another codec.",
    )
    STALE_BROKER_EPOCH = (77, "", "The broker's registration has been replaced by a newer one of the same broker.")
    OFFSET_NOT_AVAILABLE = (
        78,
        "retry",
        "The leader cannot vouch for this offset yet, as its high watermark is still catching up; try again.",
    )
    MEMBER_ID_REQUIRED = (79, "", "The coordinator has given the member an id; join again with it.")
    PREFERRED_LEADER_NOT_AVAILABLE = (
        80,
        "after refresh",
        "The preferred leader is not in sync or not alive; try again when it is back.",
    )
    GROUP_MAX_SIZE_REACHED = (81, "", "The group already has as many members as group.max.size allows.")
    FENCED_INSTANCE_ID = (82, "", "Another member has joined with the same group.instance.id; this one must stop.")
    ELIGIBLE_LEADERS_NOT_AVAILABLE = (
        83,
        "after refresh",
        "No replica is eligible to become leader; bring one back or allow an unclean election.",
    )
    ELECTION_NOT_NEEDED = (84, "after refresh", "The partition already has the leader that was asked for.")
    NO_REASSIGNMENT_IN_PROGRESS = (85, "", "There is no reassignment of this partition to work on.")
    GROUP_SUBSCRIBED_TO_TOPIC = (
        86,
        "",
        "Members of the group subscribe to the topic, so its offsets cannot be deleted; stop them first.",
    )
    INVALID_RECORD = (
        87,
        "",
        "A record breaks the broker's rules, for example a missing key on a compacted topic; the record errors say which.",
    )
    UNSTABLE_OFFSET_COMMIT = (88, "retry", "An open transaction still holds these offsets; try again when it has ended.")
    THROTTLING_QUOTA_EXCEEDED = (89, "retry", "A quota is used up; wait for the throttle time and try again.")
    PRODUCER_FENCED = (90, "", "A newer producer with the same transactional id has taken over; this one must stop.")
    RESOURCE_NOT_FOUND = (91, "", "The resource named does not exist.")
    DUPLICATE_RESOURCE = (92, "", "The resource exists already, or is named twice in the request.")
    UNACCEPTABLE_CREDENTIAL = (93, "", "The credential is not allowed, for example because it has too few iterations.")
    INCONSISTENT_VOTER_SET = (
        94,
        "",
        "Sender and receiver do not agree on who the voters of the quorum are; check their settings.",
    )
    INVALID_UPDATE_VERSION = (95, "", "The feature version asked for is not allowed.")
    FEATURE_UPDATE_FAILED = (96, "", "The features could not be updated; the message says why.")
    PRINCIPAL_DESERIALIZATION_FAILURE = (
        97,
        "",
        "The controller could not read the principal of a forwarded request; check that both sides build principals alike.",
    )
    SNAPSHOT_NOT_FOUND = (98, "", "The snapshot asked for does not exist here; ask the leader for the newest one.")
    POSITION_OUT_OF_RANGE = (99, "", "The position lies outside the snapshot file.")
    UNKNOWN_TOPIC_ID = (
        100,
        "after refresh",
        "This broker does not know the topic id; refresh metadata, since the topic may have been deleted or be new.",
    )
    DUPLICATE_BROKER_REGISTRATION = (
        101,
        "",
        "A broker with this id is registered and alive; give this one another node.id, or stop the other.",
    )
    BROKER_ID_NOT_REGISTERED = (102, "", "No broker of this id is registered.")
    INCONSISTENT_TOPIC_ID = (
        103,
        "after refresh",
        "The topic id does not belong to the topic's name in the log; refresh metadata.",
    )
    INCONSISTENT_CLUSTER_ID = (
        104,
        "",
        "The other side belongs to a cluster with another cluster id; check the addresses and meta.properties.",
    )
    TRANSACTIONAL_ID_NOT_FOUND = (105, "", "No transaction of this transactional id is known.")
    FETCH_SESSION_TOPIC_ID_ERROR = (
        106,
        "retry",
        "The fetch session mixes requests with and without topic ids; start a new session.",
    )
    INELIGIBLE_REPLICA = (107, "", "A replica named for the in-sync set is fenced, shutting down or otherwise not eligible.")
    NEW_LEADER_ELECTED = (108, "", "The change was made and led to the election of another leader; refresh metadata.")
    OFFSET_MOVED_TO_TIERED_STORAGE = (
        109,
        "",
        "The offset has moved to tiered storage; the follower must build its state from there.",
    )
    FENCED_MEMBER_EPOCH = (
        110,
        "",
        "The member's epoch is not the group's; the member must give up its partitions and join again.",
    )
    UNRELEASED_INSTANCE_ID = (111, "", "Another member still holds this group.instance.id; try again when it has left.")
    UNSUPPORTED_ASSIGNOR = (112, "", "The coordinator does not offer this assignor; choose one from group.consumer.assignors.")
    STALE_MEMBER_EPOCH = (
        113,
        "",
        "The member's epoch is behind what the coordinator last gave it; try again after the next heartbeat.",
    )
    MISMATCHED_ENDPOINT_TYPE = (
        114,
        "",
        "The request was sent to a broker's endpoint but belongs to a controller's, or the other way round.",
    )
    UNSUPPORTED_ENDPOINT_TYPE = (115, "", "This kind of endpoint is not supported here.")
    UNKNOWN_CONTROLLER_ID = (116, "", "The controller id is not known to the quorum.")
    UNKNOWN_SUBSCRIPTION_ID = (117, "", "The telemetry subscription has changed; ask for the current one, then push again.")
    TELEMETRY_TOO_LARGE = (118, "", "The telemetry pushed is larger than telemetry.max.bytes; push less.")
    INVALID_REGISTRATION = (119, "", "The controller refuses the broker's registration; its log says what is wrong with it.")
    TRANSACTION_ABORTABLE = (
        120,
        "",
        "The transaction met an error that it cannot commit through; abort it and begin a new one.",
    )
    INVALID_RECORD_STATE = (121, "", "The record is not in a state that allows this acknowledgement.")
    SHARE_SESSION_NOT_FOUND = (122, "retry", "The broker does not hold this share session; start a new one.")
    INVALID_SHARE_SESSION_EPOCH = (123, "retry", "The share session's epoch is not the one expected next; start a new session.")
    FENCED_STATE_EPOCH = (124, "", "The share coordinator's state has a newer epoch; the sender has been replaced.")
    INVALID_VOTER_KEY = (125, "", "The voter named is not the one the receiver is, by id and directory id.")
    DUPLICATE_VOTER = (126, "", "The node is a voter already.")
    VOTER_NOT_FOUND = (127, "", "No voter of this id and directory id exists.")
    INVALID_REGULAR_EXPRESSION = (128, "", "The regular expression is not valid; it must follow RE2's syntax.")
    REBOOTSTRAP_REQUIRED = (129, "", "The client's metadata is too old to go on with; start again from the bootstrap servers.")
    STREAMS_INVALID_TOPOLOGY = (130, "", "The streams topology sent is not valid; the message says why.")
    STREAMS_INVALID_TOPOLOGY_EPOCH = (131, "", "The streams topology's epoch is not the one the group expects.")
    STREAMS_TOPOLOGY_FENCED = (132, "", "The member runs an older streams topology than the group; upgrade it.")
    SHARE_SESSION_LIMIT_REACHED = (133, "retry", "The broker holds as many share sessions as it may; try again later.")


_BY_CODE: dict[int, ErrorCode] = {int(error): error for error in ErrorCode}


def error_of(code: int) -> ErrorCode | None:
    """The error of this number, or None where this version of the protocol has none."""
    return _BY_CODE.get(code)


def error_name(code: int) -> str:
    """The protocol's name for `code`; `UNKNOWN_ERROR_n` for a number that a newer peer may know."""
    error = _BY_CODE.get(code)
    return error.name if error is not None else f"UNKNOWN_ERROR_{code}"


def error_meaning(code: int) -> str:
    """One sentence about `code`, for people."""
    error = _BY_CODE.get(code)
    if error is not None:
        return error.meaning
    return f"The peer sent error code {code}, which Kafka 4.3 does not define; it may be of a newer version."
