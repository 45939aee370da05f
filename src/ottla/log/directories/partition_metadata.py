"""`partition.metadata`: the id of the topic that a partition's folder belongs to.

Text, without a newline at the end: `version: 0`, `topic_id: ` and the topic's UUID. A topic that is deleted and created again
gets another id; so an old folder is not taken for the new topic's. A damaged file is refused: with a guessed id, another
topic's records could be served or deleted.
"""

from ottla.env import SMALL_FILE_BYTES_MAX, Disk
from ottla.errors import CorruptFile
from ottla.ids import ZERO_UUID, InvalidUuid, Uuid, uuid_parse, uuid_text
from ottla.log.names import PARTITION_METADATA

VERSION = 0
_REMEDY = (
    "Copy the file from another partition or replica of the same topic, where it is the same; without one, move the folder out "
    "of the log directory"
)


def format_partition_metadata(topic_id: Uuid) -> bytes:
    """The bytes of the file."""
    return f"version: {VERSION}\ntopic_id: {uuid_text(topic_id)}".encode()


def parse_partition_metadata(path: str, data: bytes) -> Uuid:
    """Parse the topic id. Later versions of the file begin the same way. `CorruptFile` if it is damaged."""
    lines = data.decode("ascii", "replace").split("\n")
    version = lines[0].split()
    if len(version) != 2 or version[0] != "version:" or not version[1].isdigit():
        raise CorruptFile(path, 0, f"line 1 should be `version: {VERSION}`, not {lines[0][:60]!r}", _REMEDY)
    position = len(lines[0]) + 1
    words = lines[1].split() if len(lines) > 1 else []
    if len(words) != 2 or words[0] != "topic_id:":
        shown = repr(lines[1][:60]) if len(lines) > 1 else "missing"
        raise CorruptFile(path, min(position, len(data)), f"line 2 should be `topic_id: ` and an id; it is {shown}", _REMEDY)
    try:
        topic_id = uuid_parse(words[1])
    except InvalidUuid as invalid:
        raise CorruptFile(path, position, str(invalid), _REMEDY) from None
    if topic_id == ZERO_UUID:
        raise CorruptFile(path, position, "the topic id is zero, which no topic has", _REMEDY)
    return topic_id


def read_partition_metadata(disk: Disk, folder: str) -> Uuid | None:
    """Read the topic id of a partition's folder; None if it has no such file. `CorruptFile` if it is damaged."""
    path = f"{folder}/{PARTITION_METADATA}"
    try:
        data = disk.read_file(path, SMALL_FILE_BYTES_MAX)
    except FileNotFoundError:
        return None
    return parse_partition_metadata(path, data)


async def write_partition_metadata(disk: Disk, folder: str, topic_id: Uuid) -> None:
    """Write the file durably, before the first record."""
    await disk.replace_file(f"{folder}/{PARTITION_METADATA}", format_partition_metadata(topic_id))
