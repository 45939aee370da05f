"""What settings name as the source of tokens: functions, files and clouds. One token serves a process."""

import asyncio
import json
import re
import sys
import threading
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from pathlib import Path
from time import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.support.servers.token_endpoint import TokenEndpoint, token_endpoint, unsigned_token

from ottla import Admin, Consumer, Producer, aio
from ottla.client import tokens
from ottla.client.tokens import shared_token
from ottla.client.world import real_client_world
from ottla.config.client import admin_settings, consumer_settings, producer_settings
from ottla.config.java_properties import parse_properties
from ottla.errors import ConfigError
from ottla.link.sasl import SaslFault
from ottla.link.tokens import SharedToken

HANDLER = "sasl.login.callback.handler.class"
LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module of a user's, on the path."""
    (tmp_path / "my_logins.py").write_text(
        """
import time
seen = []
lifetime_s = 3600
error = None
def token(settings):
    seen.append(settings)
    if error is not None:
        raise error
    return f"token{len(seen)}", time.time() + lifetime_s
def plain():
    return "plain"
async def later(settings):
    return "later", None, {"a": "own"}
def broken(settings):
    return 7
def milliseconds(settings):
    return "t", time.time() * 1000
not_callable = 7
class Provider: ...
"""
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(tokens, "_shared", {})
    import my_logins  # type: ignore[import-not-found]

    yield my_logins
    del sys.modules["my_logins"]


def shared(make: Any = admin_settings, **settings: str) -> SharedToken:
    made = make("b:1", {**LOGIN, **settings})
    return shared_token(made.security, real_client_world())


def fetched(**settings: str) -> Any:
    return asyncio.run(shared(**settings).get())


def test_a_function_gets_the_settings_and_the_options(provider: Any) -> None:
    jaas = f'{MODULE} required tenant="t1" extension_pool="p";'
    found = fetched(**{HANDLER: "my_logins:token", "sasl.jaas.config": jaas, "client.id": "me"})
    assert (found[0], found[2]) == ("token1", {"pool": "p"})
    assert provider.seen == [
        LOGIN
        | {"bootstrap.servers": "b:1", HANDLER: provider.seen[0][HANDLER], "sasl.jaas.config": jaas}
        | {"tenant": "t1", "extension_pool": "p"}
    ]
    assert str(provider.seen[0][HANDLER]) == "my_logins:token"


@pytest.mark.usefixtures("provider")
def test_forms_of_functions() -> None:
    assert fetched(**{HANDLER: "my_logins.plain"}) == "plain"
    extension = f'{MODULE} required extension_a="theirs" extension_b="b";'
    assert fetched(**{HANDLER: "my_logins:later", "sasl.jaas.config": extension}) == ("later", None, {"a": "own", "b": "b"})


def test_all_clients_of_a_process_share_a_token(provider: Any) -> None:
    """Whatever else their settings are, in all their threads."""
    found = []
    makes = (admin_settings, consumer_settings, producer_settings)
    clients = [shared(make, **{HANDLER: "my_logins:token", "client.id": make.__name__}) for make in makes]
    threads = [threading.Thread(target=lambda each=each: found.append(asyncio.run(each.get()))) for each in clients * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [token[0] for token in found] == ["token1"] * 9
    assert len(provider.seen) == 1
    other = shared(**{HANDLER: "my_logins:token", "sasl.oauthbearer.scope": "other"})
    assert asyncio.run(other.get())[0] == "token2"


def test_a_token_is_renewed_before_it_expires(provider: Any) -> None:
    class World:
        now_ms = int(time() * 1000)

    world = real_client_world()
    clock: Any = world.clock
    world = world._replace(clock=type("Clock", (), {"now_ms": lambda _: World.now_ms, "monotonic_s": clock.monotonic_s})())
    token = shared_token(admin_settings("b:1", {**LOGIN, HANDLER: "my_logins:token"}).security, world)
    assert asyncio.run(token.get())[0] == "token1"
    World.now_ms += 2_800_000
    assert asyncio.run(token.get())[0] == "token1"
    World.now_ms += 300_000  # later than 85 % of the hour
    provider.error = OSError("offline")
    assert asyncio.run(token.get())[0] == "token1"
    provider.error = None
    provider.lifetime_s = 7200
    assert asyncio.run(token.get())[0] == "token3"


def test_a_refused_token_is_not_used_again(provider: Any) -> None:
    token = shared(**{HANDLER: "my_logins:token"})
    token.refused(asyncio.run(token.get()))
    assert asyncio.run(token.get())[0] == "token2"


def test_errors_name_the_provider_and_what_it_raised(provider: Any) -> None:
    provider.error = KeyError("AWS_REGION")
    with pytest.raises(SaslFault) as caught:
        fetched(**{HANDLER: "my_logins:token"})
    assert str(caught.value) == (
        "the token provider my_logins:token (sasl.login.callback.handler.class) raised KeyError: 'AWS_REGION'. Mend that where "
        "this client runs (with Spark: on the driver and on every executor)"
    )


@pytest.mark.parametrize(("name", "words"), [("broken", "returned int"), ("milliseconds", "divide it by 1000")])
@pytest.mark.usefixtures("provider")
def test_what_is_no_token(name: str, words: str) -> None:
    with pytest.raises(SaslFault, match=words):
        fetched(**{HANDLER: f"my_logins:{name}"})


@pytest.mark.parametrize("face", [Producer, Consumer, Admin, aio.Producer, aio.Consumer, aio.Admin])
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("no_such_module:token", "cannot import no_such_module"),
        ("my_logins:tokn", "did you mean token?"),
        ("my_logins:not_callable", "this is no function"),
        ("my_logins:Provider", "this is no function"),
    ],
)
@pytest.mark.usefixtures("provider")
def test_a_wrong_path_is_an_error_of_the_constructor(face: Any, path: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        face("localhost:9092", config={**LOGIN, HANDLER: path})
    assert words in str(caught.value)
    assert caught.value.setting == HANDLER


def test_a_file_is_read_again_when_its_token_is_due(provider: Any, tmp_path: Path) -> None:
    file = tmp_path / "token"
    first, second = unsigned_token(3600, jti="1"), unsigned_token(3600, jti="2")
    file.write_text(first)
    token = shared(**{"sasl.oauthbearer.token.endpoint.url": file.as_uri()})
    assert asyncio.run(token.get()) == first
    file.write_text(second)
    assert asyncio.run(token.get()) == first
    token.refused(first)
    assert asyncio.run(token.get()) == second


def test_logins_that_wait_together_share_a_failure(provider: Any) -> None:
    with token_endpoint() as endpoint:
        endpoint.failures = [401] * 10
        token = shared(**endpoint.settings())

        async def all_fail() -> list[BaseException | Any]:
            return await asyncio.gather(*(token.get() for _ in range(4)), return_exceptions=True)

        found = asyncio.run(all_fail())
        assert {type(each) for each in found} == {SaslFault}
        assert endpoint.requests < 4


# The page

PAGE = (Path(__file__).parents[3] / "docs" / "cloud-logins.md").read_text()


@pytest.mark.parametrize("example", re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL))
@pytest.mark.usefixtures("provider")
def test_settings_of_the_page(example: str) -> None:
    settings = admin_settings(config=parse_properties(example.encode()))
    assert settings.notices == ()
    assert settings.security.protocol == "SASL_SSL"


