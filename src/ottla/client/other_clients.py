"""Names of confluent-kafka, kafka-python and aiokafka, and what they are here: for the errors of programs that move in.

A method that another client has is an attribute here that raises `AttributeError` with a sentence, so `hasattr` stays False.
Descriptors do that at no cost: a `__getattr__` on a face would slow down every attribute of it. A keyword argument that another
client has raises `TypeError` with a sentence, for methods that are not called per record.

The pages docs/from-*.md show the same side by side.
"""

from __future__ import annotations

import functools
import sys
from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_NO_POLL = "drop it: deliveries are reported on a thread of the producer's own, without poll(). flush() waits for all of them"
_START = (
    "drop it: a client is ready when it is made. Write `async with aio.Producer(…) as producer:`, or call close() at the end"
)
_START_CONSUMER = _START.replace("Producer", "Consumer").replace("producer", "consumer")
_LOOP = "poll() returns a list, which is empty after the timeout; `for record in consumer:` goes on without end"

PRODUCER: dict[str, str] = {
    # confluent-kafka
    "produce": "`produce` is `send` here: producer.send(topic, value, key=…, on_delivery=…), with on_delivery(metadata, error)",
    "produce_batch": "`produce_batch` is `send_many` here: producer.send_many(topic, values, keys)",
    "poll": f"`poll` of a producer is not needed here; {_NO_POLL}",
    "list_topics": "a producer has no `list_topics` here: ask Admin(…).list_topics(), or producer.partitions_for(topic)",
    "purge": "`purge` is not there: close(timeout=0) gives up what is not sent",
    "set_sasl_credentials": "pass sasl_plain_username and sasl_plain_password when the producer is made",
    # kafka-python and aiokafka
    "send_and_wait": "`send_and_wait` is send() and its result here: producer.send(topic, value).result(); with asyncio "
    "`await (await producer.send(topic, value))`",
    "bootstrap_connected": "drop it: clients connect when they need to, and errors say what is missing",
    "start": _START,
    "stop": "`stop` is `close` here: await producer.close()",
    "create_batch": "`create_batch` is not there: send_many() makes batches of lists and Arrow tables by itself",
    "send_batch": "`send_batch` is `send_many` here: await producer.send_many(topic, values, keys)",
}
"""A producer's methods elsewhere → what to write here."""

CONSUMER: dict[str, str] = {
    # confluent-kafka
    "consume": f"`consume` is `poll` here: consumer.poll(timeout, max_records=n). {_LOOP}",
    "store_offsets": "`store_offsets` is not there: set enable_auto_commit=False, and commit(record) what is done",
    "get_watermark_offsets": "`get_watermark_offsets` is beginning_offsets(partition) and end_offsets(partition) here",
    "consumer_group_metadata": "`consumer_group_metadata` is `group_metadata` here",
    "incremental_assign": "drop it: the group assigns by itself; assign(*partitions) takes exactly these",
    "incremental_unassign": "drop it: the group revokes by itself; assign(*partitions) takes exactly these",
    "unassign": "`unassign` is `unsubscribe` here",
    "memberid": "`memberid` is group_metadata().member_id here",
    "set_sasl_credentials": "pass sasl_plain_username and sasl_plain_password when the consumer is made",
    # kafka-python and aiokafka
    "getmany": "`getmany` is `batches` here: await consumer.batches(timeout, max_records=n), a list for each partition",
    "getone": "`getone` is `poll` here: await consumer.poll(None, max_records=1), or `async for record in consumer:`",
    "start": _START_CONSUMER,
    "stop": "`stop` is `close` here: await consumer.close()",
    "topics": "`topics` is `list_topics` here: a mapping of names to numbers of partitions",
    "partitions_for_topic": "`partitions_for_topic` is `partitions_for` here: a list of PartitionInfo",
    "highwater": "`highwater` is end_offsets(partition) here; lag(partition) is how far the consumer is behind it",
    "last_stable_offset": "`last_stable_offset` is end_offsets(partition) here, with isolation_level='read_committed'",
    "seek_to_committed": "`seek_to_committed` is consumer.seek(partition, consumer.committed(partition)) here",
    "bootstrap_connected": "drop it: clients connect when they need to, and errors say what is missing",
}
"""A consumer's methods elsewhere → what to write here."""

