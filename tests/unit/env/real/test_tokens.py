"""Tokens from a token endpoint over HTTP and TLS, and from files."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from time import time

import pytest
from tests.support.servers.tls_server import make_certificates
from tests.support.servers.token_endpoint import CLIENT_ID, CLIENT_SECRET, token_endpoint
from tests.support.servers.token_endpoint import TokenEndpoint as Server

from ottla.env.real.tokens import RealTokenSources
from ottla.env.tls import TlsOptions
from ottla.env.tokens import TokenEndpoint, TokenFailed

SOURCES = RealTokenSources()


@pytest.fixture
def server() -> Iterator[Server]:
    with token_endpoint() as running:
        yield running


def options(server: Server, **others: object) -> TokenEndpoint:
    return TokenEndpoint(server.url, CLIENT_ID, CLIENT_SECRET, "kafka")._replace(**others)  # type: ignore[arg-type]


def failure(asked: TokenEndpoint) -> str:
    with pytest.raises(TokenFailed) as caught:
        SOURCES.from_endpoint(asked)
    assert CLIENT_SECRET not in str(caught.value)
    assert CLIENT_SECRET not in repr(asked)
    return str(caught.value)


def test_client_credentials(server: Server) -> None:
    token, expiry_s = SOURCES.from_endpoint(options(server))
    assert token.count(".") == 2
    assert expiry_s == pytest.approx(time() + 3600, abs=60)
    assert server.forms == [{"grant_type": "client_credentials", "scope": "kafka"}]


def test_id_and_secret_are_url_encoded_if_asked_for(server: Server) -> None:
    text = failure(options(server, urlencode=True))  # this server wants them as they are
    assert "answered 401 Unauthorized (invalid_client: no such client): check the URL, the client id, its secret" in text
    assert server.requests == 1


def test_a_busy_endpoint_is_asked_again(server: Server) -> None:
    server.failures = [503, 429, 500]
    SOURCES.from_endpoint(options(server, backoff_ms=1))
    assert server.requests == 4


def test_attempts_end(server: Server) -> None:
    server.failures = [503] * 1000
    text = failure(options(server, backoff_ms=100, backoff_max_ms=1500))  # a first attempt takes 0.3 s on a busy machine
    assert "answered 503 Service Unavailable (temporarily_unavailable: the test wants it)" in text
    assert "attempts)" in text
    assert 3 <= server.requests <= 10


def test_redirects_are_not_followed(server: Server) -> None:
    server.failures = [302]
    assert "it redirects to http://elsewhere.example/token; give that address itself" in failure(options(server))


@pytest.mark.parametrize(
    ("answer", "words"),
    [(b"<html>", "answered no JSON"), (b"[]", "without access_token"), (b'{"access_token": 5}', "without access_token")],
)
def test_answers_that_are_no_token(server: Server, answer: bytes, words: str) -> None:
    server.answer = answer
    assert words in failure(options(server))


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    asked = TokenEndpoint(f"http://127.0.0.1:{port}/t", "me", "s", backoff_max_ms=1)
    with pytest.raises(TokenFailed, match=r"cannot be reached: connection refused\. Check the URL and the network"):
        SOURCES.from_endpoint(asked)


def test_a_silent_endpoint() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        asked = TokenEndpoint(f"http://127.0.0.1:{silent.getsockname()[1]}/t", "me", "s", read_timeout_ms=50, backoff_max_ms=1)
        with pytest.raises(TokenFailed, match=r"no answer in time \(connecting within 10000 ms, an answer within 50 ms\)"):
            SOURCES.from_endpoint(asked)


def test_tls(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server.certificate, certificates.server.key)
    with token_endpoint(context) as server:
        trusting = TlsOptions(ca=str(certificates.authority.certificate))
        assert SOURCES.from_endpoint(options(server, tls=trusting))[0]
        text = failure(options(server))
        assert "its certificate is not trusted" in text
        assert "name its authority by the option ssl.truststore.location of sasl.jaas.config" in text
        assert "there is no such file" in failure(options(server, tls=TlsOptions(ca=str(tmp_path / "none.pem"))))
        plain = options(server)._replace(url=server.url.replace("https", "http"), backoff_max_ms=1)
        assert "cannot be reached" in failure(plain)


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with pytest.raises(TokenFailed, match="does not exist: check the path, and that it is mounted"):
        SOURCES.from_file(str(file))
    file.write_text("\n")
    with pytest.raises(TokenFailed, match="is empty"):
        SOURCES.from_file(str(file))
    file.write_text("abc\n")
    assert SOURCES.from_file(str(file)) == "abc"
    with pytest.raises(TokenFailed, match="cannot be read"):
        SOURCES.from_file(str(tmp_path))
