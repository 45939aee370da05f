"""Turns OpenSSL's errors into texts that say what to do: whose certificate is refused, and by whom."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from typing import Any

from ottla.env.tls import TlsFailed

CERTIFICATE_NOT_YET_VALID, CERTIFICATE_EXPIRED = 9, 10
HOSTNAME_MISMATCH, ADDRESS_MISMATCH = 62, 64
_UNTRUSTED = {
    18: "it signed its certificate itself",
    19: "the root of its certificate chain is not among the trusted certificates",
    20: "the issuer of its certificate is not among the trusted certificates",
    21: "the issuer of its certificate is not among the trusted certificates",
}
_ALERTS = {
    "CERTIFICATE_REQUIRED": "asks for a client certificate: give one (ssl.keystore)",
    "BAD_CERTIFICATE": "refuses our client certificate, or asks for one and got none: check ssl.keystore",
    "UNSUPPORTED_CERTIFICATE": "refuses the kind of our client certificate: check its key usage (clientAuth)",
    "CERTIFICATE_REVOKED": "refuses our client certificate as revoked: get a new one",
    "CERTIFICATE_EXPIRED": "refuses our client certificate as expired: renew it",
    "CERTIFICATE_UNKNOWN": "refuses our client certificate: check that the node trusts its issuer (the node's ssl.truststore)",
    "UNKNOWN_CA": "does not trust the issuer of our client certificate: add it to the node's ssl.truststore",
    "ACCESS_DENIED": "denies access to our client certificate",
    "DECRYPT_ERROR": "could not verify our client certificate: check that key and certificate are a pair",
    "HANDSHAKE_FAILURE": "found no common ground: it may need a client certificate (ssl.keystore), or other cipher suites "
    "(ssl.cipher.suites)",
    "INSUFFICIENT_SECURITY": "demands stronger cipher suites (ssl.cipher.suites)",
    "PROTOCOL_VERSION": "speaks none of the allowed TLS versions: check ssl.enabled.protocols on both sides",
    "UNRECOGNIZED_NAME": "does not know itself by the server name that we sent",
}
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL")
_OTHER_VERSION = ("UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS_AVAILABLE", "VERSION_TOO_LOW")


def is_wrong_name(error: ssl.SSLError) -> bool:
    """Whether the peer's certificate is trusted but made out to another host."""
    return isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in (HOSTNAME_MISMATCH, ADDRESS_MISMATCH)


def is_no_tls(error: OSError) -> bool:
    """Whether the peer has sent something else than TLS."""
    return isinstance(error, ssl.SSLError) and error.reason in _NO_TLS


def explain(address: str, error: ssl.SSLError) -> TlsFailed:
    """The error for a TLS connection to `address` that failed, other than for the peer's name."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _explain_certificate(address, error.verify_code, error.verify_message)
    reason = error.reason or str(error)
    _, is_alert, alert = reason.partition("_ALERT_")
    says = _ALERTS.get(alert if is_alert else reason.removeprefix("TLSV1_"))
    if says is not None:
        return TlsFailed(f"{address} {says}")
    if reason in _NO_TLS:
        return TlsFailed(
            f"{address} does not speak TLS: it may be a PLAINTEXT or SASL_PLAINTEXT listener. Give the port of an SSL or "
            "SASL_SSL listener, or connect without TLS (security.protocol)"
        )
    if reason in _OTHER_VERSION:
        return TlsFailed(f"{address} {_ALERTS['PROTOCOL_VERSION']}")
    return TlsFailed(f"TLS with {address} failed: {reason.lower().replace('_', ' ')}; the log of the node may say why")


_CLIENT_ALERTS = {
    "UNKNOWN_CA": "it does not trust the issuer of our certificate: its trust store (ssl.truststore) lacks it",
    "CERTIFICATE_UNKNOWN": "it refuses our certificate: its trust store lacks the issuer, or the certificate is not for the "
    "host name that it connects to",
    "BAD_CERTIFICATE": "it refuses our certificate: it is not for the host name that the client connects to, or not valid",
    "CERTIFICATE_EXPIRED": "it says that our certificate has expired: renew it",
    "PROTOCOL_VERSION": "it speaks none of the allowed TLS versions (ssl.enabled.protocols)",
    "HANDSHAKE_FAILURE": "it found no cipher suite in common (ssl.cipher.suites)",
}


def explain_client(error: ssl.SSLError) -> TlsFailed:
    """The error for a TLS connection that a client has begun and that failed: a text that goes after "TLS failed: "."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsFailed(f"its certificate is refused: {error.verify_message} (ssl.truststore of this listener decides)")
    reason = error.reason or str(error)
    _, is_alert, alert = reason.partition("_ALERT_")
    if is_alert:
        return TlsFailed(_CLIENT_ALERTS.get(alert, f"it ended the handshake: {alert.lower().replace('_', ' ')}"))
    if reason in _NO_TLS:
        return TlsFailed(
            "it does not speak TLS, and this listener does: set security.protocol of the client to SSL or SASL_SSL"
        )
    if reason in _OTHER_VERSION:
        return TlsFailed(_CLIENT_ALERTS["PROTOCOL_VERSION"])
    if reason == "NO_SHARED_CIPHER":
        return TlsFailed(_CLIENT_ALERTS["HANDSHAKE_FAILURE"])
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return TlsFailed(
            "it shows no certificate, and ssl.client.auth requires one: give the client a key store (ssl.keystore)"
        )
    return TlsFailed(reason.lower().replace("_", " "))


