"""The replicas of partitions, compared in the folders of their nodes."""

from collections.abc import Iterable
from pathlib import Path

from tests.support.logs.batches import values_of
from tests.support.peers.topics import await_true


def log_bytes(folder: Path, topic: str, partition: int) -> bytes:
    """The batches of a partition in a node's folder."""
    return b"".join(each.read_bytes() for each in sorted((folder / f"{topic}-{partition}").glob("*.log")))


def await_equal_replicas(folders: Iterable[Path], topic: str, partitions: int) -> None:
    """Wait until all nodes that hold a partition have the same bytes. For topics to which nothing is written any more."""
    nodes = list(folders)

    def differing() -> list[int]:
        found = []
        for index in range(partitions):
            held = [log_bytes(each, topic, index) for each in nodes if (each / f"{topic}-{index}").exists()]
            assert len(held) > 1, f"{topic}-{index} has no replicas in {nodes}"
            if len(set(held)) != 1:
                found.append(index)
        return found

    await_true(lambda: not differing(), f"equal replicas of {topic}", 60)


def stored_values(folder: Path, topic: str, partition: int) -> list[str]:
    """The values that a node holds of a partition, in their order."""
    return [str(value or b"", "utf-8") for value in values_of(log_bytes(folder, topic, partition))]
