"""Why a fast path does not append a batch, and so what the general path need not check again."""

from enum import IntEnum


class Decline(IntEnum):
    """What stopped the fast path. Everything that it checks before that has passed."""

    NO = 0
    """Nothing: the batch is appended as it is."""
    HEADER = 1
    """The header, or the topic's settings for such a batch. Neither its CRC nor its records have been looked at."""
    CRC = 2
    """The CRC is not the one in the header."""
    RECORDS = 3
    """The CRC is right. The records may be at fault, or their largest timestamp is not the one in the header."""
    LOG = 4
    """The batch may be appended as it is, but the log has more to do: another segment, epoch, producer state, or a flush."""
    PARTITION = 5
    """The partition's state does not allow an append, or no acknowledgement at once. The batch has not been looked at."""
