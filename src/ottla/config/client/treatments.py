"""What Ottla does with each setting of Kafka's clients: honours it, warns that it has no effect, or refuses it.

A setting that is in neither table here is honoured; `words` documents those. Given its default value, a setting asks for
nothing, so that a pasted list of all settings is neither refused nor warned of.
"""

from __future__ import annotations

from enum import Enum


class Treatment(Enum):
    """What a client does with a setting."""

    HONOURED = "honoured"
    WARNED = "warned"
    """Accepted, without effect; one warning when the client is made says why."""
    REFUSED = "refused"
    """An error when the client is made says why and what to do instead."""


_ASSERTION = (
    "tokens are not fetched by JWT assertions here: give client id and secret, or name a Python function that returns a token "
    "as sasl.login.callback.handler.class"
)
_HANDLER = (
    "Java classes cannot be loaded: give the user in sasl.jaas.config, or, for OAUTHBEARER, what fetches tokens as "
    "sasl.login.callback.handler.class: aws-msk-iam, azure, google, oauth or a Python function (package.module:name)"
)
_VALIDATED = "tokens are validated by the broker, not by the client"
_KERBEROS = "Kerberos (GSSAPI) is not supported, so its settings are not used"
_JAVA_TLS = "it configures Java's TLS; Python uses OpenSSL"
_SHARE = "there are no share consumers yet: use group.id with group.protocol=classic or consumer"

WITHOUT_EFFECT: dict[str, str] = {
    "metrics.recording.level": "all metrics are always recorded",
    "sasl.kerberos.kinit.cmd": _KERBEROS,
    "sasl.kerberos.min.time.before.relogin": _KERBEROS,
    "sasl.kerberos.service.name": _KERBEROS,
    "sasl.kerberos.ticket.renew.jitter": _KERBEROS,
    "sasl.kerberos.ticket.renew.window.factor": _KERBEROS,
    "sasl.oauthbearer.clock.skew.seconds": _VALIDATED,
    "sasl.oauthbearer.expected.audience": _VALIDATED,
    "sasl.oauthbearer.expected.issuer": _VALIDATED,
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": _VALIDATED,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": _VALIDATED,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": _VALIDATED,
    "sasl.oauthbearer.jwks.endpoint.url": _VALIDATED,
    "sasl.oauthbearer.jwt.validator.class": _VALIDATED,
    "sasl.oauthbearer.scope.claim.name": _VALIDATED,
    "sasl.oauthbearer.sub.claim.name": _VALIDATED,
    "ssl.keymanager.algorithm": _JAVA_TLS,
    "ssl.protocol": "ssl.enabled.protocols decides which versions of TLS are used",
    "ssl.provider": _JAVA_TLS,
    "ssl.secure.random.implementation": _JAVA_TLS,
    "ssl.trustmanager.algorithm": _JAVA_TLS,
}
"""Setting → why it has no effect."""

REFUSED: dict[str, str] = {
    "config.providers": "values such as ${env:NAME} are not resolved: read them in Python and pass the result",
    "metric.reporters": "Java classes cannot be loaded: read the client's metrics(), or export them for Prometheus",
    "sasl.client.callback.handler.class": _HANDLER,
    "sasl.login.class": _HANDLER,
    "sasl.oauthbearer.assertion.algorithm": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.aud": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.exp.seconds": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.iss": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.jti.include": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.nbf.seconds": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.sub": _ASSERTION,
    "sasl.oauthbearer.assertion.file": _ASSERTION,
    "sasl.oauthbearer.assertion.private.key.file": _ASSERTION,
    "sasl.oauthbearer.assertion.private.key.passphrase": _ASSERTION,
    "sasl.oauthbearer.assertion.template.file": _ASSERTION,
    "security.providers": "Java security providers cannot be loaded: Python uses OpenSSL; drop it",
    "share.acknowledgement.mode": _SHARE,
    "share.acquire.mode": _SHARE,
    "ssl.engine.factory.class": "Java classes cannot be loaded: give certificates by ssl.truststore.* and ssl.keystore.*",
}
"""Setting → why it is refused, and what to do instead."""


def treatment_of(name: str) -> tuple[Treatment, str]:
    """What happens to a setting that is given another value than its default, and the reason if it is not honoured."""
    if name in REFUSED:
        return Treatment.REFUSED, REFUSED[name]
    if name in WITHOUT_EFFECT:
        return Treatment.WARNED, WITHOUT_EFFECT[name]
    return Treatment.HONOURED, ""
