"""Records that are sent to one node with raw requests: what it answers for itself, without a client that goes elsewhere."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from tests.support.logs.batches import make_batch
from tests.support.peers.raw_client import ConnectionClosed, RawClient

from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

VERSION = 9
ALL_IN_SYNC = -1


class DirectSend:
    """One Produce request, of one record with acks=all, to the node at `bootstrap`; its answer is awaited in a thread.

    `code` is the error code of the answer; None if there was none: the connection ended, or the time was over.
    """

    def __init__(self, bootstrap: str, topic: str, partition: int, value: str, timeout_ms: int = 60_000) -> None:
        self.value = value
        self.code: int | None = None
        self._client = RawClient.to(bootstrap, timeout_s=120)
        batch = PartitionProduceData(index=partition, records=bytes(make_batch(value.encode())))
        self._request = ProduceRequest(
            acks=ALL_IN_SYNC, timeout_ms=timeout_ms, topic_data=[TopicProduceData(name=topic, partition_data=[batch])]
        )
        self._client.send(self._request, VERSION)
        self._thread = threading.Thread(target=self._receive)
        self._thread.start()

    def _receive(self) -> None:
        with suppress(ConnectionClosed, TimeoutError, OSError):
            answer = self._client.receive(ProduceRequest.KEY, VERSION)
            self.code = answer.responses[0].partition_responses[0].error_code

    @property
    def is_answered(self) -> bool:
        return not self._thread.is_alive()

    def end(self, timeout_s: float = 90) -> int | None:
        """Wait for the answer, and close the connection."""
        self._thread.join(timeout_s)
        with suppress(OSError):
            self._client._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._client.close()
        return self.code