def _explain_certificate(address: str, code: int, message: str) -> TlsFailed:
    if code in _UNTRUSTED:
        return TlsFailed(
            f"the certificate of {address} is not trusted: {_UNTRUSTED[code]}. "
            "Give the certificate of its issuer (ssl.truststore)"
        )
    if code == CERTIFICATE_EXPIRED:
        return TlsFailed(f"the certificate of {address}, or one of its chain, has expired: renew it, or check the clock here")
    if code == CERTIFICATE_NOT_YET_VALID:
        return TlsFailed(f"the certificate of {address} is not valid yet: check the clocks on both sides")
    return TlsFailed(f"the certificate of {address} cannot be verified: {message}")


def explain_name(address: str, wanted: str, names: list[str]) -> TlsFailed:
    """The error for a certificate that is not for `wanted`. `names` are those it is for; empty if they are not known."""
    made_out = f"it is for {', '.join(names)}" if names else "it is for another host"
    advice = (
        "connect by a name that is in the certificate (the node's advertised.listeners decides it), or get one for this host"
    )
    return TlsFailed(f"the certificate of {address} is not for {wanted}: {made_out}. Either {advice}")


def certificate_names(certificate: Mapping[str, Any]) -> list[str]:
    """The hosts that a certificate is for, from `getpeercert`: alternative names, or the common name if there are none."""
    alternatives = certificate.get("subjectAltName", ())
    names = [str(value) for kind, value in alternatives if kind in ("DNS", "IP Address")]
    if names:
        return names
    subject = certificate.get("subject", ())
    return [str(value) for part in subject for kind, value in part if kind == "commonName"]


PROBE_S = 2.0
_API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 ffff")
"""The request ApiVersions, version 0, correlation id 1, which a broker answers on a connection that needs no TLS."""


def protocol_mismatch(client: Mapping[str, str], prefix: str = "kafka.") -> str:
    """A sentence if the port speaks TLS and the client does not, or the other way round; empty if it is something else.

    `prefix` is what names of settings begin with where the user writes them. A client sees only that its connections are
    closed, as by a node that stops. So the port is tried with the other protocol.
    """
    protocol = client.get("security.protocol", "PLAINTEXT").upper()
    for address in client.get("bootstrap.servers", "").split(","):
        host, _, port = address.strip().rpartition(":")
        if not port.isdecimal():
            continue
        if protocol.endswith("SSL") and _speaks_kafka(host.strip("[]"), int(port)):
            plain = protocol.replace("SSL", "PLAINTEXT")
            return f"{address} speaks no TLS: set {prefix}security.protocol to {plain}, or give the address of a TLS listener"
        if not protocol.endswith("SSL") and _speaks_tls(host.strip("[]"), int(port)):
            tls = protocol.replace("PLAINTEXT", "SSL")
            return f"{address} speaks TLS: set {prefix}security.protocol to {tls}, or give the address of a plain listener"
    return ""


def _speaks_tls(host: str, port: int) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), timeout=PROBE_S) as connection, context.wrap_socket(connection):
            return True
    except OSError as error:
        # A server that wants our certificate, or knows none of our versions, says so in TLS.
        return isinstance(error, ssl.SSLError) and "ALERT" in str(error.reason or "")


def _speaks_kafka(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=PROBE_S) as connection:
            connection.sendall(_API_VERSIONS)
            answer = b""
            while len(answer) < 8 and (part := connection.recv(8 - len(answer))):
                answer += part
    except OSError:
        return False
    return answer[4:] == _API_VERSIONS[8:12]
