"""Parses `format --add-scram`: turns Kafka's notation into the record of a SCRAM credential.

    SCRAM-SHA-256=[name=alice,password=secret]
    SCRAM-SHA-512=[name=alice,iterations=8192,salt="N3E=",saltedpassword="YCE="]

The record has the stored key and server key of RFC 5802: neither the password nor anything that could be used in its place.
Pure. No error text repeats a password.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from typing import NamedTuple

from ottla.errors import OttlaError
from ottla.wire.messages.metadata_records import UserScramCredentialRecord

ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384
FORM = "SCRAM-SHA-256=[name=alice,password=secret]"
_WORDS = ("name", "password", "iterations", "salt", "saltedpassword")


class Mechanism(NamedTuple):
    """A mechanism's number in records, and its hash."""

    number: int
    hash_name: str


MECHANISMS = {"SCRAM-SHA-256": Mechanism(1, "sha256"), "SCRAM-SHA-512": Mechanism(2, "sha512")}


class BadScramArgument(OttlaError):
    """An invalid `--add-scram` argument."""


def parse_scram(argument: str, new_salt: Callable[[], bytes]) -> UserScramCredentialRecord:
    """The record for `argument`. `new_salt` is called if the argument has no salt."""
    mechanism_name, equals, rest = argument.strip().partition("=")
    mechanism = MECHANISMS.get(mechanism_name)
    if not equals or mechanism is None:
        raise BadScramArgument(
            f"--add-scram begins with a mechanism, {' or '.join(MECHANISMS)}, and an equals sign, such as {FORM}"
        )
    if not rest.startswith("[") or not rest.endswith("]"):
        raise BadScramArgument(f"--add-scram {mechanism_name} needs brackets around the rest, such as {FORM}")
    words = _words(rest[1:-1])
    if not words.get("name"):
        raise BadScramArgument(f"--add-scram {mechanism_name} does not say whose login it is: add name=…")
    iterations = _iterations(words.get("iterations"))
    salt = _decoded(words, "salt") if "salt" in words else new_salt()
    if "password" in words:
        salted = hashlib.pbkdf2_hmac(mechanism.hash_name, words["password"].encode(), salt, iterations)
    elif "saltedpassword" not in words:
        raise BadScramArgument("--add-scram needs a password=…, or a saltedpassword=… with its salt=…")
    elif "salt" not in words:
        raise BadScramArgument("--add-scram with saltedpassword needs the salt it was made with: add salt=…")
    else:
        salted = _decoded(words, "saltedpassword")
    client_key = hmac.digest(salted, b"Client Key", mechanism.hash_name)
    return UserScramCredentialRecord(
        name=words["name"],
        mechanism=mechanism.number,
        salt=salt,
        stored_key=hashlib.new(mechanism.hash_name, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", mechanism.hash_name),
        iterations=iterations,
    )


def _words(text: str) -> dict[str, str]:
    words: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or name not in _WORDS:
            raise BadScramArgument(f"--add-scram knows {', '.join(_WORDS)}, each with an equals sign, and no {name!r}")
        if len(value) >= 2 and value.startswith('"') and value.endswith('"'):
            value = value[1:-1]
        words[name] = value
    return words


def _iterations(text: str | None) -> int:
    if text is None:
        return ITERATIONS_MIN
    if not text.isascii() or not text.isdigit() or not ITERATIONS_MIN <= int(text) <= ITERATIONS_MAX:
        raise BadScramArgument(f"--add-scram: iterations must be a number from {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    return int(text)


def _decoded(words: dict[str, str], name: str) -> bytes:
    try:
        return base64.b64decode(words[name], validate=True)
    except binascii.Error:
        raise BadScramArgument(f"--add-scram: {name} must be Base64") from None
