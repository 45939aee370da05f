"""Parses `format --add-scram`: turns Kafka's notation into the record of a SCRAM credential.

    SCRAM-SHA-256=[name=alice,password=secret]
    SCRAM-SHA-512=[name=alice,iterations=8192,salt="N3E=",saltedpassword="YCE="]

The record has what `metadata/scram.py` makes of the password. Pure. No error text repeats a password.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

from ottla.errors import OttlaError
from ottla.metadata.scram import ITERATIONS_MAX, ITERATIONS_MIN, MECHANISMS, keys_of, salted_password
from ottla.wire.messages.metadata_records import UserScramCredentialRecord

FORM = "SCRAM-SHA-256=[name=alice,password=secret]"
_WORDS = ("name", "password", "iterations", "salt", "saltedpassword")


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
        salted = salted_password(mechanism.hash_name, words["password"].encode(), salt, iterations)
    elif "saltedpassword" not in words:
        raise BadScramArgument("--add-scram needs a password=…, or a saltedpassword=… with its salt=…")
    elif "salt" not in words:
        raise BadScramArgument("--add-scram with saltedpassword needs the salt it was made with: add salt=…")
    else:
        salted = _decoded(words, "saltedpassword")
    keys = keys_of(mechanism.hash_name, salted)
    return UserScramCredentialRecord(
        name=words["name"],
        mechanism=mechanism.number,
        salt=salt,
        stored_key=keys.stored_key,
        server_key=keys.server_key,
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
