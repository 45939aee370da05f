"""The interface of checkers that look into nodes: the events they get. Checks nothing itself.

An `Entry` identifies one batch of the metadata log; its records are decoded only when a checker asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ottla.broker.runtime.metadata_log import MetadataBatch, read_batch
from ottla.ids import TopicPartition, Uuid
from ottla.metadata.image.image import MetadataImage
from ottla.records.batch import BatchView
from ottla.wire.base import Message


class Entry(NamedTuple):
    """One batch of the metadata log. Two nodes have the same batch if their entries are equal."""

    base_offset: int
    last_offset: int
    epoch: int
    crc: int

    def __str__(self) -> str:
        return f"{self.base_offset}-{self.last_offset} of epoch {self.epoch} (CRC {self.crc:08x})"


class Logged(NamedTuple):
    """A batch as a node has it in its log."""

    entry: Entry
    view: BatchView

    @classmethod
    def of(cls, view: BatchView) -> Logged:
        return cls(Entry(view.base_offset, view.last_offset, view.leader_epoch, view.crc), view)

    def decoded(self) -> MetadataBatch:
        return read_batch(self.view)


class Answer(NamedTuple):
    """A request that an active controller has answered without an error."""

    request: Message
    response: Any
    entries: Sequence[Entry]
    """The batches that the decision appended."""
    broker_epoch: int | None
    """The epoch of the asking broker's registration when the controller decided; None if it had none."""


PartitionKey = tuple[Uuid, int]
"""Topic id and partition number."""


class HeldPartition(NamedTuple):
    """A partition as a node has it at this moment."""

    key: PartitionKey
    name: TopicPartition
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    is_leading: bool
    is_compacted: bool
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    entries: Callable[[int, int], Sequence[Entry]]
    """Reads the batches from one offset up to another."""


class ClusterChecker:
    """The base class of checkers that look into nodes: gets every event and ignores it. Nodes are named as in the trace."""

    def started(self, node: str) -> None:
        """A life of a node begins."""

    def voted(self, node: str, epoch: int, candidate_id: int) -> None:
        """A node's vote is durable, or it has told another node that it has its vote."""

    def led(self, node: str, epoch: int, log: Sequence[Logged]) -> None:
        """A node has begun to lead the quorum. `log` is its whole log, with the first batch of the epoch."""

    def committed(self, node: str, epoch: int, is_leader: bool, offset: int, batches: Sequence[Logged]) -> None:
        """A node, in `epoch`, regards everything below `offset` as committed. `batches` are those that are new in this life."""

    def published(self, node: str, image: MetadataImage) -> None:
        """A node has applied an image, and its requests see it."""

    def activated(self, node: str, epoch: int) -> None:
        """The controller of a node has become active in `epoch`."""

    def appended(self, node: str, offset: int, image: MetadataImage) -> None:
        """The active controller of a node has appended a change that ends at `offset`, not committed yet: `image` has it."""

    def answered(self, node: str, answer: Answer) -> None:
        """The controller of a node has answered a request without an error."""

    def image_committed(self, before: MetadataImage, image: MetadataImage) -> None:
        """`image` follows `before` in the committed log."""

    def writes_lost(self, node: str) -> None:
        """A node has lost unsynced writes that it may have acknowledged."""

    def partition_held(self, node: str, held: HeldPartition) -> None:
        """A node has applied metadata to a partition, or its high watermark has moved."""

    def isr_proposed(self, node: str, held: HeldPartition, isr: tuple[int, ...]) -> None:
        """A leader is about to ask the controller for another ISR."""

    def ended(self, images: dict[str, MetadataImage]) -> None:
        """The run is over, all nodes have caught up: the image of each."""


class ClusterCheckers(ClusterChecker):
    """Forwards every event to several checkers. The methods are generated from those of `ClusterChecker`, below."""

    def __init__(self, checkers: list[ClusterChecker]) -> None:
        self.all = checkers


def _forwarding(name: str) -> object:
    def forward(self: ClusterCheckers, *what: object) -> None:
        for checker in self.all:
            getattr(checker, name)(*what)

    return forward


for _name in [name for name in vars(ClusterChecker) if not name.startswith("_")]:
    setattr(ClusterCheckers, _name, _forwarding(_name))
