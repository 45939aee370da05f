"""Tokens for OAUTHBEARER that settings name: by an endpoint, a file, a cloud's identity, or a Python function.

One token serves all clients of a process whose settings about addresses, TLS and logins are the same. The functions for clouds
import the cloud's own package. A user's function is called as they are, with those settings. It may be async, and returns a
token, (token, expiry) or (token, expiry, extensions).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ottla.client.world import ClientWorld
from ottla.config.client.classes import PythonPath, load
from ottla.config.client.security import HANDLER, SecuritySettings, TokenSettings
from ottla.env.tls import TlsOptions
from ottla.env.tokens import TokenEndpoint, TokenFailed
from ottla.errors import ConfigError
from ottla.link.sasl import SaslFault
from ottla.link.security import Token
from ottla.link.tokens import RefreshTimes, SharedToken, checked_token

SHARED_MAX = 64
_shared: dict[object, SharedToken] = {}
"""The tokens of this process by what they were fetched with."""


def shared_token(security: SecuritySettings, world: ClientWorld) -> SharedToken:
    """The token of all clients of this process with these settings. `ConfigError` if they name what cannot be imported."""
    settings = security.token_settings
    assert settings is not None
    handler = settings.handler if isinstance(settings.handler, str | PythonPath) else id(settings.handler)
    key = (world.threads.process_id(), handler, tuple(sorted(settings.given.items())))
    found = _shared.get(key)
    if found is None:
        fetch = _fetching(settings, world)
        times = RefreshTimes(*security.token_refresh)
        made = SharedToken(fetch, world.threads.lock(), times, world.clock.now_ms, world.randomness.below)
        found = _shared.setdefault(key, made)
        for oldest in list(_shared)[:-SHARED_MAX]:
            _shared.pop(oldest, None)  # its clients keep it
    return found


def _fetching(settings: TokenSettings, world: ClientWorld) -> Callable[[], Token]:
    if settings.handler in ("endpoint", "file"):
        return lambda: _with_extensions(_from_source(settings, world), settings.extensions)
    provide = _CLOUDS.get(settings.handler) if isinstance(settings.handler, str) else load(HANDLER, settings.handler)
    if isinstance(settings.handler, str):
        _import_package(settings.handler)
    if not callable(provide) or inspect.isclass(provide):
        raise ConfigError(
            f"{HANDLER}={settings.handler}: this is no function: name one that takes the settings and returns a token",
            setting=HANDLER,
        )
    name = f"the token provider {_name(settings.handler)} ({HANDLER})"
    return lambda: _with_extensions(_called(provide, name, settings.given), settings.extensions)


def _name(handler: object) -> str:
    return str(handler) if isinstance(handler, str | PythonPath) else getattr(handler, "__qualname__", repr(handler))


def _called(provide: Callable[..., Any], name: str, settings: Mapping[str, Any]) -> Token:
    try:
        found = provide(dict(settings)) if _takes_settings(provide) else provide()
        if inspect.isawaitable(found):
            found = asyncio.run(_awaited(found))
    except Exception as error:
        shown = (str(error).strip() or "without a text").splitlines()[0][:500]
        raise SaslFault(
            f"{name} raised {type(error).__name__}: {shown.rstrip('.:')}. Mend that where this client runs (with Spark: on the "
            "driver and on every executor)"
        ) from error
    return checked_token(found, name)


async def _awaited(found: Any) -> Any:
    return await found


def _takes_settings(provide: Callable[..., Any]) -> bool:
    try:
        inspect.signature(provide).bind({})
    except TypeError:
        return False
    except ValueError:  # a function in C without a signature
        return True
    return True


def _with_extensions(token: Token, extensions: Mapping[str, str]) -> Token:
    if not extensions:
        return token
    return (token, None, extensions) if isinstance(token, str) else (token[0], token[1], {**extensions, **token[2]})


def _from_source(settings: TokenSettings, world: ClientWorld) -> Token:
    if world.tokens is None:
        raise SaslFault("this client has no network for HTTP, and no files: give the keyword sasl_oauth_token")
    try:
        if settings.handler == "file":
            return world.tokens.from_file(settings.url)
        token, expiry_s = world.tokens.from_endpoint(_endpoint(settings))
    except TokenFailed as failed:
        raise SaslFault(str(failed)) from failed.__cause__
    return token, expiry_s, {}


def _endpoint(settings: TokenSettings) -> TokenEndpoint:
    """As in Kafka, the options ssl.* of sasl.jaas.config are for the endpoint, the settings ssl.* for brokers."""
    options = {} if "sasl.jaas.config" not in settings.given else settings.given
    return TokenEndpoint(
        settings.url,
        settings.client_id,
        settings.client_secret,
        settings.scope,
        settings.urlencode,
        *settings.timeouts_ms,
        *settings.backoffs_ms,
        tls=TlsOptions.of(options),
    )


def _aws(settings: Mapping[str, Any]) -> Any:
    """A token for Amazon MSK: a signed URL, of the credentials that AWS's libraries find."""
    import botocore.session
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider as Signer

    region = (
        settings.get("awsRegion")
        or _aws_region(_first_host(settings))
        or botocore.session.Session().get_config_variable("region")
    )
    if not region:
        raise ValueError('the region is unknown: give awsRegion="…" in sasl.jaas.config, or set AWS_REGION')
    profile = settings.get("awsProfileName")
    if botocore.session.Session(profile=profile).get_credentials() is None:
        raise ValueError("AWS's libraries find no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give a role")
    if role := settings.get("awsRoleArn"):
        session = settings.get("awsRoleSessionName", "ottla")
        token, expiry_ms = Signer.generate_auth_token_from_role_arn(region, role, session)
    elif profile:
        token, expiry_ms = Signer.generate_auth_token_from_profile(region, profile)
    else:
        token, expiry_ms = Signer.generate_auth_token(region)
    return token, expiry_ms / 1000