ADMIN: dict[str, str] = {
    # confluent-kafka
    "poll": "drop it: calls return when they are done",
    "incremental_alter_configs": "`incremental_alter_configs` is `alter_configs` here: only the settings that are named change",
    "list_consumer_group": "`list_consumer_group` is `list_consumer_groups` here",
    "describe_user_scram": "`describe_user_scram` is `describe_user_scram_credentials` here",
    # kafka-python and aiokafka
    "start": "drop it: a client is ready when it is made. Write `async with aio.Admin(…) as admin:`",
    "describe_groups": "`describe_groups` is `describe_consumer_groups` here, or `describe_classic_groups`",
    "alter_group_offsets": "`alter_group_offsets` is `alter_consumer_group_offsets` here",
    "remove_group_members": "`remove_group_members` is `remove_members` here",
    "list_partition_offsets": "`list_partition_offsets` is `list_offsets` here",
    "reset_configs": "`reset_configs` is alter_configs({resource: {name: None}}) here",
    "wait_for_topics": "drop it: create_topics() returns when the topics are there",
    "api_versions": "no method does this: `ottla brokers api-versions` shows the versions that brokers serve",
    "delete_groups": "`delete_groups` is `delete_consumer_groups` here",
    "list_group_offsets": "`list_group_offsets` is `list_consumer_group_offsets` here",
    "delete_group_offsets": "`delete_group_offsets` is `delete_consumer_group_offsets` here",
    "perform_leader_election": "`perform_leader_election` is `elect_leaders` here",
    "get_topic_metadata": "`get_topic_metadata` is `describe_topics` here",
}
"""An admin client's methods elsewhere → what to write here."""

_KINDS = {"Producer": PRODUCER, "Consumer": CONSUMER, "Admin": ADMIN}

_SECONDS = "`{}` is `timeout` here, in seconds"
_TIMEOUT_MS = _SECONDS.format("timeout_ms")
_OF_THE_CLIENT = "calls of an Admin take at most default.api.timeout.ms; admin.with_timeout(seconds) has another limit"
_PATTERN = "`pattern` is the first argument here, compiled: consumer.subscribe(re.compile(…))"

ARGUMENTS: dict[str, dict[str, dict[str, str]]] = {
    "Producer": {
        "flush": {"timeout_ms": _TIMEOUT_MS},
        "close": {"timeout_ms": _TIMEOUT_MS},
    },
    "Consumer": {
        "poll": {
            "timeout_ms": f"{_TIMEOUT_MS}; batches(timeout) returns a list for each partition, as kafka-python's poll()",
            "num_messages": "`num_messages` is `max_records` here",
            "update_offsets": "`update_offsets` is not there: seek() goes back to a record",
        },
        "batches": {"timeout_ms": _TIMEOUT_MS},
        "subscribe": {
            "pattern": _PATTERN,
            "on_assign": "`on_assign` is `on_assigned` here: a function of the partitions, without the consumer",
            "on_revoke": "`on_revoke` is `on_revoked` here: a function of the partitions, without the consumer",
        },
        "commit": {
            "message": "`message` is not there: pass the record itself, consumer.commit(record)",
            "asynchronous": "`asynchronous` is not there: commit() waits until the offsets are stored, commit_async() does not",
            "timeout_ms": _TIMEOUT_MS,
        },
        "close": {
            "autocommit": "`autocommit` is not there: with enable_auto_commit close() commits what earlier polls handed out",
            "timeout_ms": _TIMEOUT_MS,
        },
    },
    "Admin": {
        name: {
            argument: f"`{argument}` is not there: {_OF_THE_CLIENT}"
            for argument in ("operation_timeout", "request_timeout", "timeout_ms")
        }
        for name in ("create_topics", "delete_topics", "create_partitions", "alter_configs", "describe_configs", "list_topics")
    },
}
"""Client → method → keyword arguments elsewhere → what to write here."""
ARGUMENTS["Admin"]["create_topics"]["new_topics"] = "`new_topics` is the first argument here, `topics`"

