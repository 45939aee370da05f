"""Which twin of the partitions' kernel is in use; see `records/kernels.py`. Everything else imports its names from here."""

from typing import TYPE_CHECKING

from ottla.records.kernels import PURE_ASKED, load_twin

if TYPE_CHECKING or not PURE_ASKED:
    from ottla.broker.partitions.kernel import PartitionTail
else:
    PartitionTail = load_twin("kernel", plain=True, room="broker.partitions").PartitionTail

__all__ = ["PartitionTail"]
