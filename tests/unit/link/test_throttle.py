"""Which answers make a client wait."""

from ottla.link.throttle import CLIENT_WAITS_FROM, client_wait_ms
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.messages.metadata import MetadataResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeResponse


def test_new_versions_leave_the_waiting_to_the_client() -> None:
    throttled = MetadataResponse(throttle_time_ms=50)
    assert client_wait_ms(ApiKey.METADATA, 6, throttled) == 50
    assert client_wait_ms(ApiKey.METADATA, 5, throttled) == 0, "the broker has waited"
    assert client_wait_ms(ApiKey.DESCRIBE_CLUSTER, 0, throttled) == 50
    assert client_wait_ms(ApiKey.METADATA, 13, MetadataResponse()) == 0
    assert client_wait_ms(ApiKey.METADATA, 13, MetadataResponse(throttle_time_ms=-1)) == 0
    assert client_wait_ms(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeResponse()) == 0


def test_the_table_names_versions_that_exist() -> None:
    for api_key, version in CLIENT_WAITS_FROM.items():
        assert version <= APIS[api_key].newest
        assert "throttle_time_ms" in APIS[api_key].response_class.__slots__
