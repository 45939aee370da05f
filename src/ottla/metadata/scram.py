"""SCRAM credentials as the metadata log has them: numbers of the mechanisms, bounds, and the keys made from a password.

A record has the stored key and server key of RFC 5802: neither the password nor anything that could be used in its place. Pure.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, NamedTuple

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384


class Mechanism(NamedTuple):
    """A mechanism's number in records and requests, and its hash."""

    number: int
    hash_name: str


MECHANISMS: Final = {"SCRAM-SHA-256": Mechanism(1, "sha256"), "SCRAM-SHA-512": Mechanism(2, "sha512")}
HASH_NAMES: Final = {mechanism.number: mechanism.hash_name for mechanism in MECHANISMS.values()}


class Keys(NamedTuple):
    """What a server keeps of a password."""

    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return "Keys()"


def salted_password(hash_name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """Takes milliseconds, on purpose: not for the event loop."""
    return hashlib.pbkdf2_hmac(hash_name, password, salt, iterations)


def keys_of(hash_name: str, salted: bytes) -> Keys:
    """The keys made from a salted password."""
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    return Keys(hashlib.new(hash_name, client_key).digest(), hmac.digest(salted, b"Server Key", hash_name))
