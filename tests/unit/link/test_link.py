"""The link over a network in memory: handshake, order, requests in flight, timeouts, and every way to end."""

import asyncio
import socket
import struct
import types
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from tests.support.nodes.fake_node import HANG_UP, FakeNetwork, FakeNode, all_versions

from ottla.env.real.net import RealNetwork
from ottla.link import ConnectFailed, Link, LinkEnded, LinkOptions, NoCommonVersion, PeerFault, RequestTimedOut
from ottla.wire.base import UnsupportedVersion
from ottla.wire.codec import join_parts
from ottla.wire.headers import encode_response
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.messages.produce import ProduceRequest

WHERE = ("localhost", 9092)
T = TypeVar("T")


def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
    name = request.topics[0].name if request.topics else ""
    return MetadataResponse(cluster_id=name)


def ask(name: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)])


def talk(
    node: FakeNode, script: Callable[[Link], Awaitable[T]], options: LinkOptions | None = None, piece_bytes: int = 1 << 30
) -> T:
    async def run() -> T:
        link = await Link.connect(FakeNetwork({WHERE: node}, piece_bytes), *WHERE, options or LinkOptions())
        try:
            return await script(link)
        finally:
            link.close()

    return asyncio.run(run())


@pytest.mark.parametrize("piece_bytes", [1, 3, 1 << 20])
def test_answers_reach_their_requests_however_bytes_are_split(piece_bytes: int) -> None:
    async def script(link: Link) -> list[Any]:
        return await asyncio.gather(*(link.request(ask(f"topic-{number}")) for number in range(20)))

    answers = talk(FakeNode({MetadataRequest: metadata}), script, piece_bytes=piece_bytes)
    assert [answer.cluster_id for answer in answers] == [f"topic-{number}" for number in range(20)]


def test_the_handshake_sends_client_name_and_version() -> None:
    node = FakeNode({})

    async def nothing(link: Link) -> None:
        assert link.versions.newest(MetadataRequest.KEY) == 13

    talk(node, nothing, LinkOptions(client_id="me"))
    (hello,) = node.asked_for(ApiVersionsRequest)
    assert hello.client_software_name == "ottla"
    assert hello.client_software_version
    assert node.client_ids == {"me"}


def test_handshake_is_repeated_in_an_older_version_if_refused() -> None:
    def old(request: ApiVersionsRequest, version: int) -> ApiVersionsResponse:
        if version > 2:
            return ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=2)])
        return ApiVersionsResponse(api_keys=all_versions())

    node = FakeNode({ApiVersionsRequest: old, MetadataRequest: metadata})

    async def script(link: Link) -> Any:
        return await link.request(ask("x"))

    assert talk(node, script).cluster_id == "x"
    assert [version for message, version in node.asked if isinstance(message, ApiVersionsRequest)] == [4, 2]


def test_connect_fails_when_every_handshake_is_refused() -> None:
    node = FakeNode({ApiVersionsRequest: lambda request, version: ApiVersionsResponse(error_code=35)})
    with pytest.raises(PeerFault, match=r"localhost:9092 refused to send its versions: UNSUPPORTED_VERSION"):
        talk(node, lambda link: link.request(ask("x")))
    assert len(node.asked) <= 5


def test_newest_common_version_is_used_and_having_none_raises() -> None:
    node = FakeNode(
        {MetadataRequest: metadata}, all_versions(Metadata=(0, 9), Fetch=(0, 3), Produce=(90, 99), ListOffsets=None)
    )

    async def script(link: Link) -> None:
        await link.request(ask("x"))
        assert node.asked[-1][1] == 9
        assert link.versions.has(MetadataRequest.KEY, 9)
        assert not link.versions.has(MetadataRequest.KEY, 10)
        assert not link.versions.has(2)
        assert not link.versions.has(0)
        with pytest.raises(NoCommonVersion, match=r"localhost:9092 serves the API Fetch in versions 0 to 3, Ottla speaks 4"):
            await link.request(FetchRequest())
        with pytest.raises(NoCommonVersion, match=r"Produce in versions 90 to 99.*Upgrade Ottla"):
            await link.request(ProduceRequest())
        with pytest.raises(NoCommonVersion, match=r"does not serve the API ListOffsets"):
            link.versions.newest(2)
        assert (await link.request(ask("y"))).cluster_id == "y", "the link is as usable as before"

    talk(node, script)