def _aws_region(host: str) -> str:
    """`eu-west-1` of b-1.name.id.c2.kafka.eu-west-1.amazonaws.com, also of kafka-serverless."""
    labels = host.split(".")
    if "amazonaws" not in labels[2:]:
        return ""
    at = labels.index("amazonaws")
    return labels[at - 1] if labels[at - 2].startswith("kafka") else ""


def _azure(settings: Mapping[str, Any]) -> Any:
    """A token for Azure Event Hubs, of the identity that Azure's library finds."""
    from azure.identity import DefaultAzureCredential

    scope = settings.get("sasl.oauthbearer.scope") or settings.get("scope") or f"https://{_first_host(settings)}/.default"
    with DefaultAzureCredential() as credential:
        found = credential.get_token(scope)
    return found.token, found.expires_on


def _google(settings: Mapping[str, Any]) -> Any:
    """A token for Google Managed Service for Apache Kafka, of the application default credentials.

    The broker wants Google's token in the place of a JWT's signature, and the e-mail of the account as the subject.
    """
    import json
    from base64 import urlsafe_b64encode
    from datetime import UTC

    import google.auth
    from google.auth.transport.requests import Request

    scope = settings.get("sasl.oauthbearer.scope") or settings.get("scope") or "https://www.googleapis.com/auth/cloud-platform"
    credentials, _ = google.auth.default(scopes=scope.split())
    credentials.refresh(Request())
    account = (
        settings.get("principal") or getattr(credentials, "service_account_email", None) or getattr(credentials, "account", "")
    )
    if not account:
        raise ValueError('the account of the credentials is unknown: give its e-mail as principal="…" in sasl.jaas.config')
    expiry_s = credentials.expiry.replace(tzinfo=UTC).timestamp()
    claims = {"iss": "Google", "scope": "kafka", "sub": account, "iat": int(expiry_s) - 3600, "exp": int(expiry_s)}
    parts = json.dumps({"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}), json.dumps(claims), credentials.token
    return ".".join(urlsafe_b64encode(part.encode()).rstrip(b"=").decode() for part in parts), expiry_s


_CLOUDS: dict[str, Callable[[Mapping[str, Any]], Any]] = {"aws-msk-iam": _aws, "azure": _azure, "google": _google}
_PACKAGES = {
    "aws-msk-iam": ("aws_msk_iam_sasl_signer", "aws-msk-iam-sasl-signer-python"),
    "azure": ("azure.identity", "azure-identity"),
    "google": ("google.auth.transport.requests", "'google-auth[requests]'"),
}
"""Handler → the module that it imports, and what to install for it."""


def _import_package(handler: str) -> None:
    import importlib

    module, package = _PACKAGES[handler]
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{HANDLER}={handler} needs a package that is not installed ({error}): pip install {package}, with Spark on the "
            "driver and on every executor",
            setting=HANDLER,
        ) from None


def _first_host(settings: Mapping[str, Any]) -> str:
    return str(settings.get("bootstrap.servers", "")).partition(",")[0].rpartition(":")[0]
