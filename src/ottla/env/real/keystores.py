"""Java's key stores, JKS and PKCS12, as PEM text for OpenSSL.

JKS is read here; its layout is big-endian:

    magic FEEDFEED, version (1 or 2), number of entries; at the end a SHA-1 of the password, a fixed phrase and all before it
    entry:        tag (1 key, 2 certificate), alias, time in ms, then
      key:        length, EncryptedPrivateKeyInfo (DER), number of certificates, certificates
      certificate, in version 2 its type (`X.509`), length, DER

Sun's cipher for keys is an XOR with a chain of SHA-1 values. PKCS12, which keytool writes since Java 9 whatever the file's name
is, needs the package `cryptography`. Reads no files.
"""

from __future__ import annotations

import hmac
import ssl
from base64 import encodebytes
from hashlib import sha1
from typing import NamedTuple

JKS_MAGIC = b"\xfe\xed\xfe\xed"
_JCEKS_MAGIC = b"\xce\xce\xce\xce"
_PKCS12_START = b"\x30"
_KEY, _CERTIFICATE = 1, 2
_PHRASE = b"Mighty Aphrodite"
_SUN_CIPHER = bytes.fromhex("2b060104012a02110101")
"""The object id 1.3.6.1.4.1.42.2.17.1.1."""
_DIGEST_BYTES = 20
NO_CRYPTOGRAPHY = (
    "it is a PKCS12 store, which needs the package cryptography: pip install cryptography, or convert the store to PEM"
)


class KeystoreError(ValueError):
    """A store cannot be read. The text goes after the name of the file."""


class Contents(NamedTuple):
    """What is in a store, as PEM texts."""

    trusted: str
    """The certificates that come without a key."""
    identity: str
    """The first private key, not encrypted, with its chain; empty if there is none."""


def is_keystore(data: bytes) -> bool:
    """Whether the bytes of a file are a binary store."""
    return data.startswith((JKS_MAGIC, _JCEKS_MAGIC, _PKCS12_START))


def read_keystore(data: bytes, password: str | None, key_password: str | None = None) -> Contents:
    """The store in `data`. Without a password the certificates of a JKS are read unchecked, as in Java; keys need one."""
    if data.startswith(JKS_MAGIC):
        try:
            return _read_jks(data, password, key_password)
        except (IndexError, UnicodeDecodeError):
            raise KeystoreError("it is a damaged JKS store: make it again with keytool") from None
    if data.startswith(_JCEKS_MAGIC):
        raise KeystoreError(
            "it is a JCEKS store, which is not supported: convert it with keytool -importkeystore -deststoretype PKCS12"
        )
    return _read_pkcs12(data, password)


class _Bytes:
    """Reads a store from its start to its end. Raises `IndexError` past the end."""

    def __init__(self, data: bytes) -> None:
        self._data, self.position = data, 0

    def take(self, count: int) -> bytes:
        found = self._data[self.position : self.position + count]
        if len(found) < count:
            raise IndexError
        self.position += count
        return found

    def number(self, count: int = 4) -> int:
        return int.from_bytes(self.take(count), "big")

    def text(self) -> str:
        return self.take(self.number(2)).decode()

    def der(self, tag: int) -> bytes:
        """The content of a DER element, which must have `tag`."""
        if self.number(1) != tag:
            raise IndexError
        length = self.number(1)
        return self.take(self.number(length & 0x7F) if length & 0x80 else length)


def _read_jks(data: bytes, password: str | None, key_password: str | None) -> Contents:
    if password:
        digest = sha1(_java_chars(password) + _PHRASE + data[:-_DIGEST_BYTES], usedforsecurity=False).digest()
        if not hmac.compare_digest(digest, data[-_DIGEST_BYTES:]):
            raise KeystoreError("the store's password is wrong, or the file is damaged")
    source = _Bytes(data[:-_DIGEST_BYTES])
    source.take(len(JKS_MAGIC))
    version = source.number()
    trusted: list[str] = []
    identity = ""

    def certificate() -> str:
        if version == 2:
            source.text()
        return ssl.DER_cert_to_PEM_cert(source.take(source.number()))

    for _ in range(source.number()):
        tag = source.number()
        source.text()
        source.take(8)
        if tag == _CERTIFICATE:
            trusted.append(certificate())
            continue
        if tag != _KEY:
            raise IndexError
        protected = source.take(source.number())
        chain = [certificate() for _ in range(source.number())]
        secret = key_password or password
        if not identity and secret:
            identity = _pem("PRIVATE KEY", _sun_key(protected, secret)) + "".join(chain)
        elif not identity:
            raise KeystoreError("it has a private key, which needs a password: give the store's password")
    return Contents("".join(trusted), identity)


def _sun_key(protected: bytes, password: str) -> bytes:
    """The PKCS8 key in an EncryptedPrivateKeyInfo: salt, key XOR key stream, check value."""
    outer = _Bytes(_Bytes(protected).der(0x30))
    if _Bytes(outer.der(0x30)).der(0x06) != _SUN_CIPHER:
        raise KeystoreError("its private key has a cipher that is not of JKS: make the store again with keytool")
    sealed = outer.der(0x04)
    salt, body, check = sealed[:_DIGEST_BYTES], sealed[_DIGEST_BYTES:-_DIGEST_BYTES], sealed[-_DIGEST_BYTES:]
    secret, stream, block = _java_chars(password), b"", salt
    while len(stream) < len(body):
        block = sha1(secret + block, usedforsecurity=False).digest()
        stream += block
    key = bytes(one ^ other for one, other in zip(body, stream, strict=False))
    if not hmac.compare_digest(sha1(secret + key, usedforsecurity=False).digest(), check):
        raise KeystoreError("the password of its private key is wrong (ssl.key.password, or else the store's password)")
    return key


def _java_chars(password: str) -> bytes:
    return password.encode("utf-16-be")


def _pem(kind: str, der: bytes) -> str:
    return f"-----BEGIN {kind}-----\n{encodebytes(der).decode()}-----END {kind}-----\n"


def _read_pkcs12(data: bytes, password: str | None) -> Contents:
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
    except ModuleNotFoundError:
        raise KeystoreError(NO_CRYPTOGRAPHY) from None
    try:
        found = pkcs12.load_pkcs12(data, password.encode() if password else None)
    except ValueError as error:
        why = "its password is wrong" if "password" in str(error).lower() else f"it is no PKCS12 store ({error})"
        raise KeystoreError(why if password else f"{why}: no password is given") from None
    others = "".join(each.certificate.public_bytes(Encoding.PEM).decode() for each in found.additional_certs)
    if found.key is None or found.cert is None:
        own = "" if found.cert is None else found.cert.certificate.public_bytes(Encoding.PEM).decode()
        return Contents(own + others, "")
    key = found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return Contents(others, key + found.cert.certificate.public_bytes(Encoding.PEM).decode() + others)
