"""The settings of a node whose clients log in: one PLAINTEXT listener and several with SASL, the same for Ottla and for Apache.

| listener | mechanisms |
|---|---|
| PLAINTEXT | none |
| SASL | PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER (unsecured tokens) |
| PLAINONLY | PLAIN |
| SHORT | the same as SASL; sessions of all but OAUTHBEARER last `SESSION_MS` |
"""

from tests.support.servers.kafka_server import free_ports

ALICES_PASSWORD = "alice-secret"
BOBS_PASSWORD = "bob-secret"
SESSION_MS = 2000
RECEIVE_BYTES_MAX = 20_000
_MODULES = "org.apache.kafka.common.security"
_PLAIN = (
    f'{_MODULES}.plain.PlainLoginModule required user_alice="{ALICES_PASSWORD}" user_bob="{BOBS_PASSWORD}" '
    f'user_admin="admin-secret";'
)
_SCRAM = f"{_MODULES}.scram.ScramLoginModule required;"
_BEARER = f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="node";'
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_LISTENERS = ("PLAINTEXT", "SASL", "PLAINONLY", "SHORT", "CONTROLLER")


def sasl_properties() -> dict[str, object]:
    """The settings; free ports are in `listeners`."""
    ports = dict(zip(_LISTENERS, free_ports(len(_LISTENERS)), strict=True))
    is_sasl = ("SASL", "PLAINONLY", "SHORT")
    settings: dict[str, object] = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(
            f"{name}:{'SASL_PLAINTEXT' if name in is_sasl else 'PLAINTEXT'}" for name in _LISTENERS
        ),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "inter.broker.listener.name": "PLAINTEXT",
        "delegation.token.secret.key": "a key for tests",
        "listener.name.plainonly.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plainonly.plain.sasl.jaas.config": _PLAIN,
        "sasl.server.max.receive.size": RECEIVE_BYTES_MAX,
    }
    for listener in ("sasl", "short"):
        prefix = f"listener.name.{listener}"
        settings[f"{prefix}.sasl.enabled.mechanisms"] = ",".join(_MECHANISMS)
        settings[f"{prefix}.plain.sasl.jaas.config"] = _PLAIN
        settings[f"{prefix}.scram-sha-256.sasl.jaas.config"] = _SCRAM
        settings[f"{prefix}.scram-sha-512.sasl.jaas.config"] = _SCRAM
        settings[f"{prefix}.oauthbearer.sasl.jaas.config"] = _BEARER
    for mechanism in _MECHANISMS[:3]:
        settings[f"listener.name.short.{mechanism.lower()}.connections.max.reauth.ms"] = SESSION_MS
    return settings
