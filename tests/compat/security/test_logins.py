"""What a server answers before, during and after a login, message by message: the same for Ottla and for Apache Kafka."""

import json
import time
from typing import Any

import pytest
from tests.support.peers.raw_client import RawClient
from tests.support.peers.sasl_login import authenticate, bearer, is_closed, is_usable, shake
from tests.support.servers.kafka_server import KafkaServer, ports_of
from tests.support.servers.ottla_server import start_ottla
from tests.support.servers.sasl_server import ALICES_PASSWORD, RECEIVE_BYTES_MAX, SESSION_MS, sasl_properties

from ottla.errors.codes import ErrorCode
from ottla.link.scram import ScramClient
from ottla.metadata.scram import salted_password
from ottla.wire.codec import join_parts
from ottla.wire.headers import encode_request
from ottla.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

MECHANISMS = ["OAUTHBEARER", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
PLAIN_ALICE = f"\0alice\0{ALICES_PASSWORD}".encode()
PLAIN_BOB = b"\0bob\0bob-secret"
VERSIONS = ApiVersionsRequest(client_software_name="raw", client_software_version="1")


def test_a_login_with_plain(dial: Any) -> None:
    client = dial()
    versions = client.request(VERSIONS, 4)
    assert versions.error_code == 0
    assert {17, 36} <= {each.api_key for each in versions.api_keys}
    shaken = shake(client)
    assert (shaken.error_code, sorted(shaken.mechanisms)) == (0, MECHANISMS)
    done = authenticate(client, PLAIN_ALICE)
    assert (done.error_code, done.error_message, done.auth_bytes, done.session_lifetime_ms) == (0, "", b"", 0)
    assert is_usable(client)
    assert shake(client).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert authenticate(client, PLAIN_ALICE).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert is_usable(client)


@pytest.mark.parametrize(
    "first",
    [
        join_parts(encode_request(MetadataRequest(topics=[]), 12, 1, "raw")),
        join_parts(encode_request(SaslAuthenticateRequest(auth_bytes=PLAIN_ALICE), 2, 1, "raw")),
        b"\0\0\0\x04abcd",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xff\xff\xff",
    ],
)
def test_anything_else_closes_the_connection(dial: Any, first: bytes) -> None:
    client = dial()
    client.send_bytes(first)
    assert is_closed(client)


def test_a_second_good_api_versions_closes_the_connection(dial: Any) -> None:
    client = dial()
    assert client.request(VERSIONS, 3).error_code == 0
    client.send(VERSIONS, 3)
    assert is_closed(client)


def test_a_bad_api_versions_may_be_repeated(dial: Any) -> None:
    client = dial()
    bad = ApiVersionsRequest(client_software_name="not a name!", client_software_version="1")
    for _ in range(2):
        assert client.request(bad, 3).error_code == ErrorCode.INVALID_REQUEST
    assert client.request(VERSIONS, 3).error_code == 0
    assert shake(client).error_code == 0


def test_an_unserved_version_of_api_versions_is_told_and_may_be_repeated(dial: Any) -> None:
    client = dial()
    body = bytearray(join_parts(encode_request(VERSIONS, 4, 1, "raw")))
    body[6:8] = (99).to_bytes(2, "big")
    client.send_bytes(bytes(body))
    assert client.receive(18, 0).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert client.request(VERSIONS, 4).error_code == 0


@pytest.mark.parametrize("mechanism", ["plain", "GSSAPI", "", "SCRAM-SHA-1"])
@pytest.mark.parametrize("version", [0, 1])
def test_an_unknown_mechanism_is_told_the_others(dial: Any, mechanism: str, version: int) -> None:
    client = dial()
    shaken = shake(client, mechanism, version)
    assert (shaken.error_code, sorted(shaken.mechanisms)) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, MECHANISMS)
    assert is_closed(client)


def test_a_listener_offers_its_own_mechanisms(dial: Any) -> None:
    shaken = shake(dial("PLAINONLY"), "SCRAM-SHA-256")
    assert (shaken.error_code, shaken.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["PLAIN"])


@pytest.mark.parametrize(
    "message",
    [b"\0alice\0wrong", b"\0eve\0x", b"\0\0x", b"\0alice\0", b"alice", b"bob\0alice\0alice-secret", b"\xff\0\xff\0\xff", b""],
)
@pytest.mark.parametrize("version", [0, 2])
def test_a_wrong_plain_login(dial: Any, message: bytes, version: int) -> None:
    client = dial()
    shake(client)
    failed = authenticate(client, message, version)
    assert failed.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert ALICES_PASSWORD not in (failed.error_message or "")
    assert is_closed(client)


