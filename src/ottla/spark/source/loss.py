"""Data loss: records that were to be read and are not there. Says which, and where reading can go on. Pure.

With failOnDataLoss=true a loss ends the read with a `SourceError`; with false it is logged and reading goes on with what is
there. Records are lost to retention or deletion (the log starts later than the read), with a topic that was deleted and maybe
created again (its id is another one), or to an unclean election (the log of the same topic ends before the read).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ottla import TopicPartition
from ottla.spark.errors import SourceError
from ottla.spark.source.offsets import Offsets

logger = logging.getLogger("ottla.spark")

NAMES_SHOWN = 8
REMEDY = "set failOnDataLoss to false to go on with what is there"


class DataLoss:
    """Tells losses, as failOnDataLoss says."""

    def __init__(self, is_fatal: bool) -> None:
        self._is_fatal = is_fatal

    def tell(self, sentence: str) -> None:
        """Raise the loss, or log it."""
        if self._is_fatal:
            raise SourceError(f"{sentence}; {REMEDY}")
        logger.warning("%s; reading goes on with what is there, as failOnDataLoss=false says", sentence)

    def starts(self, starts: Offsets, firsts: Offsets) -> Offsets:
        """`starts`, not before the first offsets that are there."""
        found = dict(starts)
        for each, first in firsts.items():
            if starts[each] < first:
                self.tell(aged_out(each, starts[each], first))
                found[each] = first
        return found

    def gone_partitions(self, gone: Iterable[TopicPartition]) -> None:
        """Partitions that were read before and are not there any more."""
        names = [str(each) for each in sorted(gone)]
        if names:
            more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
            self.tell(
                f"{', '.join(names[:NAMES_SHOWN])}{more} was read before and is gone: its topic was deleted, or the options do "
                "not name it any more"
            )

    def recreated(self, each: TopicPartition, position: int, end: int) -> None:
        """The topic of a partition is another one than the one that was read before."""
        self.tell(made_again(each, position, end))

    def cut_off(self, each: TopicPartition, position: int, end: int) -> None:
        """A partition ends before the position, and its topic is the same."""
        self.tell(cut_short(each, position, end))

    def new_partition(self, each: TopicPartition, first: int) -> None:
        """A partition that was not there before does not start at 0."""
        if first > 0:
            self.tell(f"{each} is new, and {aged_out(each, 0, first)}")


def aged_out(each: TopicPartition, start: int, first: int) -> str:
    """What is missing when a log starts at `first`."""
    return (
        f"the records of {each} from offset {start} to {first - 1} are gone: retention or a deletion removed them before they "
        f"were read, and the first one there has offset {first}"
    )


def made_again(each: TopicPartition, position: int, end: int) -> str:
    """What is missing when a log ends before the position."""
    return (
        f"{each} was read up to offset {position} and now ends at {end}: the topic was deleted and created again, and what the "
        "old one still had is gone"
    )


def cut_short(each: TopicPartition, position: int, end: int) -> str:
    """What is missing when the log of the same topic ends before the position."""
    return (
        f"{each} was read up to offset {position} and now ends at {end}: an unclean election, or a disk that lost what it had "
        f"stored, has removed the records from offset {end} on, and others may take their offsets"
    )
