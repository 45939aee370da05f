"""An OAuth 2.0 token endpoint on a loopback port, which counts what it hands out.

with token_endpoint() as endpoint:
    Producer(..., sasl_oauthbearer_token_endpoint_url=endpoint.url)
"""

import json
import ssl
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import time
from typing import Any
from urllib.parse import parse_qs

CLIENT_ID, CLIENT_SECRET = "pipeline", "s3cret of/the=pipeline"


def unsigned_token(lifetime_s: float = 3600, **claims: Any) -> str:
    """A token that Apache Kafka takes where it has no key to check signatures."""
    now_s = time()
    body = {"sub": "alice", "iat": now_s, "exp": now_s + lifetime_s, **claims}
    parts = (urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({"alg": "none"}, body))
    return ".".join(parts) + "."


class TokenEndpoint:
    """What the endpoint does, and what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.lifetime_s = 3600.0
        self.forms: list[dict[str, str]] = []
        """The form of each request that was answered with a token."""
        self.requests = 0
        self.failures: list[int] = []
        """The statuses of the next answers."""
        self.answer: bytes | None = None
        """What is answered instead of a token."""

    def settings(self) -> dict[str, str]:
        """For a client: by Kafka's names."""
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": self.url,
            "sasl.oauthbearer.client.credentials.client.id": CLIENT_ID,
            "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
            "sasl.oauthbearer.scope": "kafka",
        }

    def respond(self, headers: Mapping[str, str], form: str) -> tuple[int, bytes]:
        self.requests += 1
        if self.failures:
            error = {"error": "temporarily_unavailable", "error_description": "the test wants it"}
            return self.failures.pop(0), json.dumps(error).encode()
        user = b64decode(headers["Authorization"].removeprefix("Basic ")).decode()
        if user != f"{CLIENT_ID}:{CLIENT_SECRET}":
            return 401, b'{"error": "invalid_client", "error_description": "no such client"}'
        self.forms.append({name: values[0] for name, values in parse_qs(form).items()})
        answer = {"access_token": unsigned_token(self.lifetime_s, jti=str(self.requests)), "expires_in": self.lifetime_s}
        return 200, self.answer if self.answer is not None else json.dumps(answer).encode()


@contextmanager
def token_endpoint(tls: ssl.SSLContext | None = None) -> Iterator[TokenEndpoint]:
    endpoint = TokenEndpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, body = endpoint.respond(self.headers, form)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", "http://elsewhere.example/token")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    endpoint.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}/token"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
