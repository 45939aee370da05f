"""Measures what this machine's loopback and page cache allow a single thread to do: the reference of the raw rows.

    python -m bench.side_by_side.loads.loopback in FILE    frames received, CRC-32C computed, appended to FILE, acknowledged
    python -m bench.side_by_side.loads.loopback out FILE   for each request (offset and size, 8 bytes each) that range of FILE,
                                                           with sendfile

Prints its port, serves one connection and exits. It has no protocol, no checks and no state: no broker can be faster with one
thread.
"""

import os
import socket
import sys
from collections.abc import Callable, Iterator

import crc32c
from bench.side_by_side.errors import BadReply
from bench.side_by_side.loads.frames import receive_into

FRAME_BYTES_MAX = 4 << 20
ACKNOWLEDGEMENT = (4).to_bytes(4, "big") + bytes(4)


def requests(connection: socket.socket) -> Iterator[memoryview]:
    """Frames until the other side closes the connection."""
    size = bytearray(4)
    buffer = memoryview(bytearray(FRAME_BYTES_MAX))
    while True:
        try:
            receive_into(connection, memoryview(size))
        except BadReply:
            return
        frame = buffer[: int.from_bytes(size, "big")]
        receive_into(connection, frame)
        yield frame


def take(connection: socket.socket, descriptor: int) -> None:
    for frame in requests(connection):
        crc32c.crc32c(frame)
        os.write(descriptor, frame)
        connection.sendall(ACKNOWLEDGEMENT)


def give(connection: socket.socket, descriptor: int) -> None:
    for frame in requests(connection):
        offset = int.from_bytes(frame[:8], "big")
        left = int.from_bytes(frame[8:16], "big")
        connection.sendall(left.to_bytes(4, "big"))
        while left:
            sent = os.sendfile(connection.fileno(), descriptor, offset, left)
            offset, left = offset + sent, left - sent


def main() -> None:
    direction, path = sys.argv[1:]
    serve: Callable[[socket.socket, int], None] = take if direction == "in" else give
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection:
        serve(connection, descriptor)


if __name__ == "__main__":
    main()
