"""The settings of the authorizer."""

import pytest

from ottla.config.authorizer import STANDARD_AUTHORIZER, AuthorizerConfig
from ottla.config.values import InvalidConfig

STANDARD = {"authorizer.class.name": STANDARD_AUTHORIZER}


def test_no_class_is_no_authorizer() -> None:
    assert AuthorizerConfig.from_settings({"super.users": "User:a"}) is None
    assert AuthorizerConfig.from_settings({"authorizer.class.name": " "}) is None
    assert AuthorizerConfig.from_settings({"authorizer.class.name": "StandardAuthorizer"}) == AuthorizerConfig()


def test_super_users_are_whole_texts_between_semicolons() -> None:
    config = AuthorizerConfig.from_settings({**STANDARD, "super.users": " User:a ;User:CN=x,O=b\\, Inc;; "})
    assert config == AuthorizerConfig(frozenset({"User:a", "User:CN=x,O=b\\, Inc"}))


def test_only_true_allows_everyone() -> None:
    for text, is_allowed in (("true", True), (" TRUE ", True), ("false", False), ("yes", False), ("", False)):
        config = AuthorizerConfig.from_settings({**STANDARD, "allow.everyone.if.no.acl.found": text})
        assert config == AuthorizerConfig(allow_everyone=is_allowed)


@pytest.mark.parametrize(
    ("settings", "setting", "text"),
    [
        ({"authorizer.class.name": "com.shop.Rules"}, "authorizer.class.name", "com.shop.Rules, which cannot run here"),
        ({**STANDARD, "super.users": "User:a;admin"}, "super.users", "'admin': each entry must be a principal"),
        ({**STANDARD, "super.users": "User:"}, "super.users", "'User:'"),
    ],
)
def test_wrong_settings_are_refused_with_a_sentence(settings: dict[str, str], setting: str, text: str) -> None:
    with pytest.raises(InvalidConfig, match=text) as refused:
        AuthorizerConfig.from_settings(settings)
    assert refused.value.name == setting
