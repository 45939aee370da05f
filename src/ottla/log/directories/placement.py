"""Chooses the directory of a new partition: the one with the fewest partitions, as Kafka does.

Not the one with the fewest bytes: partitions grow, so their number says more about a disk's future load than its bytes today.
"""

from collections.abc import Iterable

from ottla.log.directories.log_directory import LogDirectory


def by_preference(directories: Iterable[LogDirectory]) -> list[LogDirectory]:
    """The online directories, best first; of equals the one named first in log.dirs."""
    return sorted((directory for directory in directories if directory.is_online), key=lambda d: d.partition_count)