def test_a_request_that_cannot_be_encoded_changes_nothing() -> None:
    async def script(link: Link) -> Any:
        with pytest.raises(UnsupportedVersion):
            await link.request(MetadataRequest(allow_auto_topic_creation=False), version=0)
        return await link.request(ask("x"))

    assert talk(FakeNode({MetadataRequest: metadata}), script).cluster_id == "x"


def test_requests_beyond_the_limit_wait_in_order() -> None:
    held: list[str] = []
    node = FakeNode({MetadataRequest: lambda request, version: held.append(request.topics[0].name)})

    async def script(link: Link) -> None:
        for number in range(4):
            link.send(ask(str(number)))
        await asyncio.sleep(0)
        assert held == ["0", "1"]

    talk(node, script, LinkOptions(in_flight_max=2))

    order: list[str] = []

    def note(request: MetadataRequest, version: int) -> MetadataResponse:
        order.append(request.topics[0].name if request.topics else "")
        return metadata(request, version)

    async def many(link: Link) -> None:
        await asyncio.gather(*(link.request(ask(str(number))) for number in range(50)))

    talk(FakeNode({MetadataRequest: note}), many, LinkOptions(in_flight_max=3))
    assert order == [str(number) for number in range(50)]


def test_unanswered_requests_keep_order_but_are_not_in_flight() -> None:
    node = FakeNode({MetadataRequest: metadata, ProduceRequest: lambda request, version: None})

    async def script(link: Link) -> None:
        first = link.send(ask("first"))
        second = link.send(ask("second"))
        link.send_unanswered(ProduceRequest(acks=0))
        last = link.send(ask("last"))
        await asyncio.gather(first, second, last)

    talk(node, script, LinkOptions(in_flight_max=1))
    kinds = [type(message).__name__ for message, _ in node.asked]
    assert kinds == ["ApiVersionsRequest", "MetadataRequest", "MetadataRequest", "ProduceRequest", "MetadataRequest"]


def test_a_late_answer_ends_the_link_for_all_callers() -> None:
    node = FakeNode({MetadataRequest: lambda request, version: None})

    async def script(link: Link) -> None:
        waiting = link.send(ask("patient"), timeout_ms=60_000)
        with pytest.raises(RequestTimedOut, match=r"localhost:9092 did not answer Metadata within 20 ms"):
            await link.request(ask("x"), timeout_ms=20)
        assert link.is_over
        with pytest.raises(LinkEnded, match="not answered in time"):
            await waiting
        with pytest.raises(LinkEnded):
            await link.request(ask("y"))

    talk(node, script)


def test_the_answer_to_a_cancelled_request_is_discarded() -> None:
    async def script(link: Link) -> Any:
        forgotten = link.send(ask("forgotten"))
        forgotten.cancel()
        return await link.request(ask("next"))

    assert talk(FakeNode({MetadataRequest: metadata}), script).cluster_id == "next"


def test_waiting_callers_get_an_error_when_the_peer_closes() -> None:
    async def script(link: Link) -> None:
        with pytest.raises(LinkEnded, match=r"localhost:9092 closed the connection; its log may say why") as ended:
            await link.request(ask("x"))
        assert ended.value.is_retriable
        assert ended.value.address == "localhost:9092"

    talk(FakeNode({MetadataRequest: lambda request, version: HANG_UP}), script)


def test_waiting_callers_get_an_error_when_the_link_is_closed() -> None:
    async def script(link: Link) -> None:
        waiting = link.send(ask("x"))
        link.close()
        link.close()
        with pytest.raises(LinkEnded, match="closed on this side"):
            await waiting

    talk(FakeNode({MetadataRequest: lambda request, version: None}), script)


