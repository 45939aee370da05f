"""The exceptions that a server raises, and the base classes of all. Imports only the table of error codes.

Every exception's text answers three questions: what happened, to what, and what to do next.
"""

import copy
import errno
from typing import Any, TypeVar

from ottla.errors.codes import error_name, error_of

E = TypeVar("E", bound="KafkaError")
Failure = TypeVar("Failure", bound=BaseException)


class OttlaError(Exception):
    """The base class of every error Ottla raises on purpose. Its text can be shown to a user unchanged."""


class KafkaError(OttlaError):
    """A refusal with a Kafka error code, which becomes a value in a response.

    `code` is the protocol's number (see `ottla.errors.codes`). `record_errors` names the offending records of a batch as
    (index in the batch, message), where the protocol has room for them. Brokers raise this class; clients raise its
    subclasses, one for each code (see `ottla.errors.kinds`).
    """

    code: int
    is_unsent: bool = False
    """True: the request never left this process, so the server cannot have executed it."""

    def __init__(self, code: int, message: str, record_errors: tuple[tuple[int, str], ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.record_errors = record_errors

    @property
    def is_retriable(self) -> bool:
        """Whether the same request may succeed later. False for a code that Kafka 4.3 does not define."""
        error = error_of(self.code)
        return error is not None and error.retriable

    @property
    def name(self) -> str:
        """The protocol's name for the code, such as `NOT_CONTROLLER`."""
        return error_name(self.code)

    def __reduce__(self) -> tuple[Any, ...]:
        # The inherited form calls the class with `args`, which hold only the message.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[KafkaError], args: tuple[object, ...], state: dict[str, object]) -> KafkaError:
    """Rebuild a pickled error without calling its constructor, which may take other arguments than `args`."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


def without_frames(error: E) -> E:
    """A copy of `error` that no `raise` has passed: one that is both kept and raised keeps the frames that it passed alive."""
    return copy.copy(error)


def drop_frames(error: Failure) -> Failure:
    """`error`, without the frames that it passed. For one that is kept or was reported: its frames refer to the request and to
    what keeps the error, a cycle that would hold a request of perhaps 60,000 elements until the garbage collector runs."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error


class DecodeError(OttlaError):
    """Bytes from a peer or a file do not follow their schema: too short, a wrong length or count, a null where none may be.

    `position` is the offset into the decoded buffer at which decoding gave up.
    """

    def __init__(self, message: str, position: int = -1) -> None:
        super().__init__(message)
        self.position = position


class CorruptRecords(OttlaError):
    """A record batch is damaged or breaks the format: CRC mismatch, wrong length, undecodable compression."""

    def __init__(self, message: str, position: int = -1) -> None:
        super().__init__(message)
        self.position = position


class CorruptFile(OttlaError):
    """A file of Ottla's is damaged in a way that recovery must not repair silently."""

    def __init__(self, path: str, position: int, what: str, remedy: str) -> None:
        super().__init__(f"{path} at byte {position}: {what}. {remedy}")
        self.path = path
        self.position = position
        self.what = what
        self.remedy = remedy


class DirectoryInUse(OttlaError):
    """Another process holds the lock of a log directory."""


class LogDirectoryFailed(OttlaError):
    """An operation on a log directory failed in the operating system: its partitions go offline.

    Raised instead of the bare `OSError`, so that the owner of the directory learns which one failed.
    """

    def __init__(self, directory: str, cause: OSError) -> None:
        self.remedy = f"{remedy_for(cause) or 'Repair the disk'} and restart the node"
        super().__init__(f"log directory {directory} failed: {cause}. Its partitions are offline. {self.remedy}")
        self.directory = directory
        self.cause = cause

    @property
    def brief(self) -> str:
        """For the many texts that follow the first: its log line has said the rest."""
        return f"log directory {self.directory} has failed ({self.cause.strerror or self.cause})"


_REMEDIES = {
    errno.ENOSPC: "Free space on its disk",
    errno.EDQUOT: "Free space on its disk",
    errno.EROFS: "Mount its file system writable",
    errno.EACCES: "Give the user of this process the right to write there",
    errno.EPERM: "Give the user of this process the right to write there",
    errno.EMFILE: "Raise the limit on open files (ulimit -n)",
    errno.ENFILE: "Raise the limit on open files (ulimit -n)",
}


def remedy_for(error: OSError) -> str | None:
    """What to do about a file or folder that cannot be written, where the operating system's error tells."""
    return _REMEDIES.get(error.errno or 0)


def is_out_of_descriptors(error: OSError) -> bool:
    """Whether `error` means that too many files are open, which is no failure of the disk."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


class OutOfDescriptors(OttlaError):
    """An operation needs more open files than the limit allows. Open files keep working; the operation can be retried."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}: this process has as many files and connections open as it may. Raise the limit on open files (ulimit -n) "
            "and restart the node, or delete topics; it goes on by itself when there is room"
        )


class BrokenInvariant(OttlaError):
    """An invariant does not hold. The node stops, because it can no longer trust its state."""
