"""The TLS contexts of streams and listeners: from `TlsOptions` to an `ssl.SSLContext`, with errors that name option and file.

All files are read here, before OpenSSL gets them, because its own errors do not name the file. A context is cached by what was
read: a new connection costs two small files, not a new context, and a renewed certificate gives a new one. Reading and building
block, so `RealNetwork` does both in a worker thread.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from stat import S_ISREG
from typing import Any

from ottla.env.real.keystores import KeystoreError, is_keystore, read_keystore
from ottla.env.tls import ShownCertificate, TlsFailed, TlsOptions

PEM_SIGN = "-----BEGIN"
CERTIFICATE_SIGN = "-----BEGIN CERTIFICATE-----"
KEY_SIGN = "PRIVATE KEY-----"
CONTEXTS_MAX = 32
FILE_BYTES_MAX = 1 << 20
_ROUNDS_MAX = 10
_NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME: an expired certificate is read all the same."""
KEY_SETTING = "ssl.keystore.key"
PASSWORD_SETTING = "ssl.key.password"

VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
TLS_1_3_SUITES = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")


def tls_context(options: TlsOptions) -> ssl.SSLContext:
    """The context for `options`. Raises `TlsFailed` with the option that is wrong. Reads files: it may block."""
    ca, certificate = _ca_setting(options), _certificate_setting(options)
    read = _read(options)
    try:
        return _context(read)
    except TlsFailed as failed:
        # What was read is text; the user may have given the path of a file.
        given = {_ca_setting(read): ca, _certificate_setting(read): certificate}
        failed.setting = given.get(failed.setting or "", failed.setting)
        raise


def _read(options: TlsOptions) -> TlsOptions:
    """`options` with PEM texts in place of all paths."""
    ca, certificate = _ca_setting(options), _certificate_setting(options)
    return replace(
        options,
        ca=_pem(
            "the trusted certificates", ca, options.ca, CERTIFICATE_SIGN, "certificate", lambda data: _trusted(data, options)
        ),
        certificate=_pem(
            "the certificate",
            certificate,
            options.certificate,
            CERTIFICATE_SIGN,
            "certificate",
            lambda data: _identity(data, options),
        ),
        key=_pem("the private key", KEY_SETTING, options.key, KEY_SIGN, "private key"),
        ca_password=None,
        certificate_password=None,
        server_name=None,
    )


def shown_certificate(options: TlsOptions, must_be_trusted: bool) -> ShownCertificate:
    """Whom the certificate of `options` is for, as a client sees it. Raises `TlsFailed`. Reads files."""
    server = tls_context(replace(options, client_auth="none"))
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        if not must_be_trusted:
            client.verify_flags |= _NO_CHECK_TIME
            client.load_verify_locations(cadata=_certificates(options))
        elif options.ca is None:
            client.load_default_certs()
        else:
            client.load_verify_locations(cadata=_trusted_text(options))
        return _seen(server, client)
    except ssl.SSLError as error:
        reason = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else _reason(error)
        raise TlsFailed(
            f"the trusted certificates (ssl.truststore) do not accept the certificate: {reason}",
            setting=_certificate_setting(options),
        ) from None


