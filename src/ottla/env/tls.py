"""TLS of streams: its options and its error, as plain values. `env/real/tls.py` and `tls_stream.py` implement it.

PEM values are given as text or as the path of a file: a value that contains `-----BEGIN` is text. `ca` and `certificate` can
also be the paths of Java's key stores, JKS or PKCS12. Files are read again for
every connection that a client makes, so a renewed certificate is used without a restart, and once for a listener. A client
checks them when it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """How to encrypt a stream, whom to trust, and which certificate to show."""

    client_auth: str | None = None
    """Of a listener: whether clients show a certificate (`none`, `requested`, `required`). None: an outbound stream."""
    ca: str | None = field(default=None, repr=False)
    """Certificates to trust, PEM. None: those that the operating system trusts."""
    certificate: str | None = field(default=None, repr=False)
    """Our own certificate with its chain, PEM, for peers that ask for one."""
    key: str | None = field(default=None, repr=False)
    """The private key of `certificate`, PEM. None: it is in the same text or file as the certificate."""
    key_password: str | None = field(default=None, repr=False)
    ca_password: str | None = field(default=None, repr=False)
    """The password of the key store `ca`. PEM files have none."""
    certificate_password: str | None = field(default=None, repr=False)
    """The password of the key store `certificate`, and of the key in it if there is no `key_password`."""
    check_hostname: bool = True
    """Whether the peer's certificate must be for the host that we connect to. Its issuer is checked in any case."""
    server_name: str | None = None
    """The name to check and to ask for (SNI), if it is not the host that we connect to."""
    ciphers: tuple[str, ...] = ()
    """Allowed cipher suites, in the spelling of Java or of OpenSSL; empty: OpenSSL's default."""
    versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    """Allowed protocol versions."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> TlsOptions:
        """An outbound stream's, from options by their Kafka names, as those of a sasl.jaas.config."""
        return cls(
            ca=options.get("ssl.truststore.location") or options.get("ssl.truststore.certificates"),
            ca_password=options.get("ssl.truststore.password"),
            certificate=options.get("ssl.keystore.location") or options.get("ssl.keystore.certificate.chain"),
            certificate_password=options.get("ssl.keystore.password"),
            key=options.get("ssl.keystore.key"),
            key_password=options.get("ssl.key.password"),
            check_hostname=options.get("ssl.endpoint.identification.algorithm", "https") != "",
        )


class ShownCertificate(NamedTuple):
    """Whom a certificate is for."""

    subject: tuple[tuple[tuple[str, str], ...], ...]
    names: tuple[str, ...]
    """The alternative names, sorted, with their kind: `DNS:localhost`."""


class TlsFailed(OSError):
    """A TLS connection is impossible: one side refuses the other, or an option is wrong. Retrying does not help.

    A connection that merely broke during the handshake raises another `OSError`.
    """

    def __init__(self, text: str, *, setting: str | None = None) -> None:
        super().__init__(text)
        self.setting = setting
        """Kafka's name of the client setting that is wrong, if one is."""
