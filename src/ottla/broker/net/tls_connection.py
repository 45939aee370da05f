"""The broker's side of a TLS connection: who the client is, by its certificate, and a log line for TLS that fails.

The name of the principal is the certificate's subject, as ssl.principal.mapping.rules change it. A client without a certificate
is ANONYMOUS. If no rule matches, the first request ends the connection, as in Kafka. With SASL the certificate only opens the
door: the principal is the user that logs in.
"""

from __future__ import annotations

from typing import Any

from ottla.broker.net.connection import Connection
from ottla.broker.net.distinguished_names import name_of, subject_of
from ottla.config.principal_rules import PrincipalRules
from ottla.env import TlsFailed
from ottla.errors import DecodeError
from ottla.ids import ANONYMOUS, Principal


class TlsConnection(Connection):
    """`StreamOwner` of one accepted TLS stream."""

    __slots__ = ("_is_known",)

    def __init__(self, *arguments: Any) -> None:
        """As `Connection`."""
        self._is_known = False
        super().__init__(*arguments)

    def received(self, count: int) -> None:
        # The handshake ends before the first bytes come.
        if not self._is_known and not self._know_client():
            self.end()
            return
        super().received(count)

    def ended(self, error: OSError | None) -> None:
        if isinstance(error, TlsFailed):
            self._pipeline.report_fault(self.info, f"a TLS failure: {error}")
        super().ended(error)

    def _know_client(self) -> bool:
        """Set the principal. False: the client must not go on."""
        self._is_known = True
        if self.info.security.uses_sasl:
            return True
        try:
            principal = principal_of(self.stream.peer_certificate(), self.info.security.principal_rules)
        except (DecodeError, ValueError) as fault:
            self._pipeline.report_fault(self.info, f"it showed a certificate that names nobody here: {fault}")
            return False
        self.info.principal = principal
        return True


def principal_of(certificate: bytes | None, rules: PrincipalRules) -> Principal:
    """The principal of a client with this certificate, DER. Raises `ValueError` if no rule matches, or `DecodeError`."""
    if certificate is None:
        return ANONYMOUS
    subject = name_of(subject_of(certificate))
    name = rules.name(subject)
    if name is None:
        raise ValueError(f"no rule of ssl.principal.mapping.rules matches {subject}")
    return Principal("User", name)