NEW_TOPIC: dict[str, str] = {
    "num_partitions": "`num_partitions` is `partitions` here",
    "replica_assignment": "`replica_assignment` is `replicas` here: a list of brokers for each partition",
    "replica_assignments": "`replica_assignments` is `replicas` here: a list of brokers for each partition",
    "config": "`config` is `configs` here",
    "topic_configs": "`topic_configs` is `configs` here",
}
"""Arguments of NewTopic elsewhere → what to write here."""

_POSITIONAL = {
    "Consumer": "the first argument is where the brokers are. Topics are subscribed to: "
    'consumer = Consumer("localhost:9092", group_id=…), then consumer.subscribe(["orders"])',
    "Producer": 'the first argument is where the brokers are already: Producer("localhost:9092")',
    "Admin": 'the first argument is where the brokers are already: Admin("localhost:9092")',
}

_AIO = "from ottla import aio, then aio.{}(…)"
MODULE: dict[str, str] = {
    "KafkaProducer": "`KafkaProducer` is `Producer` here: from ottla import Producer",
    "KafkaConsumer": "`KafkaConsumer` is `Consumer` here: from ottla import Consumer",
    "KafkaAdminClient": "`KafkaAdminClient` is `Admin` here: from ottla import Admin",
    "KafkaClient": "`KafkaClient` is `Admin` here, or Producer and Consumer: from ottla import Admin",
    "AdminClient": "`AdminClient` is `Admin` here: from ottla import Admin",
    "SerializingProducer": "`SerializingProducer` is `Producer` here, with key_serializer and value_serializer",
    "DeserializingConsumer": "`DeserializingConsumer` is `Consumer` here, with key_deserializer and value_deserializer",
    "AIOProducer": f"`AIOProducer` is `aio.Producer` here: {_AIO.format('Producer')}",
    "AIOConsumer": f"`AIOConsumer` is `aio.Consumer` here: {_AIO.format('Consumer')}",
    "AIOKafkaProducer": f"`AIOKafkaProducer` is `aio.Producer` here: {_AIO.format('Producer')}",
    "AIOKafkaConsumer": f"`AIOKafkaConsumer` is `aio.Consumer` here: {_AIO.format('Consumer')}",
    "AIOKafkaClient": f"`AIOKafkaClient` is `aio.Admin` here: {_AIO.format('Admin')}",
    "AIOKafkaAdminClient": f"`AIOKafkaAdminClient` is `aio.Admin` here: {_AIO.format('Admin')}",
    "KafkaError": "`KafkaError` is in ottla.errors: from ottla.errors import KafkaError",
    "KafkaException": "`KafkaException` is `KafkaError` here, and raised: from ottla.errors import KafkaError",
    "ConsumerRebalanceListener": "`ConsumerRebalanceListener` is `RebalanceListener` here: from ottla import RebalanceListener",
    "Message": "`Message` is `ConsumerRecord` here, whose topic, key and value are attributes, not methods",
    "OFFSET_BEGINNING": "`OFFSET_BEGINNING` is seek_to_beginning() of a consumer here, or auto_offset_reset='earliest'",
    "OFFSET_END": "`OFFSET_END` is seek_to_end() of a consumer here, or auto_offset_reset='latest'",
    "OFFSET_STORED": "`OFFSET_STORED` is what consumer.committed(partition) returns here",
    "TopicCollection": "`TopicCollection` is a list of names here: admin.describe_topics([…])",
}
"""What one imports from other clients → what to import here."""


