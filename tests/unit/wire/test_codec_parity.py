"""The compiled codecs and the interpreter give the same bytes and messages, for every message and version."""

from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.cases.wire_messages import all_messages, messages, versions_of

from ottla.wire import interpreter
from ottla.wire.base import Message, Part
from ottla.wire.binding import binding_of
from ottla.wire.codec import join_parts
from ottla.wire.compiler import compile_decoder, compile_encoder

FEW, MANY = 2, 25
"""Examples per message and version; few for the oldest and the newest one, as test_golden.py has every version."""


def gave_up(*arguments: Any) -> Any:
    raise AssertionError("the compiled codec left an ordinary message to the interpreter")


@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_same_bytes_and_same_messages(cls: type[Message], examples: int) -> None:
    versions = list(versions_of(cls))
    for version in versions if examples == MANY else {versions[0], versions[-1]}:
        check_version(cls, version, examples)


def check_version(cls: type[Message], version: int, examples: int) -> None:
    binding = binding_of(cls)

    @cache
    def codec(has_tags: bool) -> tuple[Any, Any]:
        """The encoder and the decoder; compiled when an example needs them."""
        fallback = () if has_tags else (gave_up,)
        return compile_encoder(binding, version, *fallback), compile_decoder(binding, version, *fallback)

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(message=messages(cls, version), junk=st.binary(max_size=3))
    def check(message: Message, junk: bytes) -> None:
        has_tags = "unknown_tags=" in repr(message)
        parts = interpreter.encode(binding, version, message, junk)
        plain = join_parts(parts)
        encode, decode = codec(has_tags)
        compiled = encode(message, junk)
        assert join_parts(compiled) == plain
        assert pieces(compiled) == pieces(parts)
        for buffer in (plain + b"tail", bytearray(plain), memoryview(plain)):
            decoded, end = decode(buffer, len(junk))
            assert end == len(plain)
            assert decoded == message
            assert interpreter.decode(binding, version, buffer, len(junk)) == (message, end)

    check()


def pieces(parts: list[Part]) -> list[bytes]:
    """The parts without empty ones."""
    return [bytes(part) for part in parts if len(part)]  # type: ignore[arg-type]  # no file ranges here