def test_unknown_users_and_wrong_passwords_are_told_the_same(dial: Any) -> None:
    told = set()
    for message in (b"\0alice\0wrong", b"\0eve\0wrong"):
        client = dial()
        shake(client)
        told.add(authenticate(client, message).error_message)
    assert len(told) == 1


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_time_of_a_failed_login_does_not_tell_who_exists(mechanism: str) -> None:
    """Of 300 pairs, an unknown user's login takes longer than alice's about as often as not. (Apache refuses it earlier.)"""
    samples, pairs = 300, []
    with start_ottla(sasl_properties() | {"connection.failed.authentication.delay.ms": 0}) as server:
        port = ports_of(server.properties)["SASL"]
        salted = salted_password("sha512", ALICES_PASSWORD.encode(), b"salt" * 8, 4096)
        upsertion = ScramCredentialUpsertion(
            name="alice", mechanism=2, iterations=4096, salt=b"salt" * 8, salted_password=salted
        )
        with RawClient.to(server.bootstrap) as admin:
            admin.request(AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0)

        def failed_login_s(user: str) -> float:
            with RawClient(port) as client:
                shake(client, mechanism)
                if mechanism == "PLAIN":
                    began_s = time.perf_counter()
                    answer = authenticate(client, f"\0{user}\0wrong".encode())
                    took_s = time.perf_counter() - began_s
                else:
                    scram = ScramClient(mechanism, user, "wrong", "nonce")
                    began_s = time.perf_counter()
                    answer = authenticate(client, scram.first())
                    took_s = time.perf_counter() - began_s
                    final = scram.final(answer.auth_bytes)
                    began_s = time.perf_counter()
                    answer = authenticate(client, final)
                    took_s += time.perf_counter() - began_s
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            return took_s

        for number in range(samples):
            users = ("alice", "erich") if number % 2 else ("erich", "alice")
            times = {user: failed_login_s(user) for user in users}
            pairs.append((times["erich"], times["alice"]))
    slower = sum(unknown > known for unknown, known in pairs) / samples
    assert 0.35 < slower < 0.65, "five standard deviations of a fair coin"


@pytest.mark.parametrize("user", ["eve", "alice"])
def test_a_wrong_scram_login_ends_with_one_text(dial: Any, user: str) -> None:
    client = dial()
    shake(client, "SCRAM-SHA-256")
    scram = ScramClient("SCRAM-SHA-256", user, "wrong", "nonce")
    answer = authenticate(client, scram.first())
    if not answer.error_code:  # Apache refuses a user that does not exist already here
        answer = authenticate(client, scram.final(answer.auth_bytes))
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "SCRAM-SHA-256" in answer.error_message
    assert user not in answer.error_message
    assert is_closed(client)


@pytest.mark.parametrize("message", [b"", b"y,,n=alice,r=x", b"p=tls-unique,,n=alice,r=x", b"\xff", b"n,,n=alice"])
def test_no_scram_message(dial: Any, message: bytes) -> None:
    client = dial()
    shake(client, "SCRAM-SHA-512")
    assert authenticate(client, message).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert is_closed(client)


def test_raw_messages_after_a_handshake_of_version_0(dial: Any) -> None:
    client = dial()
    assert shake(client, version=0).error_code == 0
    client.send_bytes(len(PLAIN_ALICE).to_bytes(4, "big") + PLAIN_ALICE)
    assert client.receive_frame() == b""
    assert is_usable(client)


def test_a_wrong_raw_message_closes_the_connection(dial: Any) -> None:
    client = dial()
    shake(client, version=0)
    client.send_bytes(b"\0\0\0\x08\0alice\0x")
    assert is_closed(client)


def test_another_request_in_the_middle_of_a_login(dial: Any) -> None:
    client = dial()
    shake(client)
    assert shake(client).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert is_closed(client)
    client = dial()
    shake(client)
    assert client.request(VERSIONS, 3).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert is_closed(client)
    client = dial()
    shake(client)
    client.request(MetadataRequest(topics=[]), 12)
    assert is_closed(client)


def test_a_version_of_sasl_authenticate_that_does_not_exist(dial: Any) -> None:
    client = dial()
    shake(client)
    body = bytearray(join_parts(encode_request(SaslAuthenticateRequest(auth_bytes=PLAIN_ALICE), 2, 1, "raw")))
    body[6:8] = (9).to_bytes(2, "big")
    client.send_bytes(bytes(body))
    assert is_closed(client)


def test_frames_before_the_login_are_limited_and_later_ones_are_not(dial: Any) -> None:
    client = dial()
    client.send_bytes((RECEIVE_BYTES_MAX + 1).to_bytes(4, "big"))
    assert is_closed(client)
    client = dial()
    shake(client)
    assert authenticate(client, PLAIN_ALICE).error_code == 0
    large = MetadataRequest(topics=[])
    large.unknown_tags = [(99, bytes(2 * RECEIVE_BYTES_MAX))]
    assert client.request(large, 12).brokers


def test_a_login_where_none_is_wanted(dial: Any) -> None:
    client = dial("PLAINTEXT")
    assert shake(client).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert authenticate(client, PLAIN_ALICE).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert is_usable(client)


# Tokens of OAUTHBEARER