_IS_COROUTINE = 0x80
"""`inspect.CO_COROUTINE`: importing `inspect` would double the time that importing `ottla.Producer` takes."""
_ASYNCIO_HOT = ("poll", "batches")
"""Left alone in the asyncio faces, where a wrapper costs another coroutine. No other asyncio client has them."""


class _Elsewhere:
    """An attribute that other clients have: raises `AttributeError` with a sentence, of a class and of its objects."""

    __slots__ = ("_sentence",)

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    def __get__(self, instance: object, owner: type | None = None) -> NoReturn:
        raise AttributeError(self._sentence)


def explain_others(cls: type) -> None:
    """Give a face of ours the names that other clients have. What it has itself stays; subclasses of users are left alone."""
    if not cls.__module__.startswith("ottla.client.") or cls.__name__ not in _KINDS:
        return
    for name, sentence in _KINDS[cls.__name__].items():
        if not any(name in base.__dict__ for base in cls.__mro__):
            setattr(cls, name, _Elsewhere(sentence))
    is_asyncio = cls.__module__.endswith((".asynchronous", ".aio"))
    for name, arguments in ARGUMENTS[cls.__name__].items():
        if not (is_asyncio and name in _ASYNCIO_HOT):
            setattr(cls, name, explaining_arguments(getattr(cls, name), arguments, f"{cls.__name__}.{name}"))
    make = cls.__init__  # type: ignore[misc]  # of the class itself, not of an object

    @functools.wraps(make)
    def __init__(self: object, *args: Any, **kwargs: Any) -> None:
        if args and "bootstrap_servers" in kwargs:
            raise TypeError(f"{cls.__name__}({args[0]!r}, bootstrap_servers=…): {_POSITIONAL[cls.__name__]}")
        make(self, *args, **kwargs)

    cls.__init__ = __init__  # type: ignore[misc]  # as above


class FaceType(ABCMeta):
    """The class of the faces: `dir()` leaves the names of other clients out, so that a mock of a face has none of them.

    It is an `ABCMeta`, so that programs can derive from a face and from abstract base classes.
    """

    def __dir__(cls) -> list[str]:
        return own_names(super().__dir__(), cls)


def own_names(names: Iterable[str], cls: type) -> list[str]:
    """`names` without those of other clients: what a face shows in `dir()`, and so in completions."""
    found = {name: next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), None) for name in names}
    return sorted(name for name, value in found.items() if not isinstance(value, _Elsewhere))


def explaining_arguments(call: F, arguments: Mapping[str, str], shown: str) -> F:
    """`call`, which users know as `shown`, with a sentence for keyword arguments that other clients have."""

    names = frozenset(arguments)

    def mistake(kwargs: Mapping[str, object]) -> TypeError:
        return TypeError(f"{shown}(): {next(arguments[name] for name in kwargs if name in arguments)}")

    if getattr(call, "__code__", None) is not None and call.__code__.co_flags & _IS_COROUTINE:

        @functools.wraps(call)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            if kwargs and not names.isdisjoint(kwargs):
                raise mistake(kwargs)
            return await call(*args, **kwargs)

        return awaited  # type: ignore[return-value]  # the same signature: it only passes its arguments on

    @functools.wraps(call)
    def called(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not names.isdisjoint(kwargs):
            raise mistake(kwargs)
        return call(*args, **kwargs)

    return called  # type: ignore[return-value]  # as above


def missing_name(module: str, name: str) -> Exception:
    """What the `__getattr__` of a module raises for a name that it does not have.

    `from ottla import KafkaProducer` replaces the text of an `AttributeError` by its own, so there it is an `ImportError`.
    """
    if name not in MODULE:
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    caller = sys._getframe(2)
    import dis  # late: only for a mistake

    if dis.opname[caller.f_code.co_code[caller.f_lasti]] == "IMPORT_FROM":
        return ImportError(MODULE[name], name=name)
    return AttributeError(MODULE[name])