@pytest.mark.parametrize(
    ("bytes_sent", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "It speaks HTTP"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "It speaks TLS"),
        (b"\xff\xff\xff\xff1234", "announced a frame of -1 bytes"),
        (b"\0\0\0\2ab", "too short for a response header"),
        (b"\0\0\0\x08\0\0\0\x63\0\0\0\0", "answered request 99 where 0"),
        (b"\0\0\0\x06\0\0\0\0\0\0", "does not answer as a Kafka node does"),
    ],
)
def test_error_names_the_peer_when_it_breaks_the_protocol(bytes_sent: bytes, said: str) -> None:
    node = FakeNode({ApiVersionsRequest: lambda request, version: bytes_sent})
    with pytest.raises(PeerFault, match=said) as fault:
        talk(node, lambda link: link.request(ask("x")))
    assert "localhost:9092" in str(fault.value)


def test_bytes_without_a_request_end_the_link() -> None:
    def answer_twice(request: MetadataRequest, version: int) -> bytes:
        return join_parts(encode_response(metadata(request, version), version, 1)) + b"\0\0\0\x04\0\0\0\x07"

    async def script(link: Link) -> None:
        with pytest.raises(PeerFault, match="sent 4 bytes without a request"):
            await link.request(ask("x"))
        assert link.is_over

    talk(FakeNode({MetadataRequest: answer_twice}), script)


def test_errors_of_failed_connections() -> None:
    async def connect(place: FakeNode | OSError, **options: Any) -> None:
        await Link.connect(FakeNetwork({WHERE: place}), *WHERE, LinkOptions(**options))

    with pytest.raises(ConnectFailed, match=r"nothing listens at localhost:9092"):
        asyncio.run(connect(ConnectionRefusedError(111, "refused")))
    with pytest.raises(ConnectFailed, match=r"the host of localhost:9092 is not known") as unknown:
        asyncio.run(connect(socket.gaierror(-2, "Name or service not known")))
    assert not unknown.value.is_retriable
    with pytest.raises(ConnectFailed, match=r"localhost:9092 cannot be reached: no route"):
        asyncio.run(connect(OSError(113, "no route")))
    silent = FakeNode({ApiVersionsRequest: lambda request, version: None})
    with pytest.raises(ConnectFailed, match=r"did not send its versions within 20 ms"):
        asyncio.run(connect(silent, connect_timeout_ms=20))
    rude = FakeNode({ApiVersionsRequest: lambda request, version: HANG_UP})
    with pytest.raises(ConnectFailed, match=r"closed the connection before it sent its versions"):
        asyncio.run(connect(rude))


def test_reset_before_the_versions_may_be_a_listener_of_tls() -> None:
    """A node that gets what is no TLS may reset the connection, so that the alert it has sent is lost."""

    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.close()

    async def connect() -> None:
        async with await asyncio.start_server(reset, "127.0.0.1", 0) as server:
            await Link.connect(RealNetwork(), *server.sockets[0].getsockname(), LinkOptions())

    with pytest.raises(ConnectFailed, match=r"failed: .+\. If this listener speaks TLS, set security"):
        asyncio.run(connect())


def test_unanswered_request_is_done_when_its_bytes_have_left() -> None:
    node = FakeNode({MetadataRequest: metadata, ProduceRequest: lambda request, version: None})

    async def script(link: Link) -> None:
        held = link.send(ask("first"))
        waiting = link.send(ask("second"))
        left = link.send_unanswered(ProduceRequest(acks=0))
        assert not left.done(), "a request before it waits for its turn"
        await asyncio.gather(held, waiting)
        await left
        stream = link._stream
        assert stream is not None
        link._stream = types.SimpleNamespace(unsent_bytes=5, send=lambda parts: None, close=stream.close)  # type: ignore[assignment]
        queued = link.send_unanswered(ProduceRequest(acks=0))
        lost = link.send_unanswered(ProduceRequest(acks=0))
        assert not queued.done(), "the system has not taken all bytes"
        link._stream.unsent_bytes = 0  # type: ignore[misc]
        link.drained()
        assert (queued.done(), lost.done()) == (True, True)
        link._stream.unsent_bytes = 5  # type: ignore[misc]
        lost = link.send_unanswered(ProduceRequest(acks=0))
        link.close()
        with pytest.raises(LinkEnded):
            await lost

    talk(node, script, LinkOptions(in_flight_max=1))
