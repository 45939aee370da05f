"""Where a new partition goes: to the directory with the fewest partitions, not the one with the fewest bytes, as Kafka does.

Partitions grow; how many there are says more about tomorrow's load than how full the disks are today.
"""

from collections.abc import Iterable

from ottla.log.directories.log_directory import LogDirectory


def by_preference(directories: Iterable[LogDirectory]) -> list[LogDirectory]:
    """The online directories, best first; of equals the one named first in log.dirs."""
    return sorted((directory for directory in directories if directory.is_online), key=lambda d: d.partition_count)
