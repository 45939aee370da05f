"""sasl.jaas.config."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.jaas import parse_jaas
from ottla.config.values import InvalidConfig

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    "text",
    [
        f'{MODULE} required username="alice" password="secret";',
        f"{MODULE} required username='alice' password='secret' ;",
        f'\n  {MODULE}   required\n  username="alice"\n  password = "secret";\n',
        f"{MODULE} REQUIRED username=alice password=secret;",
    ],
)
def test_an_entry_as_people_write_it(text: str) -> None:
    entry = parse_jaas(text)
    assert (entry.module, entry.short_name) == (MODULE, "PlainLoginModule")
    assert entry.options == {"username": "alice", "password": "secret"}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r'"d\x"', "dx"),
        (r'"a\tb\n"', "a\tb\n"),
        (r'"\101\7x\477"', "A\x07x'7"),
        ("'it\"s'", 'it"s'),
        ("a-b.c_d$1", "a-b.c_d$1"),
        ('/* not this */ "x" // nor "this"', "x"),
        ('""', ""),
    ],
)
def test_values_as_kafka_reads_them(written: str, meant: str) -> None:
    assert parse_jaas(f"// users\n{MODULE} required user_a={written}\n;").options == {"user_a": meant}


@pytest.mark.parametrize("value", ["1", "-x", ".5", "12ab", "a@b", "a:b", "s3cret!"])
def test_values_that_need_quotes(value: str) -> None:
    with pytest.raises(InvalidConfig, match="in quotes") as refused:
        parse_jaas(f"{MODULE} required password={value};")
    assert "s3cret" not in str(refused.value)


def test_an_entry_shows_no_values() -> None:
    assert "s3cret" not in repr(parse_jaas(f"{MODULE} required password=s3cret;"))


def test_an_error_names_the_setting_it_was_given() -> None:
    with pytest.raises(InvalidConfig, match=r"^listener\.name\.x\.plain\.sasl\.jaas\.config cannot be read") as refused:
        parse_jaas("x", "listener.name.x.plain.sasl.jaas.config")
    assert refused.value.name == "listener.name.x.plain.sasl.jaas.config"


def test_an_entry_without_options() -> None:
    assert parse_jaas("a.b.OAuthBearerLoginModule required;").options == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f'{MODULE} required username="a" password="s3cret"', "semicolon"),
        (f'{MODULE} username="a" password="s3cret";', "required"),
        (f'{MODULE} required username="a" password="s3cret;', "quote"),
        (f"{MODULE} required username password=s3cret;", "pairs"),
        (f"{MODULE} required username s3cret x;", "pairs"),
        (f"{MODULE} required; {MODULE} required password=s3cret;", "one login module"),
        ("", "semicolon"),
    ],
)
def test_a_broken_entry_is_refused_without_showing_passwords(text: str, problem: str) -> None:
    with pytest.raises(InvalidConfig, match=problem) as refused:
        parse_jaas(text)
    assert "s3cret" not in str(refused.value)
    assert refused.value.name == "sasl.jaas.config"


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@given(st.text(), st.text())
def test_any_user_and_password_can_be_written(username: str, password: str) -> None:
    entry = parse_jaas(f"{MODULE} required username={quoted(username)} password={quoted(password)};")
    assert entry.options == {"username": username, "password": password}


@given(st.text(alphabet="ab =;\"'\\\n", max_size=40))
def test_any_text_is_an_entry_or_refused(text: str) -> None:
    try:
        entry = parse_jaas(text)
    except InvalidConfig as error:
        message = str(error)
    else:
        assert entry.module
        return
    assert "sasl.jaas.config cannot be read" in message
