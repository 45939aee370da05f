"""The client side of SCRAM (RFC 5802, RFC 7677) without IO: three messages, and the proof that the server knows the password.

    client-first  n,,n=user,r=nonce
    server-first  r=nonce+,s=salt,i=iterations
    client-final  c=biws,r=nonce+,p=proof
    server-final  v=signature, or e=error

User names and passwords are sent and hashed as UTF-8 as they are. RFC 5802 asks for SASLprep first, but Kafka's clients,
brokers and kafka-configs leave it out: with it, a password that SASLprep changes could never log in.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Final

ITERATIONS_MIN: Final = 4096
"""What RFC 7677 and Kafka demand. Fewer would make a captured login easy to guess from."""

ITERATIONS_MAX: Final = 1 << 20
"""A server must not keep us busy: 64 times what Kafka allows."""

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_NO_CHANNEL_BINDING: Final = "n,,"


class ScramFault(Exception):
    """The server's message is wrong, or proves that it does not know the password."""


class ScramClient:
    """One login. Call `first`, `final` and `verify` in this order, once each."""

    __slots__ = ("_bare", "_hash", "_nonce", "_password", "_signature")

    def __init__(self, mechanism: str, username: str, password: str, nonce: str, extensions: str = "") -> None:
        self._hash = HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        self._bare = f"n={escaped(username)},r={nonce}{extensions and ','}{extensions}"
        self._signature = b""

    def first(self) -> bytes:
        return f"{_NO_CHANNEL_BINDING}{self._bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        """The proof that we know the password, for the server's salt."""
        text = _text(server_first)
        fields = _fields(text)
        nonce, salt, iterations = fields.get("r", ""), _bytes(fields, "s"), fields.get("i", "")
        if "m" in fields:
            raise ScramFault("it demands a SCRAM extension that is not known here")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ScramFault("its nonce does not continue ours")
        if not iterations.isascii() or not iterations.isdigit() or not ITERATIONS_MIN <= int(iterations) <= ITERATIONS_MAX:
            raise ScramFault(
                f"it asks for {iterations or 'no'} iterations, and {ITERATIONS_MIN} to {ITERATIONS_MAX} are allowed"
            )
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, int(iterations))
        without_proof = f"c={b64encode(_NO_CHANNEL_BINDING.encode()).decode()},r={nonce}"
        signed = f"{self._bare},{text},{without_proof}".encode()
        client_key = self._hmac(salted, b"Client Key")
        client_signature = self._hmac(hashlib.new(self._hash, client_key).digest(), signed)
        proof = bytes(one ^ other for one, other in zip(client_key, client_signature, strict=True))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """Check that the server knows the password too. Raises `ScramFault`."""
        fields = _fields(_text(server_final))
        if "e" in fields:
            raise ScramFault(f"it says {fields['e']}")
        if not self._signature or not hmac.compare_digest(_bytes(fields, "v"), self._signature):
            raise ScramFault("it cannot prove that it knows the password, so it may not be the node that it claims to be")

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def escaped(name: str) -> str:
    """`name` without the characters that separate fields."""
    return name.replace("=", "=3D").replace(",", "=2C")


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramFault("its message is not UTF-8") from None


def _fields(text: str) -> dict[str, str]:
    """The fields `x=value`, separated by commas."""
    fields: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or len(name) != 1 or name in fields:
            raise ScramFault("its message is no SCRAM message")
        fields[name] = value
    return fields


def _bytes(fields: dict[str, str], name: str) -> bytes:
    try:
        value = b64decode(fields.get(name, ""), validate=True)
    except (Base64Error, ValueError):
        raise ScramFault(f"its field {name} is not Base64") from None
    if not value:
        raise ScramFault(f"its message lacks the field {name}")
    return value
