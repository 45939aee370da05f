"""The security of listeners and of links between nodes: from the settings of a listener to what `env` and `link` take.

A node that connects to a listener uses the settings of that listener, as in Kafka: its key store is the client certificate, and
its JAAS text names the user to log in as.
"""

from __future__ import annotations

from ottla.config.broker_security import ListenerSecurity
from ottla.config.values import InvalidConfig
from ottla.env.tls import TlsOptions


def tls_options(security: ListenerSecurity, *, is_client: bool = False) -> TlsOptions | None:
    """TLS for the listener itself, or with `is_client` for a connection to it; None without TLS."""
    tls = security.tls
    if tls is None:
        return None
    return TlsOptions(
        client_auth=None if is_client else tls.client_auth,
        ca=tls.ca,
        certificate=tls.certificate,
        key=tls.key,
        key_password=tls.key_password,
        ca_password=tls.ca_password,
        certificate_password=tls.certificate_password,
        check_hostname=tls.check_hostname,
        ciphers=tls.ciphers,
        versions=tls.versions,
    )


def check_served(security: ListenerSecurity) -> None:
    """Raise `InvalidConfig` for a listener that cannot be opened yet: without logins, SASL would let everybody in."""
    if security.uses_sasl:
        raise InvalidConfig(
            "listeners",
            f"listener {security.name} speaks {security.protocol}, and Ottla has no logins yet: map it to SSL or PLAINTEXT in "
            "listener.security.protocol.map until then",
        )
