"""Messages of tasks survive the way to the driver."""

from __future__ import annotations

from pyspark.serializers import CloudPickleSerializer

from ottla.spark.sink.protocol import HeldTransaction, TaskResult
from ottla.spark.sink.writers import Held


def test_a_message_is_read_as_it_was_sent() -> None:
    message = Held(TaskResult("q", "run", 7, 0, 5, HeldTransaction("id", 4000, 1, 0, 5), 12))
    serializer = CloudPickleSerializer()
    assert serializer.loads(serializer.dumps(message)) == message
