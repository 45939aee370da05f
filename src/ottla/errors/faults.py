"""The exceptions of Ottla. Owns no behaviour beyond saying well what happened; imports nothing of Ottla's.

Every exception's text answers three questions for its reader: what happened, to what, and what to do next.
"""

import errno


class OttlaError(Exception):
    """The root of every error Ottla raises on purpose. Its text is fit to be shown to a person as it is."""


class KafkaError(OttlaError):
    """A refusal that has a Kafka error code, on its way to becoming a value in a response.

    `code` is the protocol's number (see `ottla.errors.codes`). `record_errors` names the offending records of a batch as
    (index in the batch, message), where the protocol has room for them.
    """

    def __init__(self, code: int, message: str, record_errors: tuple[tuple[int, str], ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.record_errors = record_errors


class DecodeError(OttlaError):
    """Bytes from a peer or a file do not follow their schema: too short, a lying length or count, a bad null.

    `position` is the offset into the decoded buffer at which decoding gave up.
    """

    def __init__(self, message: str, position: int = -1) -> None:
        super().__init__(message)
        self.position = position


class CorruptRecords(OttlaError):
    """A record batch is damaged or breaks the format: CRC mismatch, a length that lies, undecodable compression."""

    def __init__(self, message: str, position: int = -1) -> None:
        super().__init__(message)
        self.position = position


class CorruptFile(OttlaError):
    """A file of ours is damaged in a way that recovery must not paper over."""

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

    Raised instead of the bare `OSError`, so that whoever owns the directory can be told which one it was.
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
    """Whether a file could not be opened because too many are: no fault of the disk's."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


class OutOfDescriptors(OttlaError):
    """Something would need more open files than there may be. Whatever is open goes on; so does this, once there is room."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}: this process has as many files and connections open as it may. Raise the limit on open files (ulimit -n) "
            "and restart the node, or delete topics; it goes on by itself when there is room"
        )


class BrokenInvariant(OttlaError):
    """Something that cannot happen has happened. The node stops rather than go on with a state it cannot trust."""
