"""Requests about groups and transactions whose fields are each plausible, and wrong together.

Random ids are refused at the first check. `Insider` learns ids, epochs and generations from responses, and uses them at the
wrong time, in the wrong group and in the wrong order. It depends only on its `Random` and on the responses.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from tests.support.hostile.hostile_requests import random_message
from tests.support.logs.batches import make_batch

from ottla.wire.apis import APIS, ApiKey
from ottla.wire.base import EncodeError, Struct
from ottla.wire.binding import binding_of
from ottla.wire.codec import encode
from ottla.wire.schema.model import StructSchema

COORDINATOR_APIS = (
    *(ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT) * 2,
    *(ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_DELETE, ApiKey.TXN_OFFSET_COMMIT, ApiKey.FIND_COORDINATOR),
    *(ApiKey.LIST_GROUPS, ApiKey.DESCRIBE_GROUPS, ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.DELETE_GROUPS),
    *(ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN) * 2,
    *(ApiKey.WRITE_TXN_MARKERS, ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.DESCRIBE_PRODUCERS),
    ApiKey.PRODUCE,
)
GROUPS = ("g", "h", "of both")
PRODUCERS = ("p", "q")
TOPICS = ("one", "two")
_SUBSCRIPTION = b"\0\1" + b"\0\0\0\1" + b"\0\3one" + b"\xff\xff\xff\xff" + b"\0\0\0\0"
"""The subscription of a classic consumer: topic "one"."""


class Insider:
    """Makes requests, and learns from their responses."""

    def __init__(self, random: Random, topic_ids: Sequence[bytes]) -> None:
        self._random = random
        self._topic_ids = topic_ids
        self._members = ["", "made-up"]
        self._producers = [(-1, -1), (0, 0)]
        self._epochs = [-2, -1, 0, 1]

    def request(self) -> tuple[int, int, Any]:
        """An API, a version of it, and a request."""
        random = self._random
        while True:
            api_key = random.choice(COORDINATOR_APIS)
            version = random.randint(APIS[api_key].oldest, APIS[api_key].advertised()[1])
            message = random_message(random, api_key, version)
            if api_key == ApiKey.PRODUCE:
                message.acks = -1  # with acks=0 there is no response to wait for
            self._make_plausible(message, binding_of(message.__class__).schema.root, version, random.choice(self._producers))
            try:
                encode(message, version)
            except EncodeError:
                continue  # null where this version has no null
            return api_key, version, message

    def _make_plausible(self, struct: Struct, schema: StructSchema, version: int, producer: tuple[int, int]) -> None:
        """Replace most random fields with values that were valid once."""
        for field in schema.fields:
            if version not in field.versions:
                continue
            value = getattr(struct, field.attribute)
            if field.struct is not None and field.is_array:
                for each in value or ():
                    self._make_plausible(each, field.struct, version, producer)
            elif field.struct is None and (field.attribute == "coordinator_epoch" or self._random.random() < 0.95):
                setattr(struct, field.attribute, self._plausible(field.attribute, value, producer))

    def _plausible(self, name: str, value: Any, producer: tuple[int, int]) -> Any:
        random = self._random
        match name.removeprefix("v3_and_below_"):
            case "group_id" | "key":
                return random.choice(GROUPS)
            case "groups" | "groups_names" | "group_ids" | "coordinator_keys":
                return list(random.choices(GROUPS, k=2))
            case "transactional_id":
                return random.choice(PRODUCERS)
            case "transactional_ids":
                return list(PRODUCERS)
            case "member_id":
                return random.choice(self._members[-8:])
            case "group_instance_id" | "instance_id":
                return random.choice((None, None, "static-1", "static-2"))
            case "generation_id" | "member_epoch" | "generation_id_or_member_epoch":
                return random.choice(self._epochs[-8:])
            case "producer_id":
                return producer[0]
            case "producer_epoch":
                return max(-1, min(32767, producer[1] + random.choice((0, 0, 0, 0, -1, 1))))
            case "session_timeout_ms":
                return 6000
            case "rebalance_timeout_ms" | "transaction_timeout_ms":
                return random.choice((1, 10, 300))
            case "server_assignor":
                return random.choice((None, "uniform", "range"))
            case "protocol_type":
                return "consumer"
            case "metadata" | "assignment":
                return _SUBSCRIPTION if name == "metadata" and isinstance(value, bytes) else value
            case "name" | "topic" | "subscribed_topic_regex":
                return random.choice((*TOPICS, "range")) if isinstance(value, str) else value
            case "subscribed_topic_names":
                return random.choice((None, ["one"], ["one", "two", "absent"]))
            case "topic_id":
                return random.choice(self._topic_ids)
            case "partition_index" | "index":
                return random.choice((0, 1, 2))
            case "partitions" | "partition_indexes":
                return random.choice(([0], [0, 1], [2, 2, 9])) if value and isinstance(value[0], int) else value
            case "coordinator_epoch":
                return 0  # as in Kafka, a higher one would stop the coordinator from ending this producer's transaction
            case "records":
                batch = make_batch(b"v", producer=(*producer, 0)) if producer[0] >= 0 else make_batch(b"v")
                batch[22] |= 0x10 if producer[0] >= 0 else 0
                return bytes(batch)
            case _:
                return value

    def learn(self, api_key: int, response: Any) -> None:
        """Remember the ids and epochs of a response."""
        member_id = getattr(response, "member_id", None)
        if member_id:
            self._members.append(member_id)
        for name in ("generation_id", "member_epoch"):
            if getattr(response, name, -1) > 0:
                self._epochs.append(getattr(response, name))
        if api_key in (ApiKey.INIT_PRODUCER_ID, ApiKey.END_TXN) and getattr(response, "producer_id", -1) >= 0:
            self._producers = [*self._producers[-5:], (response.producer_id, response.producer_epoch)]
