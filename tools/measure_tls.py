"""What encryption of large replies costs a node, in processor seconds for each gigabyte sent; and whether the kernel has TLS.

    python tools/measure_tls.py

Behind docs/decisions/0025. Each step alone, then all of them as `env/real/tls_stream.py` does them: file ranges are read and
encrypted in pieces of 128 KB and sent over a loopback connection. The other side is a process of its own and is not counted.
"""

import ctypes
import os
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

GIGABYTE = 1 << 30
PART = 4
"""A quarter of a gigabyte is measured, four times; the least counts."""
PIECE_BYTES = 128 * 1024
FILE_BYTES = 64 << 20
TCP_ULP = 31
M_MMAP_THRESHOLD = -3


def kernel_tls() -> str:
    """Whether a connection can be given to the kernel's TLS."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        try:
            client.setsockopt(socket.IPPROTO_TCP, TCP_ULP, b"tls")
        except OSError as error:
            return f"no ({error.strerror})"
    return "yes"


def encryption(folder: Path) -> Callable[[bytes], bytes]:
    """Encrypts as a listener does, over memory."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-subj",
        "/CN=x",
    ]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    other = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    other.check_hostname, other.verify_mode = False, ssl.CERT_NONE
    to_server, from_server, to_client, from_client = (ssl.MemoryBIO() for _ in range(4))
    server = context.wrap_bio(to_server, from_server, server_side=True)
    client = other.wrap_bio(to_client, from_client)
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
        to_server.write(from_client.read())
        to_client.write(from_server.read())
    print(f"{ssl.OPENSSL_VERSION}, {server.cipher()[0]}, kernel TLS: {kernel_tls()}")  # type: ignore[index]

    def encrypt(data: bytes) -> bytes:
        rest = memoryview(data)
        while rest:
            rest = rest[server.write(rest) :]
        return from_server.read()

    return encrypt


@contextmanager
def drained() -> Iterator[socket.socket]:
    """A connection to a process that receives and drops all."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        if os.fork() == 0:
            buffer = bytearray(1 << 20)
            with socket.create_connection(server.getsockname()) as receiver:
                while receiver.recv_into(buffer):
                    pass
            os._exit(0)
        connection, _ = server.accept()
    with connection:
        yield connection
    os.wait()


def cpu_s(act: Callable[[int], None]) -> float:
    """Processor seconds for each gigabyte; `act` deals with the piece at a position."""
    found = []
    for _ in range(4):
        before = os.times()
        for position in range(0, GIGABYTE // PART, PIECE_BYTES):
            act(position % FILE_BYTES)
        after = os.times()
        found.append((after.user + after.system - before.user - before.system) * PART)
    return min(found)


def main() -> None:
    # As in a node. Else glibc asks the system for each piece anew, and "all of these" takes 0.84 s.
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 20)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as file, drained() as connection:
        file.write(os.urandom(FILE_BYTES))
        file.flush()
        descriptor, piece, encrypt = file.fileno(), os.urandom(PIECE_BYTES), encryption(Path(folder))

        def send_file(position: int) -> None:
            sent = 0
            while sent < PIECE_BYTES:
                sent += os.sendfile(connection.fileno(), descriptor, position + sent, PIECE_BYTES - sent)

        steps: dict[str, Callable[[int], object]] = {
            "read": lambda at: os.pread(descriptor, PIECE_BYTES, at),
            "encrypt": lambda _: encrypt(piece),
            "send": lambda _: connection.sendall(piece),
            "all of these": lambda at: connection.sendall(encrypt(os.pread(descriptor, PIECE_BYTES, at))),
            "sendfile, not encrypted": send_file,
        }
        for name, step in steps.items():
            print(f"{name:24} {cpu_s(lambda at, step=step: step(at) and None):.2f} s for each GB")  # type: ignore[misc]


if __name__ == "__main__":
    main()
