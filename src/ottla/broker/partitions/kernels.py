"""Chooses the variant of the partitions' kernel; see `records/kernels.py`. Everything else imports its names from here."""

from typing import TYPE_CHECKING

from ottla.records.kernels import PURE_ASKED, load_variant

if TYPE_CHECKING or not PURE_ASKED:
    from ottla.broker.partitions.kernel import PartitionTail
else:
    PartitionTail = load_variant("kernel", pure=True, room="broker.partitions").PartitionTail

__all__ = ["PartitionTail"]
