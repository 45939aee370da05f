"""The asyncio clients: `aio.Producer`, `aio.Consumer`, `aio.Admin`, and `aio.Worker`. They are loaded when they are first used.

from ottla import aio

async with aio.Producer("localhost:9092") as producer:
    delivery = await producer.send("events", b"hello")
    await delivery
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.admin.aio import Admin
    from ottla.client.consumer.asynchronous import Consumer
    from ottla.client.producer.asynchronous import Producer
    from ottla.worker.asynchronous import Worker

__all__ = ["Admin", "Consumer", "Producer", "Worker"]

_HOMES = {
    "Admin": "ottla.client.admin.aio",
    "Consumer": "ottla.client.consumer.asynchronous",
    "Producer": "ottla.client.producer.asynchronous",
    "Worker": "ottla.worker.asynchronous",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        from ottla.client.other_clients import missing_name

        raise missing_name(__name__, name)
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
