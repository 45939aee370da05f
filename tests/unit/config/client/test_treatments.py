"""Every setting is honoured, warned of or refused, and the reasons are usable."""

import pytest

from ottla.config.client.build import REFUSED, WITHOUT_EFFECT, admin_settings, consumer_settings, producer_settings
from ottla.config.client.kinds import KINDS, ClientKind
from ottla.config.values import InvalidConfig, format_value
from ottla.errors import ConfigError

BUILDERS = {"producer": producer_settings, "consumer": consumer_settings, "admin": admin_settings}
CASES = [(kind, name) for kind in KINDS for name in kind.table]


def another_value(kind_name: str, name: str) -> str:
    """A valid value that is not the default."""
    key = next(kind for kind in KINDS if kind.name == kind_name).table[name]
    for text in (
        "7",
        "0.2",
        "0.9",
        "true",
        "DEBUG",
        "ES256",
        "explicit",
        "record_limit",
        "resolve_canonical_bootstrap_servers_only",
        "text",
    ):
        try:
            if key.parse(text) != key.default:
                return text
        except InvalidConfig:
            pass
    raise AssertionError(f"no other value for {name}")


def test_reasons_name_only_settings_that_exist() -> None:
    names = {name for _, name in CASES}
    assert REFUSED.keys() <= names
    assert WITHOUT_EFFECT.keys() <= names
    assert not REFUSED.keys() & WITHOUT_EFFECT.keys()


@pytest.mark.parametrize(("kind", "name"), [(kind.name, name) for kind, name in CASES if name in REFUSED])
def test_a_refused_setting_is_an_error_that_says_why(kind: str, name: str) -> None:
    with pytest.raises(ConfigError) as refused:
        BUILDERS[kind]("a:1", {name: another_value(kind, name)})
    assert str(refused.value) == f"{name} cannot be used: {REFUSED[name]}"
    assert refused.value.setting == name


@pytest.mark.parametrize(("kind", "name"), [(kind.name, name) for kind, name in CASES if name in WITHOUT_EFFECT])
def test_a_setting_without_effect_is_one_warning_that_says_why(kind: str, name: str) -> None:
    settings = BUILDERS[kind]("a:1", {name: another_value(kind, name)})
    assert settings.notices == (f"{name} has no effect: {WITHOUT_EFFECT[name]}",)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_pasted_list_of_all_defaults_is_taken_without_a_warning(kind: ClientKind) -> None:
    contradicting = {"enable.auto.commit"}  # needs a group
    pasted = {name: format_value(key.default) for name, key in kind.table.items() if key.default is not None}
    pasted = {name: text for name, text in pasted.items() if name not in contradicting and not name.startswith("bootstrap.")}
    settings = BUILDERS[kind.name]("a:1", pasted)
    assert settings.notices == ()
    otherwise = {name: text for name, text in pasted.items() if name in kind.own_defaults}
    assert settings == BUILDERS[kind.name]("a:1", otherwise)
