"""A small OpenID provider on a loopback port: authorization code flow with PKCE, RS256, one user who is logged in already.

with openid_provider() as provider:
    provider.claims = {"preferred_username": "ada", "groups": ["admins"]}
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

CLIENT_ID, CLIENT_SECRET = "console", "s3cret"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Provider:
    """What the provider says, and what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.claims: dict[str, Any] = {"preferred_username": "ada", "groups": ["admins"]}
        self.changed: dict[str, Any] = {}
        """Claims that tokens have in place of the right ones."""
        self.refuses: str | None = None
        self.forges = False
        """Signs with a key that is not in the key set."""
        self.codes: dict[str, dict[str, str]] = {}
        self._key = rsa.generate_private_key(65537, 2048)
        self._other = rsa.generate_private_key(65537, 2048)

    def get(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        if path == "/.well-known/openid-configuration":
            names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
            return 200, {"issuer": self.url, **{name: f"{self.url}/{each}" for name, each in names.items()}}
        if path == "/keys":
            numbers = self._key.public_key().public_numbers()
            n, e = (_encoded(each.to_bytes(-(-each.bit_length() // 8), "big")) for each in (numbers.n, numbers.e))
            return 200, {"keys": [{"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig", "n": n, "e": e}]}
        if path == "/authorize":
            if self.refuses is not None:
                return 302, f"{query['redirect_uri']}?{urlencode({'error': self.refuses, 'state': query['state']})}"
            assert query["code_challenge_method"] == "S256"
            assert query["response_type"] == "code"
            code = secrets.token_urlsafe(8)
            self.codes[code] = query
            return 302, f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"
        return 404, {}

    def post(self, path: str, form: dict[str, str]) -> tuple[int, Any]:
        begun = self.codes.pop(form.get("code", ""), None)
        if path != "/token" or begun is None:
            return 400, {"error": "invalid_grant"}
        challenge = _encoded(hashlib.sha256(form["code_verifier"].encode()).digest())
        if (form["client_id"], form.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET) or challenge != begun["code_challenge"]:
            return 400, {"error": "invalid_client"}
        if form["redirect_uri"] != begun["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        now_s = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT_ID, "sub": "1", "iat": now_s, "exp": now_s + 300, "nonce": begun["nonce"]}
        return 200, {"token_type": "Bearer", "access_token": "-", "id_token": self._signed(claims | self.claims | self.changed)}

    def _signed(self, claims: dict[str, Any]) -> str:
        parts = ".".join(_encoded(json.dumps(each).encode()) for each in ({"alg": "RS256", "kid": "1"}, claims))
        key = self._other if self.forges else self._key
        return f"{parts}.{_encoded(key.sign(parts.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


@contextmanager
def openid_provider() -> Iterator[Provider]:
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            self._answer(*provider.get(parts.path, dict(parse_qsl(parts.query))))

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._answer(*provider.post(self.path, dict(parse_qsl(data))))

        def _answer(self, status: int, found: Any) -> None:
            self.send_response(status)
            if status == 302:
                self.send_header("Location", found)
                self.end_headers()
                return
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
