"""From an error code that a server has sent to the exception that a client raises."""

from ottla.errors import cluster, groups, partitions
from ottla.errors.codes import ErrorCode, error_meaning
from ottla.errors.kinds import CLASSES, ClientError

__all__ = ["class_of", "cluster", "exception_of", "groups", "partitions"]  # the modules define the classes of the codes


def exception_of(code: int, text: str | None = None) -> ClientError:
    """The error for a code, of the code's class. A code that only newer servers know gives a `ClientError`."""
    kind = CLASSES.get(code)
    if kind is not None:
        return kind(text)
    if code == ErrorCode.NONE:
        raise ValueError("code 0 (NONE) is no error; check for it before making an exception")
    error = ClientError(text or error_meaning(code))
    error.code = code
    return error


def class_of(code: int) -> type[ClientError] | None:
    """The class of a code; None for NONE and for a code that Kafka 4.3 does not define."""
    return CLASSES.get(code)
