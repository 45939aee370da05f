"""The proxy before brokers: what it carries, loses, freezes and cuts."""

import socket
import threading
from collections.abc import Iterator

import pytest
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.proxy import Proxy


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """A proxy before a server that sends back what it gets, and keeps it in `seen`."""
    with socket.create_server(("127.0.0.1", 0)) as listener, Proxy() as running:
        running.target = listener.getsockname()[1]

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=echo, args=(connection,), daemon=True).start()

        def echo(connection: socket.socket) -> None:
            with connection:
                while data := connection.recv(100):
                    seen.append(data)
                    seen_something.set()
                    connection.sendall(data)

        seen.clear()
        seen_something.clear()
        threading.Thread(target=serve, daemon=True).start()
        yield running
        listener.shutdown(socket.SHUT_RDWR)


seen: list[bytes] = []
seen_something = threading.Event()


def connect(proxy: Proxy, timeout_s: float = HANG_S) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=timeout_s)


def exchange(connection: socket.socket, data: bytes) -> bytes:
    connection.sendall(data)
    return connection.recv(100)


def test_it_carries_both_ways_and_cuts(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        assert exchange(connection, b"a") == b"a"
        proxy.cut()
        assert connection.recv(100) == b""


def test_lost_answers_were_requests_that_arrived(proxy: Proxy) -> None:
    with connect(proxy) as connection, connect(proxy) as later:
        assert exchange(connection, b"a") == b"a"
        proxy.lose_answers()
        seen_something.clear()
        connection.sendall(b"b")
        assert seen_something.wait(HANG_S)
        assert seen == [b"a", b"b"]
        proxy.cut()
        assert connection.recv(100) == b""
        assert later.recv(100) == b""
    with connect(proxy) as connection:
        assert exchange(connection, b"c") == b"c", "new connections are sound"


def test_frozen_connections_stay_open_and_carry_nothing(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        assert exchange(connection, b"a") == b"a"
        proxy.freeze()
        connection.settimeout(0.1)
        with pytest.raises(TimeoutError):
            exchange(connection, b"b")
    assert seen == [b"a"]
    proxy.is_frozen = True
    with connect(proxy, 0.1) as connection, pytest.raises(TimeoutError):
        exchange(connection, b"c")
    assert seen == [b"a"]


def test_a_target_that_is_gone_ends_connections(proxy: Proxy) -> None:
    proxy.target = 1
    with connect(proxy) as connection:
        assert connection.recv(100) == b""