def test_an_unsecured_token(dial: Any) -> None:
    client, now_s = dial(), time.time()
    shake(client, "OAUTHBEARER")
    done = authenticate(client, bearer({"sub": "alice", "iat": now_s - 0.5, "exp": now_s + 60.25}))
    assert (done.error_code, done.auth_bytes) == (0, b"")
    assert 50_000 < done.session_lifetime_ms <= 60_250
    assert is_usable(client)


@pytest.mark.parametrize(
    "change",
    [
        {"exp": -1},
        {"exp": None},
        {"exp": "soon"},
        {"iat": 100},
        {"sub": None},
        {"sub": " "},
        {"sub": 7},
    ],
)
def test_a_token_that_is_not_valid(dial: Any, change: dict[str, Any]) -> None:
    client, now_s = dial(), time.time()
    shake(client, "OAUTHBEARER")
    claims = {"sub": "alice", "exp": now_s + 60} | {
        name: now_s + value if isinstance(value, int) and name != "sub" else value for name, value in change.items()
    }
    told = authenticate(client, bearer({name: value for name, value in claims.items() if value is not None}))
    assert told.error_code == 0
    assert json.loads(told.auth_bytes) == {"status": "invalid_token"}
    failed = authenticate(client, b"\x01")
    assert (failed.error_code, json.loads(failed.error_message)) == (
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        {"status": "invalid_token"},
    )
    assert is_closed(client)


@pytest.mark.parametrize("message", [b"", b"n,,\x01\x01", b"x"])
def test_no_message_of_oauthbearer(dial: Any, message: bytes) -> None:
    client = dial()
    shake(client, "OAUTHBEARER")
    assert authenticate(client, message).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert is_closed(client)


def test_an_authorization_id_that_is_not_the_tokens(dial: Any) -> None:
    client = dial()
    shake(client, "OAUTHBEARER")
    failed = authenticate(client, bearer({"sub": "alice", "exp": time.time() + 60}, authorization_id="bob"))
    assert failed.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


# Sessions


def logged_in(dial: Any, version: int = 2) -> RawClient:
    client: RawClient = dial("SHORT")
    shake(client)
    done = authenticate(client, PLAIN_ALICE, version)
    assert done.error_code == 0
    if version:
        assert done.session_lifetime_ms == SESSION_MS
    return client


def test_a_login_again_keeps_the_session(dial: Any) -> None:
    client = logged_in(dial)
    until_s = time.monotonic() + 2 * SESSION_MS / 1000
    while time.monotonic() < until_s:
        assert shake(client).error_code == 0
        assert authenticate(client, PLAIN_ALICE).session_lifetime_ms == SESSION_MS
        assert is_usable(client)
        time.sleep(1.05)  # one login in a second is what a connection may try


def test_two_logins_within_a_second(dial: Any) -> None:
    client = logged_in(dial)
    assert shake(client).error_code == 0
    assert authenticate(client, PLAIN_ALICE).error_code == 0
    assert shake(client).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert is_usable(client)


@pytest.mark.parametrize("version", [0, 2])
def test_an_expired_session_ends_at_its_next_request(dial: Any, version: int) -> None:
    client = logged_in(dial, version)
    time.sleep(SESSION_MS / 1000 + 0.1)
    client.send(MetadataRequest(topics=[]), 12)
    assert is_closed(client)


def test_a_login_after_the_session_has_expired(dial: Any) -> None:
    client = logged_in(dial)
    time.sleep(SESSION_MS / 1000 + 0.1)
    assert shake(client).error_code == 0
    assert authenticate(client, PLAIN_ALICE).error_code == 0
    assert is_usable(client)


@pytest.mark.parametrize("message", [PLAIN_BOB, b"\0alice\0wrong"])
def test_another_user_or_a_wrong_password_later(dial: Any, message: bytes) -> None:
    client = logged_in(dial)
    shake(client)
    assert authenticate(client, message).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert is_closed(client)


def test_another_mechanism_later(dial: Any) -> None:
    client = logged_in(dial)
    assert shake(client, "SCRAM-SHA-256").error_code == 0
    client.send(SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=x"), 2)
    assert is_closed(client)


def test_an_unknown_mechanism_later(dial: Any) -> None:
    client = logged_in(dial)
    client.send(SaslHandshakeRequest(mechanism="X"), 1)
    assert is_closed(client)


def test_another_request_in_the_middle_of_a_later_login(dial: Any) -> None:
    client = logged_in(dial)
    shake(client)
    assert client.request(VERSIONS, 3).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert is_closed(client)


# Secrets


def test_no_secret_is_logged(sasl_server: KafkaServer, dial: Any) -> None:
    """After all these logins, right and wrong ones."""
    client = dial()
    shake(client)
    authenticate(client, b"\0alice\0a-wrong-secret")
    log = sasl_server.log_text()
    for secret in (ALICES_PASSWORD, "bob-secret", "admin-secret", "a-wrong-secret", "a key for tests"):
        assert secret not in log
