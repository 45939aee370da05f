"""The layout of a record batch, magic 2: where its fields are, how large they are, and what its attribute bits mean.

Big endian, `HEADER_SIZE` bytes, then the records:

    baseOffset int64 | batchLength int32 (bytes after it) | partitionLeaderEpoch int32 | magic int8 | crc uint32 |
    attributes int16 | lastOffsetDelta int32 | baseTimestamp int64 | maxTimestamp int64 | producerId int64 |
    producerEpoch int16 | baseSequence int32 | count int32

The only place for these numbers. Compiled kernels copy them into C numbers when they are imported (`_CRC_AT = layout.CRC_AT`,
with its type in the `.pxd`); `batch_header` in `kernel_fields.pxd` alone writes them out, and a test compares it with `HEADER`.
"""

from struct import Struct

HEADER = Struct(">qiibIhiqqqhii")
"""All fields of the header, in their order."""
HEADER_SIZE = 61
HEADER_FRONT = Struct(">qiibIhi")
"""The fields up to the last offset delta: where the batch is, in offsets and in bytes."""
PLACE = Struct(">qii")
"""What an append sets: base offset, batch length, leader epoch. The CRC covers none of them."""

LENGTH_AT = 8
LEADER_EPOCH_AT = 12
MAGIC_AT = 16
CRC_AT = 17
ATTRIBUTES_AT = 21
ATTRIBUTE_BITS_AT = 22
"""The low byte of the attributes, which has every bit that means something."""
LAST_OFFSET_DELTA_AT = 23
BASE_TIMESTAMP_AT = 27
MAX_TIMESTAMP_AT = 35
PRODUCER_ID_AT = 43
PRODUCER_EPOCH_AT = 51
BASE_SEQUENCE_AT = 53
COUNT_AT = 57

LOG_OVERHEAD = 12
"""Base offset and batch length: what `batchLength` does not count."""
BATCH_LENGTH_MIN = HEADER_SIZE - LOG_OVERHEAD
CRC_START = ATTRIBUTES_AT
"""Where the bytes that the CRC covers begin; they end with the batch."""
MAGIC = 2
RECORD_SIZE_MIN = 7
"""Bytes of a record without key, value and headers: length, attributes, two deltas, two lengths and a count."""
COMPRESSED_COUNT_MAX = (128 << 20) // RECORD_SIZE_MIN
"""The most records that readers here take from a compressed batch: they unpack 128 MB at most."""

CODEC_MASK = 0x07
APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1
NO_TIMESTAMP = -1
