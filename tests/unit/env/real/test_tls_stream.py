"""The rules of env/net.py on an encrypted stream, against a server of the standard library."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest
from tests.support.nodes.streams import Recorder
from tests.support.servers.tls_server import Handler, TestCertificates, echo, serve, server_context

from ottla.env import OpenMode, Stream, TlsOptions
from ottla.env.real import RealDisk, RealNetwork

LARGE = 5_000_000
"""More than the kernel's socket buffers of one connection hold."""


def talk(
    certificates: TestCertificates, script: Callable[[Stream, Recorder], Awaitable[None]], handler: Handler = echo
) -> Recorder:
    async def run() -> Recorder:
        async with serve(handler, server_context(certificates.server)) as port:
            owner = Recorder()
            options = TlsOptions(ca=str(certificates.authority.certificate))
            stream = await RealNetwork().connect("localhost", port, owner, tls=options)
            try:
                await script(stream, owner)
            finally:
                stream.close()
            await owner.until_ended()
            return owner

    return asyncio.run(run())


@pytest.mark.parametrize("buffer_bytes", [7, 16_384, 1 << 20])
def test_large_data_both_ways(certificates: TestCertificates, buffer_bytes: int) -> None:
    size = LARGE if buffer_bytes > 1000 else 50_000
    data = Random(1).randbytes(size)

    async def script(stream: Stream, owner: Recorder) -> None:
        owner._buffer = bytearray(buffer_bytes)
        stream.resume()
        stream.send([data[:10], memoryview(data)[10:100_000], bytearray(data[100_000:])])
        stream.send([])
        assert await owner.until_received(size) == data
        assert stream.unsent_bytes == 0

    talk(certificates, script)


def test_file_ranges_are_sent(certificates: TestCertificates, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")

    async def script(stream: Stream, owner: Recorder) -> None:
        file = RealDisk().open(str(path), OpenMode.READ)
        stream.resume()
        stream.send([b"<", file.range(2, 5), b">"])
        assert await owner.until_received(7) == b"<23456>"
        file.close()

    talk(certificates, script)


def test_a_stream_begins_paused_and_can_be_paused_again(certificates: TestCertificates) -> None:
    async def script(stream: Stream, owner: Recorder) -> None:
        stream.send([b"early"])
        await asyncio.sleep(0.05)
        assert owner.data == b""
        stream.resume()
        await owner.until_received(5)
        owner._buffer = bytearray(10)
        owner.on_received = stream.pause
        stream.send([bytes(1000)])
        await owner.until_received(6)
        await asyncio.sleep(0.05)
        assert len(owner.data) == 15, "what OpenSSL has decrypted waits as well"
        owner.on_received = lambda: None
        stream.resume()
        await owner.until_received(1005)

    talk(certificates, script)


def test_pausing_and_resuming_while_receiving(certificates: TestCertificates) -> None:
    data = Random(2).randbytes(300_000)

    async def script(stream: Stream, owner: Recorder) -> None:
        def stop_and_go() -> None:
            stream.pause()
            stream.resume()

        owner._buffer = bytearray(1000)
        owner.on_received = stop_and_go
        stream.resume()
        stream.send([data])
        assert await owner.until_received(len(data)) == data

    talk(certificates, script)


def test_a_peer_that_does_not_read_makes_the_stream_queue(certificates: TestCertificates) -> None:
    may_read = asyncio.Event()
    received = bytearray()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await may_read.wait()
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        while data := await reader.read(1 << 16):
            received.extend(data)

    data = Random(3).randbytes(4 * LARGE)

    async def script(stream: Stream, owner: Recorder) -> None:
        stream.resume()
        stream.send([data])
        assert stream.unsent_bytes > 0
        stream.send([b"the end"])
        may_read.set()
        await owner.until(lambda: "drained" in owner.events, "everything sent")
        assert stream.unsent_bytes == 0
        stream.close_when_sent()
        await owner.until_ended()

    talk(certificates, script, slow)
    assert received == data + b"the end"


def test_close_when_sent_sends_all_and_a_close_notify(certificates: TestCertificates) -> None:
    received = bytearray()

    async def read_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.extend(await reader.read())

    async def script(stream: Stream, owner: Recorder) -> None:
        stream.resume()
        stream.send([b"the last words"])
        stream.close_when_sent()
        stream.send([b"too late"])
        assert await owner.until_ended() is None

    talk(certificates, script, read_all)
    assert received == b"the last words"


def test_the_end_of_the_peer_is_reported_after_its_last_bytes(certificates: TestCertificates) -> None:
    async def last_words(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"x" * 100_000)
        await writer.drain()

    async def script(stream: Stream, owner: Recorder) -> None:
        stream.resume()
        stream.send([b"go"])
        assert await owner.until_ended() is None
        assert len(owner.data) == 100_000
        stream.send([b"into the void"])
        stream.close()

    assert talk(certificates, script, last_words).events.count("ended") == 1


def test_closing_from_within_received(certificates: TestCertificates) -> None:
    async def script(stream: Stream, owner: Recorder) -> None:
        owner._buffer = bytearray(10)
        owner.on_received = stream.close
        stream.resume()
        stream.send([bytes(1000)])
        assert await owner.until_ended() is None
        assert len(owner.data) == 10

    talk(certificates, script)


def test_garbage_in_the_middle_ends_the_stream_with_the_reason(certificates: TestCertificates) -> None:
    async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"good")
        await reader.read(10)
        raw = writer.get_extra_info("socket")

        os.write(raw.fileno(), b"this is no TLS record at all")
        await reader.read()

    async def script(stream: Stream, owner: Recorder) -> None:
        stream.resume()
        await owner.until_received(4)
        stream.send([b"go"])
        error = await owner.until_ended()
        assert "does not speak TLS" in str(error) or "failed" in str(error)

    talk(certificates, script, garbage)
