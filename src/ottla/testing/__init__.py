"""A Kafka broker for tests: starts in a fraction of a second, in the test's process or a child process, and can inject faults.

    from ottla.testing import Broker

    with Broker() as broker:
        broker.create_topic("orders", partitions=3)
        ...                                  # any Kafka client, at broker.bootstrap_servers
        records = broker.await_records("orders", 10)

`Broker(security=True)` is secured by TLS and logins. `Cluster(nodes=3)` is a cluster of several nodes, which a test can kill,
pause and cut off.

With pytest no import is needed: once Ottla is installed, there are the fixtures `kafka_broker` (a new broker for each test),
`kafka_session_broker` (one broker for all tests) and `kafka_cluster` (a new cluster for each test).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.errors import KafkaError
    from ottla.testing.aio import AsyncBroker
    from ottla.testing.broker import Broker
    from ottla.testing.cluster.cluster import Cluster
    from ottla.testing.cluster.node import ClusterNode, Cut, Pause
    from ottla.testing.errors import BrokerFailed, NotRunning, TimedOut
    from ottla.testing.faults import Fault, Faults
    from ottla.testing.records import Record
    from ottla.testing.security import Security

__all__ = [
    "AsyncBroker",
    "Broker",
    "BrokerFailed",
    "Cluster",
    "ClusterNode",
    "Cut",
    "Fault",
    "Faults",
    "KafkaError",
    "NotRunning",
    "Pause",
    "Record",
    "Security",
    "TimedOut",
]

_HOMES = {
    "AsyncBroker": "ottla.testing.aio",
    "Broker": "ottla.testing.broker",
    "BrokerFailed": "ottla.testing.errors",
    "Cluster": "ottla.testing.cluster.cluster",
    "ClusterNode": "ottla.testing.cluster.node",
    "Cut": "ottla.testing.cluster.node",
    "Fault": "ottla.testing.faults",
    "Faults": "ottla.testing.faults",
    "KafkaError": "ottla.errors",
    "NotRunning": "ottla.testing.errors",
    "Pause": "ottla.testing.cluster.node",
    "Record": "ottla.testing.records",
    "Security": "ottla.testing.security",
    "TimedOut": "ottla.testing.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
