"""Bootstrap addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.client.given import parse_bootstrap_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:9093", ("localhost", 9093)),
        ("kafka.example.com", ("kafka.example.com", 9092)),
        ("[::1]:9093", ("::1", 9093)),
        ("[::1]", ("::1", 9092)),
        ("PLAINTEXT://a:1", ("a", 1)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_bootstrap_address(text) == address


@pytest.mark.parametrize("text", ["", ":9092", "a:0", "a:65536", "a:b", "a:", "::1:9092", "a:99999999999999999999", "a:-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        parse_bootstrap_address(text)


@given(st.text(max_size=30))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        host, port = parse_bootstrap_address(text)
    except ValueError as error:
        message = str(error)
    else:
        assert host
        assert 0 < port < 65536
        return
    assert "HOST:PORT" in message
