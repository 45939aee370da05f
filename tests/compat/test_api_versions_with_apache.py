"""ApiVersions responses compared with Apache Kafka's, byte for byte, on both listeners, in every version, for odd requests too.

Apache Kafka serves more APIs and supports more features; the common part must be the same bytes. Its features come in no
particular order, so they are put into Ottla's order before comparing.
"""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.nodes.net_server import EchoServer
from tests.support.servers.apache_kafka import ApacheKafka, KafkaServer

from ottla.broker.handlers.cluster.api_versions import served
from ottla.broker.requests.context import CloseConnection, ConnectionInfo
from ottla.metadata.features import SUPPORTED_FEATURES
from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.codec import decode_all, encode_bytes
from ottla.wire.headers import encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

pytestmark = pytest.mark.slow  # a start of Apache Kafka; what Ottla answers is in tests/unit/broker/handlers

LISTENERS = [pytest.param(False, id="broker"), pytest.param(True, id="controller")]
ODD_NAMES = [
    ("", "1"),
    ("a", ""),
    ("a b", "1"),
    ("-a", "1"),
    ("a-", "1"),
    ("a.b-c", "1.0-x"),
    ("ü", "1"),
    ("a_b", "1"),
    ("a", "1\n"),
]


@pytest.fixture(scope="module")
def server(apache_kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    data: Path = tmp_path_factory.mktemp("api-versions") / "data"
    with apache_kafka.start_server(data_dir=data) as running:
        yield running


def apaches_answer(server: KafkaServer, is_controller: bool, request: bytes) -> bytes | None:
    """The reply's frame without its size; None: the connection was closed."""
    address = str(server.properties["listeners"]).split(",")[is_controller].rpartition("/")[2]
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), 20) as connection:
        connection.sendall(request)
        stream = connection.makefile("rb")
        size = stream.read(4)
        return stream.read(int.from_bytes(size, "big")) if size else None


def our_answer(is_controller: bool, request: bytes, image: MetadataImage, kraft_version: int) -> bytes | None:
    async def ask() -> bytes | None:
        echo = EchoServer(None)  # type: ignore[arg-type]  # it is never started
        services = echo.pipeline.services
        assert services is not None
        services.metadata.image = image
        services.metadata.features_offset = image.provenance.offset
        services.quorum.kraft_version = kraft_version  # type: ignore[misc]  # a stand-in
        info = ConnectionInfo(1, "L", ("peer", 1), is_controller)
        try:
            parts = echo.pipeline.handle(info, bytearray(request[4:]))
        except CloseConnection:
            return None
        assert isinstance(parts, list)
        return b"".join(parts)[4:]  # type: ignore[arg-type]

    return asyncio.run(ask())


def ask_for_versions(version: int, name: str = "test", software_version: str = "1.0") -> bytes:
    message = ApiVersionsRequest(client_software_name=name, client_software_version=software_version)
    known = min(max(version, 0), 4) if version <= 4 else 3
    frame = bytearray(b"".join(encode_request(message, known, 7, "cli")))  # type: ignore[arg-type]
    frame[6:8] = version.to_bytes(2, "big", signed=True)
    return bytes(frame)


def common_part(frame: bytes, version: int, is_controller: bool) -> ApiVersionsResponse:
    """A response of Apache Kafka without what Ottla does not have, and in Ottla's order."""
    response = decode_all(ApiVersionsResponse, version, frame, 4)
    ours = served(is_controller)
    response.api_keys = [each for each in response.api_keys if each.api_key in ours]
    response.supported_features = sorted(
        (each for each in response.supported_features if each.name in SUPPORTED_FEATURES), key=lambda each: each.name
    )
    response.finalized_features.sort(key=lambda each: each.name)
    return response


@pytest.mark.parametrize("is_controller", LISTENERS)
@pytest.mark.parametrize("version", range(5))
def test_the_same_bytes(server: KafkaServer, is_controller: bool, version: int) -> None:
    request = ask_for_versions(version)
    theirs = apaches_answer(server, is_controller, request)
    assert theirs is not None
    wanted = common_part(theirs, version, is_controller)
    levels = {each.name: each.max_version_level for each in wanted.finalized_features}
    kraft_version = levels.pop("kraft.version", 1)
    image = MetadataImage(provenance=Provenance(offset=wanted.finalized_features_epoch), features=levels)
    if version < 3:
        image = MetadataImage()
    ours = our_answer(is_controller, request, image, kraft_version)
    assert ours == theirs[:4] + encode_bytes(wanted, version)


@pytest.mark.parametrize("is_controller", LISTENERS)
@pytest.mark.parametrize("version", [5, 99, -1, 32767])
def test_unknown_versions(server: KafkaServer, is_controller: bool, version: int) -> None:
    request = ask_for_versions(version)
    assert our_answer(is_controller, request, MetadataImage(), 1) == apaches_answer(server, is_controller, request)


@pytest.mark.parametrize(("name", "software_version"), ODD_NAMES)
def test_odd_software(server: KafkaServer, name: str, software_version: str) -> None:
    request = ask_for_versions(3, name, software_version)
    theirs, ours = apaches_answer(server, False, request), our_answer(False, request, MetadataImage(), 1)
    assert theirs is not None
    assert ours is not None
    assert ours[:6] == theirs[:6]
    assert ours == theirs or theirs[4:6] == b"\0\0"


def test_every_served_api_has_apaches_versions(server: KafkaServer) -> None:
    for is_controller in (False, True):
        theirs = apaches_answer(server, is_controller, ask_for_versions(0))
        assert theirs is not None
        table = {
            each.api_key: (each.min_version, each.max_version)
            for each in decode_all(ApiVersionsResponse, 0, theirs, 4).api_keys
        }
        assert {key: table.get(key) for key in served(is_controller)} == {
            key: APIS[key].advertised() for key in served(is_controller)
        }


@pytest.mark.parametrize(
    ("key", "version", "body"),
    [
        (999, 0, b""),
        (ApiKey.METADATA, 99, b"\0"),
        (ApiKey.PRODUCE, 2, b""),
        (ApiKey.INIT_PRODUCER_ID, 6, b"\0\0\0\0\0\1" + bytes(8) + bytes(5)),
        (ApiKey.LEADER_AND_ISR, 0, b""),
        (ApiKey.VOTE, 0, bytes(20)),
        (ApiKey.METADATA, 1, b"\x7f\xff\xff\xff"),
    ],
)
def test_what_closes_the_connection(server: KafkaServer, key: int, version: int, body: bytes) -> None:
    frame = key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\7\0\3cli" + body
    request = len(frame).to_bytes(4, "big") + frame
    assert apaches_answer(server, False, request) is None
    assert our_answer(False, request, MetadataImage(), 1) is None
