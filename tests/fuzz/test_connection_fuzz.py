"""Hostile connections to the broker's listeners: garbage, cut frames, wrong sizes, slow senders and slow readers.

The node stays up, answers other clients at the same time, and its memory stays within a bound. The first half runs in virtual
time, from fixed seeds; the second on real sockets, against a process whose memory is measured.
"""

import asyncio
import socket
import sys
from collections.abc import Iterator
from random import Random

import pytest
from tests.fuzz.echo_process import EchoProcess
from tests.support.nodes.net_server import EchoServer, FrameClient, hello, produce, reply_to_shake, shake

from ottla.broker.net.settings import NetSettings
from ottla.sim.loop import VirtualLoop
from ottla.sim.net import SimNetwork, Weather
from ottla.wire.headers import encode_request
from ottla.wire.messages.metadata import MetadataRequest

LYING_SIZES = (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\1", b"\0\xff\xff\xff", b"\xff\xff\xff\x7f")


def nonsense(random: Random) -> bytes:
    """Bytes to send: requests, damaged requests, and bytes that are no request."""
    good = [
        hello(),
        shake("x" * random.randint(0, 300)),
        produce("topic", acks=random.choice([0, 1])),
        produce(f"park {random.random()}"),
    ]
    data = bytearray(b"".join(random.choices(good, k=random.randint(1, 5))))
    match random.randrange(7):
        case 0:
            return random.randbytes(random.randint(1, 2000))
        case 1:
            del data[random.randrange(len(data)) :]
        case 2:
            for _ in range(random.randint(1, 5)):
                data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        case 3:
            position = random.randrange(len(data))
            data[position : position + 4] = random.choice(LYING_SIZES)
        case 4:
            data[:4] = random.choice(LYING_SIZES)
        case 5:
            data += (50_000_000).to_bytes(4, "big") + bytes(random.randint(0, 200_000))
        case _:
            pass
    return bytes(data)


@pytest.mark.parametrize("seed", range(60))
def test_hostile_connections_do_not_disturb_a_client(seed: int) -> None:
    random = Random(seed)
    limit = 5_000_000

    async def hostile(network: SimNetwork, port: int, number: int) -> None:
        for _ in range(5):
            client = await FrameClient.connect(network.host(f"hostile-{number}"), "server", port, random.random() < 0.5)
            data = nonsense(random)
            while data and not client.is_over:
                size = random.choice([1, 7, 1000, len(data)])
                client.send(data[:size])
                data = data[size:]
                await asyncio.sleep(random.choice([0, 0.001]))
            await asyncio.sleep(random.choice([0, 0.1]))
            client.stream.close()

    async def whole() -> None:
        network = SimNetwork(random, Weather(pieces_chance=0.5))
        server = EchoServer(network.host("server"), NetSettings(queued_max_request_bytes=limit))
        port = await server.start("server")
        client = await FrameClient.connect(network.host("honest"), "server", port)
        tasks = [asyncio.ensure_future(hostile(network, port, number)) for number in range(5)]
        loop = asyncio.get_running_loop()
        for number in range(100):
            begun_s = loop.time()
            client.send(shake(f"m{number}", number))
            correlation_id, response = reply_to_shake(await client.frame())
            assert (correlation_id, response.mechanisms) == (number, [f"m{number}"])
            assert loop.time() - begun_s < 0.1
            assert server.listeners.memory.used_bytes <= limit + 300_000
        await asyncio.gather(*tasks)
        # While requests wait behind one that is parked, nothing is received, not even the end of the stream.
        while parked := [each for each in server.parked.values() if not each.is_done]:
            for each in parked:
                each.complete(None)
            await asyncio.sleep(1)
        await asyncio.sleep(1)
        assert len(server.listeners.connections) == 1
        assert server.listeners.memory.used_bytes == 0

    VirtualLoop(10_000).run(whole())


# On real sockets

MEMORY_BYTES = 32_000_000
GROWTH_BYTES_MAX = 2 * MEMORY_BYTES + 40_000_000
"""The bound on requests, the same again for decoded requests and allocator overhead, and some for sockets."""

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def process() -> Iterator[EchoProcess]:
    with EchoProcess(MEMORY_BYTES) as running:
        before = running.memory_bytes
        yield running
        assert running.is_alive
        assert running.memory_bytes - before < GROWTH_BYTES_MAX
    assert "Traceback" not in running.log


def connect(process: EchoProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", process.port), timeout=60)


def converse(connection: socket.socket, count: int) -> None:
    """Send a request and read its response, `count` times."""
    stream = connection.makefile("rb")
    for number in range(count):
        connection.sendall(shake(f"m{number}", number))
        size = int.from_bytes(stream.read(4), "big")
        assert reply_to_shake(stream.read(size))[1].mechanisms == [f"m{number}"]


@linux_only
def test_many_large_unfinished_frames_use_bounded_memory(process: EchoProcess) -> None:
    frame = (100_000_000).to_bytes(4, "big") + produce("x")[4:] + bytes(1_000_000)
    hostile = [connect(process) for _ in range(100)]
    for connection in hostile:
        connection.setblocking(False)
        try:
            connection.sendall(frame)
        except BlockingIOError:
            pass  # the server stops reading: that is what is tested
    with connect(process) as honest:
        converse(honest, 200)
    assert process.memory_bytes < MEMORY_BYTES * 2 + 100_000_000
    for connection in hostile:
        connection.close()


@linux_only
def test_request_sent_byte_by_byte_is_answered(process: EchoProcess) -> None:
    with connect(process) as slow, connect(process) as honest:
        slow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in shake("slow", 5):
            slow.sendall(bytes([byte]))
            converse(honest, 1)
        stream = slow.makefile("rb")
        assert reply_to_shake(stream.read(int.from_bytes(stream.read(4), "big")))[0] == 5


@linux_only
def test_clients_that_never_read_use_bounded_memory(process: EchoProcess) -> None:
    ask = shake("x" * 30_000, 1) * 10
    hostile = [connect(process) for _ in range(50)]
    for connection in hostile:
        connection.setblocking(False)
        try:
            while True:
                connection.send(ask)
        except BlockingIOError:
            pass
    with connect(process) as honest:
        converse(honest, 200)
    for connection in hostile:
        connection.close()


@linux_only
def test_arrays_with_a_wrong_size_close_the_connection(process: EchoProcess) -> None:
    whole = b"".join(encode_request(MetadataRequest(topics=[]), 1, 1, "x"))  # type: ignore[arg-type]
    assert whole.endswith(bytes(4))
    with connect(process) as honest:
        for count in (b"\x7f\xff\xff\xff", b"\0\xff\xff\xff"):
            with connect(process) as liar:
                liar.sendall(whole[:-4] + count)
                assert liar.recv(100) == b""
            converse(honest, 10)


@linux_only
def test_large_requests_are_served(process: EchoProcess) -> None:
    """Requests near the memory limit are served, one after the other if necessary."""
    frame = produce("large", 7, padding_bytes=20_000_000)
    for _ in range(3):
        with connect(process) as connection:
            connection.sendall(frame)
            stream = connection.makefile("rb")
            reply = stream.read(int.from_bytes(stream.read(4), "big"))
            assert reply[:4] == b"\0\0\0\7"
