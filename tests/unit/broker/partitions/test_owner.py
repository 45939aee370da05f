"""The contract between partitions and their table, where no type checker sees it: the kernel's `_owner` has no type."""

import re
from pathlib import Path

from ottla.broker.partitions import partition
from ottla.broker.partitions.partition import PartitionOwner
from ottla.broker.partitions.partitions import Partitions


def test_the_table_has_all_that_partitions_call() -> None:
    folder = Path(partition.__file__).parent
    sources = "".join((folder / name).read_text(encoding="utf-8") for name in ("kernel.py", "partition.py"))
    called = set(re.findall(r"_owner\.(\w+)", sources))
    agreed = {name for name in vars(PartitionOwner) if not name.startswith("_")}
    assert called == agreed
    assert all(hasattr(Partitions, name) for name in agreed)
