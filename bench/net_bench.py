"""CPU cost of the network layer: sockets, frames, dispatch and replies, with handlers that do nothing.

    python -m bench.net_bench

One process serves; another sends requests over loopback with raw sockets. The result is the server's CPU time per request and
per gigabyte: on a machine with two cores, throughput depends as much on the client process.
"""

import asyncio
import os
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from ottla.broker.net.listeners import Listeners
from ottla.broker.net.settings import NetSettings
from ottla.broker.requests.pipeline import HandlerModule, RequestPipeline
from ottla.broker.services import Services
from ottla.config.listeners import Listener
from ottla.env import OpenMode, World
from ottla.env.disk import File
from ottla.env.real import RealDisk, RealNetwork
from ottla.wire.apis import ApiKey
from ottla.wire.base import Message
from ottla.wire.headers import encode_request
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

LARGE_BYTES = 1_000_000


@dataclass(frozen=True)
class Load:
    """`count` requests on one connection, `depth` of them in flight at a time."""

    name: str
    request: Message
    version: int
    count: int
    depth: int


def loads() -> list[Load]:
    small = SaslHandshakeRequest(mechanism="x" * 60)
    records = PartitionProduceData(index=0, records=bytes(LARGE_BYTES))
    large = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="topic", partition_data=[records])])
    return [
        Load("100 B in and out, one at a time", small, 1, 40_000, 1),
        Load("100 B in and out, five at a time", small, 1, 100_000, 5),
        Load("1 MB in, five at a time", large, 9, 3_000, 5),
        Load("1 MB out of a file", FetchRequest(), 11, 3_000, 1),
    ]


class DoingNothing:
    """Handlers that answer at once, so that only the network layer costs time."""

    def __init__(self, file: File) -> None:
        self._file = file
        partition = PartitionProduceResponse(index=0)
        self._produced = ProduceResponse(responses=[TopicProduceResponse(name="topic", partition_responses=[partition])])

    def load(self, api_key: int) -> HandlerModule | None:
        handlers: dict[int, Any] = {
            ApiKey.PRODUCE: lambda context, request: self._produced,
            ApiKey.FETCH: self._fetch,
            ApiKey.SASL_HANDSHAKE: lambda context, request: SaslHandshakeResponse(mechanisms=[request.mechanism]),
        }
        return cast(HandlerModule, SimpleNamespace(handle=handlers[api_key], refuse=None))

    def _fetch(self, context: object, request: object) -> FetchResponse:
        partition = PartitionData(records=self._file.range(0, LARGE_BYTES))
        return FetchResponse(responses=[FetchableTopicResponse(topic="topic", partitions=[partition])])


def ask(port: int, load: Load) -> None:
    """The client process."""
    frame = b"".join(encode_request(load.request, load.version, 1, "bench"))  # type: ignore[arg-type]  # requests here hold no file range
    buffer = memoryview(bytearray(4 << 20))
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(frame)
        reply_bytes = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
        left = reply_bytes
        for _ in range(load.count // load.depth):
            while left:
                left -= connection.recv_into(buffer, min(left, len(buffer)))
            connection.sendall(frame * load.depth)
            left = (reply_bytes + 4) * load.depth
        while left:
            left -= connection.recv_into(buffer, min(left, len(buffer)))


async def serve(load: Load, file: File) -> str:
    pipeline = RequestPipeline(cast(Services, SimpleNamespace()), DoingNothing(file).load)
    listeners = Listeners(cast(World, SimpleNamespace(network=RealNetwork())), NetSettings(), pipeline)
    bound = await listeners.open([Listener("BENCH", "127.0.0.1", 0, "PLAINTEXT")])
    listeners.serve()
    child = os.fork()
    if child == 0:
        ask(bound["BENCH"][1], load)
        os._exit(0)
    counters = pipeline.counters
    while not counters.connections.accepted:
        await asyncio.sleep(0.001)
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    while counters.connections.open:
        await asyncio.sleep(0.01)
    wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    os.waitpid(child, 0)
    await listeners.close()
    (api,) = counters.apis.values()
    moved = api.bytes_in + api.bytes_out
    return (
        f"{load.name:34} {api.requests / wall_s:10,.0f}/s {moved / wall_s / 1e6:8,.0f} MB/s "
        f"{cpu_s / api.requests * 1e6:8.1f} µs CPU each {cpu_s / moved * 1e9:8.2f} s CPU per GB"
    )


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder:
        file = RealDisk().open(str(Path(folder) / "records"), OpenMode.CREATE)
        file.append(os.urandom(LARGE_BYTES))
        for load in loads():
            print(asyncio.run(serve(load, file)))


if __name__ == "__main__":
    main()
