"""The typed name of the record is the kernel's class."""

import typing

from ottla.client.consumer.record import ConsumerRecord
from ottla.records import kernels


def test_it_is_the_kernels_class() -> None:
    assert ConsumerRecord is kernels.ConsumerRecord  # type: ignore[comparison-overlap]
    made = ConsumerRecord("t", 1, 2, 3, "key", {"a": 1}, [("h", b"x")])
    assert (made.key, made.value, made.header("h")) == ("key", {"a": 1}, b"x")


def test_record_takes_the_types_of_key_and_value_at_run_time() -> None:
    assert typing.get_args(ConsumerRecord[bytes, str]) == (bytes, str)
    assert typing.get_origin(ConsumerRecord[bytes, str]) is ConsumerRecord