def test_function_of_the_page(tmp_path: Path, provider: Any) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "company_login.py").write_text(code)
    found = fetched(**{HANDLER: "company_login:token", "sasl.jaas.config": f'{MODULE} required tenant="shop";'})
    assert found[0] == "token-of-shop"


# Clouds

PACKAGES = {
    "aws-msk-iam": ("aws_msk_iam_sasl_signer", "aws-msk-iam-sasl-signer-python"),
    "azure": ("azure.identity", "azure-identity"),
    "google": ("google.auth.transport.requests", "'google-auth[requests]'"),
}


@pytest.mark.parametrize("handler", PACKAGES)
@pytest.mark.usefixtures("provider")
def test_a_missing_package_is_named(handler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, package = PACKAGES[handler]
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError) as caught:
        Admin("localhost:9092", config={**LOGIN, HANDLER: handler})
    assert f"{HANDLER}={handler} needs a package that is not installed" in str(caught.value)
    assert f"pip install {package}, with Spark on the driver and on every executor" in str(caught.value)


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com", "eu-west-1"),
        ("boot-abc.c1.kafka-serverless.us-east-2.amazonaws.com", "us-east-2"),
        ("b-1.x.y.c3.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("vpce-1.vpce-svc.us-east-1.vpce.amazonaws.com", ""),
        ("localhost", ""),
    ],
)
def test_the_region_is_in_the_address(host: str, region: str) -> None:
    assert tokens._aws_region(host) == region


@pytest.mark.usefixtures("provider")
def test_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("aws_msk_iam_sasl_signer")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    made = admin_settings("b-1.demo.abc.c2.kafka.eu-west-1.amazonaws.com:9098", {**LOGIN, HANDLER: "aws-msk-iam"})
    token, expiry_s, _ = asyncio.run(shared_token(made.security, real_client_world()).get())
    signed = urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    assert signed.startswith("https://kafka.eu-west-1.amazonaws.com/?Action=kafka-cluster%3AConnect")
    assert expiry_s == pytest.approx(time() + 900, abs=60)


@pytest.mark.usefixtures("provider")
def test_google(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With a service account whose tokens come from a server of the test's."""
    pytest.importorskip("google.auth.transport.requests")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    class Google(TokenEndpoint):
        def respond(self, headers: Any, form: str) -> tuple[int, bytes]:
            return 200, b'{"access_token": "ya29.token", "expires_in": 3600, "token_type": "Bearer"}'

    with token_endpoint() as endpoint:
        endpoint.__class__ = Google
        account = {
            "type": "service_account",
            "client_email": "pipeline@project.iam.gserviceaccount.com",
            "token_uri": endpoint.url,
            "private_key": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
        }
        (tmp_path / "account.json").write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project")
        token, expiry_s, _ = fetched(**{HANDLER: "google"})
    head, claims, access = (urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split("."))
    assert json.loads(head) == {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}
    assert json.loads(claims)["sub"] == "pipeline@project.iam.gserviceaccount.com"
    assert access == b"ya29.token"
    assert expiry_s == pytest.approx(time() + 3600, abs=60)
