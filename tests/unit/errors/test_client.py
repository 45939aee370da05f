"""The errors of the clients themselves: what they carry, and which of Python's own classes they are."""

import builtins

import pytest

from ottla import errors


def test_deserialization_error_carries_the_raw_record() -> None:
    error = errors.DeserializationError(
        topic="t", partition=3, offset=41, raw_key=b"k", raw_value=b"\xff", raw_headers=[("h", None)], timestamp=5
    )
    assert (error.topic, error.partition, error.offset, error.timestamp) == ("t", 3, 41, 5)
    assert (error.raw_key, error.raw_value, error.raw_headers) == (b"k", b"\xff", [("h", None)])
    assert str(error) == "the value of the record at offset 41 of t-3 cannot be deserialized; seek to 42 to step past it"
    assert "the key of" in str(errors.DeserializationError(topic="t", partition=3, offset=41, is_key=True))
    assert isinstance(error, errors.SerializationError)


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.ConfigError, ValueError),
        (errors.ArgumentError, ValueError),
        (errors.IllegalStateError, RuntimeError),
        (errors.ConcurrentUseError, RuntimeError),
        (errors.BufferExhaustedError, builtins.TimeoutError),
    ],
)
def test_error_is_also_one_of_pythons(kind: type[errors.ClientError], builtin: type[Exception]) -> None:
    with pytest.raises(builtin, match=r"^what$"):
        raise kind("what")


def test_positions_are_carried() -> None:
    truncated = errors.LogTruncationError(positions={("t", 0): 9}, diverging={("t", 0): 7})
    assert truncated.code == 1
    assert truncated.positions == {("t", 0): 9}
    assert truncated.diverging == {("t", 0): 7}
    missing = errors.NoOffsetForPartitionError(partitions=[("t", 0)])
    assert missing.partitions == (("t", 0),)
    assert isinstance(missing, errors.InvalidOffsetError)
    assert isinstance(truncated, errors.InvalidOffsetError)


def test_every_error_of_the_client_says_something_without_a_text() -> None:
    own = [
        errors.WakeupError,
        errors.SerializationError,
        errors.ConfigError,
        errors.CommitFailedError,
        errors.IllegalStateError,
    ]
    texts = {str(kind()) for kind in own}
    assert len(texts) == len(own)
    assert str(errors.ClientError()) not in texts
