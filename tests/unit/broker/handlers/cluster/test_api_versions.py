"""ApiVersions: what is advertised is what is served, on each listener, in every version."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.broker.handlers.cluster import api_versions
from ottla.broker.requests.apis import ON_BROKER, ON_CONTROLLER
from ottla.broker.requests.context import ConnectionInfo, RequestContext
from ottla.broker.services import Services
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.codec import decode_all, encode_bytes
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse


def context(version: int, is_controller: bool = False, kraft_version: int = 1, is_two_phase: bool = False) -> RequestContext:
    image = MetadataImage(provenance=Provenance(offset=19), features={"metadata.version": 30, "share.version": 1})
    metadata = SimpleNamespace(image=image, features_offset=11)
    current = SimpleNamespace(transaction_two_phase_commit_enable=is_two_phase, metrics_address=None)
    services: Any = SimpleNamespace(
        metadata=metadata, quorum=SimpleNamespace(kraft_version=kraft_version), settings=SimpleNamespace(current=current)
    )
    connection = ConnectionInfo(1, "CONTROLLER" if is_controller else "PLAINTEXT", ("peer", 1), is_controller)
    return RequestContext(cast(Services, services), connection, ApiKey.API_VERSIONS, version, 1, None, 0.0)


def request(name: str = "test", version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


def ranges(response: ApiVersionsResponse) -> dict[int, tuple[int, int]]:
    return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}


@pytest.mark.parametrize("version", range(5))
def test_what_is_served_on_a_brokers_listener(version: int) -> None:
    response = api_versions.handle(context(version), request())
    sent = decode_all(ApiVersionsResponse, version, encode_bytes(response, version))
    assert ranges(sent) == {key: APIS[key].advertised() for key in ON_BROKER if "broker" in APIS[key].listeners}
    assert list(ranges(sent)) == sorted(ranges(sent))
    assert ranges(sent)[ApiKey.PRODUCE] == (0, 13)
    assert ranges(sent)[ApiKey.INIT_PRODUCER_ID] == (0, 5)
    assert sent.error_code == 0


def test_an_unstable_version_is_advertised_only_with_its_setting() -> None:
    plain, extended = (
        ranges(api_versions.handle(context(4, is_two_phase=is_two_phase), request())) for is_two_phase in (False, True)
    )
    assert extended[ApiKey.INIT_PRODUCER_ID] == (0, 6)
    assert extended == plain | {ApiKey.INIT_PRODUCER_ID: (0, 6)}


def test_what_is_served_on_the_controllers_listener() -> None:
    response = api_versions.handle(context(4, is_controller=True), request())
    assert set(ranges(response)) == set(ON_CONTROLLER)
    assert all("controller" in APIS[key].listeners for key in ranges(response))


def test_features_with_lowest_level_0_are_listed_from_version_4_on() -> None:
    def supported(version: int) -> dict[str, tuple[int, int]]:
        response = api_versions.handle(context(version), request())
        return {each.name: (each.min_version, each.max_version) for each in response.supported_features}

    assert supported(3) == {"metadata.version": (7, 30)}
    assert supported(4)["metadata.version"] == (7, 30)
    assert supported(4)["kraft.version"] == (0, 1)
    assert "share.version" not in supported(4)


def test_finalised_features_come_from_image_and_quorum() -> None:
    response = api_versions.handle(context(3), request())
    levels = {each.name: (each.min_version_level, each.max_version_level) for each in response.finalized_features}
    assert levels == {"metadata.version": (30, 30), "share.version": (1, 1), "kraft.version": (1, 1)}
    assert response.finalized_features_epoch == 19
    assert api_versions.handle(context(3, is_controller=True), request()).finalized_features_epoch == 11
    older = api_versions.handle(context(3, kraft_version=0), request())
    assert "kraft.version" not in {each.name for each in older.finalized_features}


def test_the_clients_software_is_remembered() -> None:
    asked = context(3)
    api_versions.handle(asked, request("apache-kafka-java", "4.3.0"))
    assert asked.connection.client_software_name == "apache-kafka-java"
    assert asked.connection.client_software_version == "4.3.0"


@pytest.mark.parametrize(
    ("name", "version"),
    [("", "1"), ("a", ""), ("a b", "1"), ("-a", "1"), ("a-", "1"), (".a", "1"), ("ü", "1"), ("a_b", "1"), ("a", "1\n")],
)
def test_invalid_client_software_name_is_refused(name: str, version: str) -> None:
    asked = context(3)
    with pytest.raises(KafkaError) as caught:
        api_versions.handle(asked, request(name, version))
    assert caught.value.code == ErrorCode.INVALID_REQUEST
    refusal = api_versions.refuse(asked, request(name, version), caught.value)
    assert encode_bytes(refusal, 3) == b"\0*\1\0\0\0\0\0"
    api_versions.handle(context(2), request(name, version))


@pytest.mark.parametrize("name", ["a", "a.b-c", "1", "librdkafka", "x" * 3000])
def test_valid_client_software_name_is_accepted(name: str) -> None:
    assert api_versions.handle(context(3), request(name, name)).error_code == 0


@pytest.mark.parametrize(
    ("client_id", "is_follower"),
    [
        ("broker-1-replica-fetcher", True),
        ("broker-12-fetcher-0", True),
        ("consumer", False),
        ("my-broker-1-fetcher-0", False),
        (None, False),
    ],
)
def test_fetchers_of_brokers_are_known_by_their_client_id(client_id: str | None, is_follower: bool) -> None:
    asking = context(4)
    asking.client_id = client_id
    api_versions.handle(asking, request())
    assert asking.connection.is_follower is is_follower
