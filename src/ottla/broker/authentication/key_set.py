"""Key sets (JWKS, RFC 7517) and the signatures of tokens made with them (RFC 7518): RSA and elliptic curves.

Needs `cryptography` (`pip install 'ottla[security]'`), which is imported when the first key set is read. Symmetric keys and
`none` are never accepted: who may check such a signature may make one, too. Pure.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

KEYS_MAX: Final = 1000
RSA_BITS_MIN: Final = 2048
_RSA: Final = {f"{kind}{bits}": bits for kind in ("RS", "PS") for bits in (256, 384, 512)}
_CURVES: Final = {"ES256": ("P-256", 256), "ES384": ("P-384", 384), "ES512": ("P-521", 512)}
ALGORITHMS: Final = (*_RSA, *_CURVES)
_TRIED_MAX: Final = 10
"""So many keys are tried for a token that does not name its key."""


class InvalidKeySet(ValueError):
    """What was read is no key set."""


class Key(NamedTuple):
    """One key that signs."""

    id: str | None
    algorithm: str | None
    """The only one it is for; None: every one of its kind."""
    public: RSAPublicKey | EllipticCurvePublicKey
    curve: str | None


class KeySet:
    """The keys of one issuer at one time. Never changed."""

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._keys = tuple(keys)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(key.id for key in self._keys if key.id is not None)

    def __len__(self) -> int:
        return len(self._keys)

    def verify(self, algorithm: str, key_id: str | None, signed: bytes, signature: bytes) -> str | None:
        """None if one of the keys made `signature`; else why none did, for the log."""
        if algorithm not in ALGORITHMS:
            return f"its algorithm is {algorithm[:20]!r}, and must be one of {', '.join(ALGORITHMS)}"
        curve = _CURVES[algorithm][0] if algorithm in _CURVES else None
        keys = [
            key for key in self._keys if key_id in (None, key.id) and key.curve == curve and key.algorithm in (None, algorithm)
        ]
        if not keys:
            return f"no key of the key set has the id {(key_id or '')[:40]!r} and is for {algorithm}"
        if any(_is_signed(key, algorithm, signed, signature) for key in keys[:_TRIED_MAX]):
            return None
        return "its signature is wrong"


def parse_key_set(text: str | bytes) -> KeySet:
    """The keys of a JWKS document that sign; others are left out. Raises `InvalidKeySet`."""
    try:
        found = json.loads(text)
        entries = found["keys"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidKeySet("it is no JSON object with a list `keys`") from None
    if not isinstance(entries, list) or len(entries) > KEYS_MAX:
        raise InvalidKeySet(f"its `keys` must be a list of at most {KEYS_MAX}")
    keys = [key for entry in entries if isinstance(entry, dict) and (key := _key(entry)) is not None]
    if not keys:
        raise InvalidKeySet(f"it has no key that can check signatures of {', '.join(ALGORITHMS)}")
    return KeySet(keys)


def _key(entry: dict[str, Any]) -> Key | None:
    """A key that signs; None for others, and for what cannot be read."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa  # late: few nodes check tokens

    key_id, algorithm = entry.get("kid"), entry.get("alg")
    if entry.get("use", "sig") != "sig" or not isinstance(key_id, str | None) or not isinstance(algorithm, str | None):
        return None
    try:
        if entry.get("kty") == "RSA":
            numbers = rsa.RSAPublicNumbers(_number(entry["e"]), _number(entry["n"]))
            public = numbers.public_key()
            return Key(key_id, algorithm, public, None) if public.key_size >= RSA_BITS_MIN else None
        if entry.get("kty") == "EC":
            curves: dict[str, ec.EllipticCurve] = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}
            name = entry["crv"]
            point = ec.EllipticCurvePublicNumbers(_number(entry["x"]), _number(entry["y"]), curves[name])
            return Key(key_id, algorithm, point.public_key(), name)
    except (ValueError, KeyError, TypeError):
        pass
    return None


def _number(text: str) -> int:
    return int.from_bytes(urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")


def _is_signed(key: Key, algorithm: str, signed: bytes, signature: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    bits = _RSA.get(algorithm) or _CURVES[algorithm][1]
    digest = {256: hashes.SHA256(), 384: hashes.SHA384(), 512: hashes.SHA512()}[bits]
    try:
        if isinstance(key.public, rsa.RSAPublicKey):
            pad = padding.PSS(padding.MGF1(digest), digest.digest_size) if algorithm.startswith("PS") else padding.PKCS1v15()
            key.public.verify(signature, signed, pad, digest)
        else:
            size = (key.public.key_size + 7) // 8
            if len(signature) != 2 * size:
                return False
            r, s = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
            key.public.verify(encode_dss_signature(r, s), signed, ec.ECDSA(digest))
    except InvalidSignature:
        return False
    return True
