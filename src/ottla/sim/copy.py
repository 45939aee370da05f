"""Copies a folder between disks: out of a simulation for Kafka's tools to read, or real data into one."""

from ottla.env import Disk, OpenMode

CHUNK_BYTES = 1 << 20


def copy_tree(source: Disk, source_path: str, target: Disk, target_path: str) -> None:
    """Copy everything below `source_path` to `target_path`, which is created if missing. Syncs nothing."""
    target.make_directory(target_path)
    for name in source.list_directory(source_path):
        old, new = f"{source_path}/{name}", f"{target_path}/{name}"
        if source.is_directory(old):
            copy_tree(source, old, target, new)
        else:
            copy_file(source, old, target, new)


def copy_file(source: Disk, old: str, target: Disk, new: str) -> None:
    """Copy one file, with its modification time."""
    reader, writer = source.open(old, OpenMode.READ), target.open(new, OpenMode.CREATE)
    try:
        writer.truncate(0)
        for position in range(0, reader.size, CHUNK_BYTES):
            writer.append(reader.read(position, CHUNK_BYTES))
    finally:
        reader.close()
        writer.close()
    target.set_modified_ms(new, source.modified_ms(old))