def _seen(server: ssl.SSLContext, client: ssl.SSLContext) -> ShownCertificate:
    """Shake hands in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server)
    far = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(_ROUNDS_MAX):
        for side in (near, far):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            if side is near:
                found: Any = near.getpeercert() or {}
                names = sorted(f"{kind}:{name}" for kind, name in found.get("subjectAltName", ()))
                return ShownCertificate(found.get("subject", ()), tuple(names))
    raise TlsFailed("the certificate cannot be used: a handshake with it does not end")


def _certificates(options: TlsOptions) -> str:
    """The certificates of the key store, without the key."""
    text = _read(options).certificate or ""
    blocks = text.split(CERTIFICATE_SIGN)[1:]
    end = CERTIFICATE_SIGN.replace("BEGIN", "END")
    return "".join(f"{CERTIFICATE_SIGN}{block.partition(end)[0]}{end}\n" for block in blocks)


def _trusted_text(options: TlsOptions) -> str:
    return _read(options).ca or ""


def _ca_setting(options: TlsOptions) -> str:
    return "ssl.truststore.certificates" if PEM_SIGN in (options.ca or "") else "ssl.truststore.location"


def _certificate_setting(options: TlsOptions) -> str:
    return "ssl.keystore.certificate.chain" if PEM_SIGN in (options.certificate or "") else "ssl.keystore.location"


@lru_cache(CONTEXTS_MAX)
def _context(options: TlsOptions) -> ssl.SSLContext:
    if options.client_auth is None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = options.check_hostname
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = CLIENT_AUTH.get(options.client_auth, ssl.CERT_NONE)
        # As Kafka's, sessions are not resumed: a certificate that was revoked meanwhile would go unnoticed.
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    # As in Java, a trusted certificate need not be a root: a broker's own certificate can be trusted directly.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _set_versions_and_ciphers(context, options)
    if options.ca is None:
        if context.verify_mode != ssl.CERT_NONE:
            is_client = options.client_auth is None
            context.load_default_certs(ssl.Purpose.SERVER_AUTH if is_client else ssl.Purpose.CLIENT_AUTH)
    else:
        try:
            context.load_verify_locations(cadata=options.ca)
        except (ssl.SSLError, ValueError) as error:
            raise TlsFailed(
                f"the trusted certificates (ssl.truststore) cannot be read: {_reason(error)}", setting=_ca_setting(options)
            ) from None
    if options.certificate is not None:
        _load_certificate(context, options, options.certificate)
    elif options.client_auth is not None:
        raise TlsFailed(
            "a TLS listener needs a certificate with its private key: set ssl.keystore.location, or both "
            "ssl.keystore.certificate.chain and ssl.keystore.key",
            setting="ssl.keystore.location",
        )
    elif options.key is not None:
        raise TlsFailed(
            "there is a private key but no certificate: give the certificate too (ssl.keystore.certificate.chain)",
            setting="ssl.keystore.certificate.chain",
        )
    return context


def _trusted(data: bytes, options: TlsOptions) -> str:
    found = read_keystore(data, options.ca_password).trusted
    if not found:
        raise KeystoreError("the store has no trusted certificate: add one with keytool -importcert")
    return found


def _identity(data: bytes, options: TlsOptions) -> str:
    found = read_keystore(data, options.certificate_password, options.key_password).identity
    if not found:
        raise KeystoreError("the store has no private key: a certificate needs one")
    return found


def _pem(
    what: str,
    setting: str,
    value: str | None,
    sign: str,
    wanted: str,
    from_keystore: Callable[[bytes], str] | None = None,
) -> str | None:
    """The PEM text of an option that is a text or a path. `from_keystore` makes it of Java's key stores."""
    if value is None:
        return None
    if PEM_SIGN in value:
        text, where = value, f"{what} ({setting})"
    else:
        where = f"{what} ({setting}), file {value}"
        try:
            if not S_ISREG(os.stat(value).st_mode):
                raise TlsFailed(f"{where}: it cannot be read: this is no file", setting=setting)
            with open(value, "rb") as file:
                data = file.read(FILE_BYTES_MAX + 1)
        except TlsFailed:
            raise
        except FileNotFoundError:
            raise TlsFailed(f"{where}: there is no such file. Check the path", setting=setting) from None
        except OSError as error:
            raise TlsFailed(f"{where}: it cannot be read: {error.strerror or error}", setting=setting) from None
        if len(data) > FILE_BYTES_MAX:
            raise TlsFailed(f"{where}: it has more than {FILE_BYTES_MAX} bytes: this is no store", setting=setting)
        if is_keystore(data):
            if from_keystore is None:
                raise TlsFailed(
                    f"{where}: this is a binary file, and only PEM can be used. Convert it with openssl", setting=setting
                )
            try:
                return from_keystore(data)
            except KeystoreError as error:
                raise TlsFailed(f"{where}: {error}", setting=setting) from None
        text = data.decode("utf-8", "replace")
    if sign not in text:
        raise TlsFailed(
            f"{where}: there is no {wanted} in PEM form in it (a block that begins with {PEM_SIGN})", setting=setting
        )
    return text


