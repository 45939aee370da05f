"""The settings of a server with one listener for each kind of security, all in one server.

| listener | protocol | |
|---|---|---|
| PLAINTEXT | PLAINTEXT | |
| TLS | SSL | |
| MTLS | SSL | client certificates are required |
| SASL | SASL_PLAINTEXT | PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER |
| SASLTLS | SASL_SSL | the same |
| PLAINONLY | SASL_PLAINTEXT | PLAIN |

Sessions of SCRAM-SHA-512 and PLAIN on the listener SASL last `SESSION_MS`: clients must log in again.
"""

from pathlib import Path

from tests.support.servers.certificates import PASSWORD
from tests.support.servers.kafka_server import free_ports
from tests.support.servers.tls_server import TestCertificates

SESSION_MS = 3000
ALICES_PASSWORD = "alice-secret"
_MODULES = "org.apache.kafka.common.security"
_PLAIN = f'{_MODULES}.plain.PlainLoginModule required user_alice="{ALICES_PASSWORD}";'
_SCRAM = f"{_MODULES}.scram.ScramLoginModule required;"
_BEARER = f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
_PROTOCOLS = {
    "PLAINTEXT": "PLAINTEXT",
    "TLS": "SSL",
    "MTLS": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "SASLTLS": "SASL_SSL",
    "PLAINONLY": "SASL_PLAINTEXT",
    "CONTROLLER": "PLAINTEXT",
}


def secure_properties(certificates: TestCertificates) -> dict[str, object]:
    """The settings; free ports are in `listeners`."""
    ports = dict(zip(_PROTOCOLS, free_ports(len(_PROTOCOLS)), strict=True))
    settings: dict[str, object] = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in _PROTOCOLS.items()),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": certificates.server.keystore(),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": Path(certificates.authority.certificate),
        "listener.name.mtls.ssl.client.auth": "required",
        "delegation.token.secret.key": "a key for tests",
        "listener.name.plainonly.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plainonly.plain.sasl.jaas.config": _PLAIN,
        "listener.name.sasl.scram-sha-512.connections.max.reauth.ms": SESSION_MS,
        "listener.name.sasl.plain.connections.max.reauth.ms": SESSION_MS,
    }
    for listener in ("sasl", "sasltls"):
        prefix = f"listener.name.{listener}"
        settings[f"{prefix}.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
        settings[f"{prefix}.plain.sasl.jaas.config"] = _PLAIN
        settings[f"{prefix}.scram-sha-256.sasl.jaas.config"] = _SCRAM
        settings[f"{prefix}.scram-sha-512.sasl.jaas.config"] = _SCRAM
        settings[f"{prefix}.oauthbearer.sasl.jaas.config"] = _BEARER
    return settings
