"""Headers that several records have in common."""

from ottla.client.producer.headers import PackedHeaders
from ottla.client.producer.intake import pack


def test_packed_headers_are_headers_that_are_packed_once() -> None:
    plain = (("a", b"1"), ("b", None))
    headers = PackedHeaders(plain)
    assert headers == plain
    assert pack(headers) == pack(plain)
    assert pack(headers) is pack(headers)
    assert pack(PackedHeaders()) == pack(())