def _load_certificate(context: ssl.SSLContext, options: TlsOptions, certificate: str) -> None:
    key, password = options.key, options.key_password
    key_setting = _certificate_setting(options) if key is None else KEY_SETTING
    asked: list[bool] = []

    def give_password() -> str:
        # A function, because OpenSSL asks on the terminal when a key has a password and none was given.
        asked.append(True)
        return password or ""

    if key is None and KEY_SIGN not in certificate:
        raise TlsFailed(
            "the certificate comes without its private key: give the key too (ssl.keystore.key)", setting=key_setting
        )
    try:
        with _as_file(f"{certificate}\n{key or ''}") as path:
            context.load_cert_chain(path, password=give_password)
    except ssl.SSLError as error:
        if asked and not password:
            raise TlsFailed(
                "the private key is encrypted: give its password (ssl.key.password)", setting=PASSWORD_SETTING
            ) from None
        if error.reason == "KEY_VALUES_MISMATCH":
            raise TlsFailed(
                f"the private key ({key_setting}) does not belong to its certificate: check that the two are a pair",
                setting=key_setting,
            ) from None
        if asked:
            raise TlsFailed(
                "the private key cannot be decrypted: the password is wrong (ssl.key.password)",
                setting=PASSWORD_SETTING,
            ) from None
        raise TlsFailed(f"the certificate or its private key cannot be used: {_reason(error)}", setting=key_setting) from None


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """A path to read `text` from, for OpenSSL, which loads keys from files only. In memory where the system can."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("ottla-tls")
        path = f"/proc/self/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp(prefix="ottla-tls-")
    try:
        with open(descriptor, "w", closefd=False) as file:
            file.write(text)
        yield path
    finally:
        os.close(descriptor)
        if not path.startswith("/proc/"):
            os.unlink(path)


def _set_versions_and_ciphers(context: ssl.SSLContext, options: TlsOptions) -> None:
    unknown = [each for each in options.versions if each not in VERSIONS]
    if unknown or not options.versions:
        what = f"{unknown[0]} is no TLS version" if unknown else "no TLS version is allowed"
        raise TlsFailed(f"{what} (ssl.enabled.protocols): choose among {', '.join(VERSIONS)}", setting="ssl.enabled.protocols")
    allowed = {VERSIONS[each] for each in options.versions}
    if options.ciphers:
        older = [each for each in options.ciphers if each not in TLS_1_3_SUITES]
        # A suite belongs to TLS 1.3 or to the versions before it. `refused_suite` checks which one of TLS 1.3's was chosen.
        if not older:
            allowed &= {ssl.TLSVersion.TLSv1_3}
        elif len(older) == len(options.ciphers):
            allowed -= {ssl.TLSVersion.TLSv1_3}
        if not allowed:
            raise TlsFailed(
                f"no allowed cipher suite ({', '.join(options.ciphers)}) works with an allowed TLS version "
                f"({', '.join(options.versions)}): change ssl.cipher.suites or ssl.enabled.protocols",
                setting="ssl.cipher.suites",
            )
        if older:
            _set_ciphers(context, older)
    context.minimum_version = min(allowed)
    context.maximum_version = max(allowed)


def _set_ciphers(context: ssl.SSLContext, suites: list[str]) -> None:
    names = [openssl_name(each) for each in suites]
    for suite, name in zip(suites, names, strict=True):
        try:
            context.set_ciphers(name)  # one at a time first: in a list, unknown names are ignored
        except ssl.SSLError:
            raise TlsFailed(
                f"the cipher suite {suite} (ssl.cipher.suites) is not known to {ssl.OPENSSL_VERSION}",
                setting="ssl.cipher.suites",
            ) from None
    context.set_ciphers(":".join(names))


def openssl_name(suite: str) -> str:
    """OpenSSL's name of a cipher suite before TLS 1.3 that is spelt as in Java: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256."""
    if "_WITH_" not in suite:
        return suite
    exchange, _, cipher = suite.removeprefix("TLS_").removeprefix("SSL_").partition("_WITH_")
    cipher = cipher.replace("AES_128", "AES128").replace("AES_256", "AES256").replace("_CBC", "")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    return (cipher if exchange == "RSA" else f"{exchange}_{cipher}").replace("_", "-")


def refused_suite(options: TlsOptions, chosen: str) -> str | None:
    """Why the suite that the handshake chose is not allowed; None: it is. Python cannot limit those of TLS 1.3 beforehand."""
    allowed = [openssl_name(each) for each in options.ciphers]
    if not allowed or chosen not in TLS_1_3_SUITES or chosen in allowed:
        return None
    return f"the handshake chose the cipher suite {chosen}, and only {', '.join(allowed)} are allowed (ssl.cipher.suites)"


def _reason(error: ssl.SSLError | ValueError) -> str:
    reason = getattr(error, "reason", None)
    return str(reason).lower().replace("_", " ") if reason else str(error)
