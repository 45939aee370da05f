"""Log directories, and replicas that move between them."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.admin.log_dirs import Replica
from ottla.errors import KafkaError, LogDirNotFoundError
from ottla.ids import TopicPartition


def test_directories_and_replicas_are_described(
    admin: Any, name: str, create: Callable[..., Any], produce: Callable[..., None]
) -> None:
    create({name: 2})
    produce(name, b"x" * 1000)
    directories = admin.describe_log_dirs()[1]
    assert len(directories) == 2
    assert all(each.error is None and each.total_bytes > each.usable_bytes > 0 for each in directories.values())
    found = {key: info for each in directories.values() for key, info in each.replicas.items() if key.topic == name}
    assert found[TopicPartition(name, 0)].size_bytes > 1000
    assert found[TopicPartition(name, 1)] == (0, 0, False)
    only = admin.describe_log_dirs([1], wanted_partitions=[(name, 1)])[1]
    assert [key for each in only.values() for key in each.replicas] == [TopicPartition(name, 1)]


def test_replica_is_moved_to_another_directory(
    admin: Any, name: str, create: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    create([name])
    replica = Replica(name, 0, 1)
    # Apache Kafka answers without the replica's lag until the broker has opened its log.
    eventually(lambda: admin.describe_replica_log_dirs([replica])[replica][1:], (0, None, -1))
    before = admin.describe_replica_log_dirs([replica])[replica]
    other = next(path for path in admin.describe_log_dirs()[1] if path != before.path)
    results = admin.alter_replica_log_dirs({replica: other, ("missing-topic", 0, 1): "/no/such/directory"})
    assert results[replica] is None
    assert isinstance(results.errors["missing-topic", 0, 1], LogDirNotFoundError)
    eventually(lambda: admin.describe_replica_log_dirs([replica])[replica], (other, 0, None, -1))


def test_broker_that_does_not_exist_is_an_error_of_its_items(open_admin: Callable[..., Any], server: Any) -> None:
    admin = open_admin(server.bootstrap, default_api_timeout_ms=2_000, request_timeout_ms=1_000)
    results = admin.describe_log_dirs([1, 77])
    assert len(results[1]) == 2
    assert isinstance(results.errors[77], KafkaError)
    replica = Replica("a", 0, 77)
    assert isinstance(admin.describe_replica_log_dirs([replica]).errors[replica], KafkaError)
    assert isinstance(admin.alter_replica_log_dirs({replica: "/x"}).errors[replica], KafkaError)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda admin: admin.describe_log_dirs([-1]), ValueError, "brokers is -1"),
        (lambda admin: admin.describe_log_dirs(1), TypeError, "brokers must be a list"),
        (lambda admin: admin.describe_replica_log_dirs([("a", 0)]), TypeError, "replicas: a replica is Replica"),
        (lambda admin: admin.alter_replica_log_dirs({("a", 0, 1): ""}), ValueError, "paths.* must not be empty"),
    ],
)
def test_bad_argument_is_named(scripted: Any, call: Callable[[Any], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call(scripted)
