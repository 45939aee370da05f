"""The load programs: parsing of outputs and replies, and correct counts."""

import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest
from bench.side_by_side import consume, latency
from bench.side_by_side.errors import BadReply, LoadFailed
from bench.side_by_side.loads import frames
from bench.side_by_side.loads.probe import Caller, Load
from bench.side_by_side.produce import parse_rate

STALL_S = 0.3


class Answerer:
    """A server that answers each frame with an empty one, and stalls once on request."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.stall_after = -1
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        receiver = frames.Receiver(connection, 1 << 10)
        try:
            for number in range(1 << 30):
                receiver.frame()
                if number == self.stall_after:
                    time.sleep(STALL_S)
                connection.sendall(struct.pack(">ii", 4, 7))
        except (BadReply, OSError):
            connection.close()

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def answerer() -> Iterator[Answerer]:
    server = Answerer()
    yield server
    server.close()


def callers(answerer: Answerer, count: int) -> list[Caller]:
    return [Caller(frames.connect(answerer.address), struct.pack(">i", 3) + b"abc") for _ in range(count)]


def nothing_wrong(reply: frames.Reply) -> None:
    assert reply == struct.pack(">i", 7)


def test_rate_is_that_of_the_whole_run() -> None:
    output = (
        "1000 records sent, 200.0 records/sec (0.19 MB/sec), 3.0 ms avg latency, 9.0 ms max latency.\n"
        "5000 records sent, 999.1 records/sec (95.37 MB/sec), 2.05 ms avg latency, 10.0 ms max latency, 2 ms 50th, 5 ms 95th.\n"
    )
    assert parse_rate(output) == 95.37
    with pytest.raises(LoadFailed, match="no summary"):
        parse_rate("org.apache.kafka.common.errors.TimeoutException\n")
    with pytest.raises(LoadFailed, match="wrote nothing"):
        parse_rate("0 records sent, 0.0 records/sec (0.00 MB/sec), 0.00 ms avg latency, 0.00 ms max latency.\n")


def test_fetch_rate_excludes_the_time_to_join() -> None:
    output = (
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms,"
        " fetch.MB.sec, fetch.nMsg.sec\n"
        "2026-01-02 10:00:00:000, 2026-01-02 10:00:04:000, 953.6, 238.4, 1000000, 250000.0, 500, 3500, 272.4784, 285714.3\n"
    )
    assert consume.parse_rate(output, 1_000_000) == 272.4784
    with pytest.raises(LoadFailed, match="did not read"):
        consume.parse_rate(output, 1_000_001)
    with pytest.raises(LoadFailed, match="did not read"):
        consume.parse_rate("org.apache.kafka.common.errors.TimeoutException\n", 1)


def test_mean_of_the_latency_tool() -> None:
    output = "0\t3.25\n1000\t0.66\nAvg latency: 0.6912 ms\nPercentiles: 50th = 0, 99th = 1, 99.9th = 4\n"
    assert latency.parse_mean(output) == 0.6912
    with pytest.raises(LoadFailed, match="no average"):
        latency.parse_mean("org.apache.kafka.common.errors.TimeoutException\n")


def test_stall_delays_all_requests_that_were_due(answerer: Answerer) -> None:
    answerer.stall_after = 20
    with Load(callers(answerer, 1), nothing_wrong) as load:
        end = time.perf_counter() + 1.5
        samples = load.paced(100, lambda: time.perf_counter() > end)
    assert len(samples) >= 125, "requests become due while the server stalls"
    late = [took_s for _, took_s in samples if took_s > STALL_S / 10]
    assert len(late) >= 15, "not only the one request that the server was busy with"
