# The types that make `kernel_commit_records.py` compile to C. They change no meaning: without this file everything works, slower.
cimport cython

from ottla.broker.partitions.kernel cimport PartitionTail
from ottla.log.fast_path.kernel_append cimport FastAppend
from ottla.records cimport kernel_fields as fields

cdef Py_ssize_t _REPLY_HEAD_SIZE
cdef Py_ssize_t _REPLY_PARTITION_SIZE
cdef Py_ssize_t _UVARINT_SIZE_MAX
cdef Py_ssize_t _BATCH_HEAD_SIZE
cdef Py_ssize_t _LOG_OVERHEAD
cdef Py_ssize_t _LENGTH_AT
cdef Py_ssize_t _LEADER_EPOCH_AT
cdef Py_ssize_t _MAGIC_AT
cdef Py_ssize_t _CRC_AT
cdef Py_ssize_t _LAST_OFFSET_DELTA_AT
cdef Py_ssize_t _BASE_TIMESTAMP_AT
cdef Py_ssize_t _MAX_TIMESTAMP_AT
cdef Py_ssize_t _PRODUCER_ID_AT
cdef Py_ssize_t _PRODUCER_EPOCH_AT
cdef Py_ssize_t _BASE_SEQUENCE_AT
cdef Py_ssize_t _COUNT_AT
cdef Py_ssize_t _CRC_START
cdef unsigned char _MAGIC
cdef long long _VALUE_VERSION
cdef Py_ssize_t _VALUE_SIZE
cdef Py_ssize_t _RECORD_OVERHEAD
cdef int _REQUEST_VERSION

@cython.final
cdef class KnownTopic:
    cdef str name
    cdef bytes id
    cdef long long count
    cdef bytes key_head
    cdef bytes value_tail

@cython.final
cdef class KnownGroup:
    cdef readonly str group_id
    cdef readonly object hosted
    cdef readonly object offsets
    cdef readonly PartitionTail partition
    cdef int epoch
    cdef Py_ssize_t metadata_bytes_max
    cdef Py_ssize_t batch_bytes_max
    cdef readonly dict by_id
    cdef readonly dict by_name

    @cython.locals(commit=Commit)
    cdef Commit begin(self, bytearray frame, long long version, long long now_ms)

@cython.final
@cython.freelist(8)
cdef class Commit:
    cdef bytearray batch
    cdef list committed
    cdef Py_ssize_t estimated_bytes
    cdef long long first_offset
    cdef bytearray frame
    cdef long long generation
    cdef KnownGroup group
    cdef list indexes
    cdef str instance_id
    cdef str member_id
    cdef long long now_ms
    cdef Py_ssize_t size
    cdef list topics
    cdef long long version

    @cython.locals(
        key_head=bytes, value_tail=bytes, key_size=Py_ssize_t, value_size=Py_ssize_t, count=Py_ssize_t, batch=bytearray,
        out="unsigned char*", size=Py_ssize_t, at=Py_ssize_t,
    )
    cdef bint add(
        self, KnownTopic topic, long long index, long long offset, long long leader_epoch, str metadata, Py_ssize_t metadata_at,
        Py_ssize_t metadata_size
    ) except -1

    @cython.locals(batch=bytearray, out="unsigned char*", count=Py_ssize_t, size=Py_ssize_t, partition=PartitionTail)
    cdef FastAppend check_fast(self)

    @cython.locals(group=KnownGroup, number=Py_ssize_t, last=Py_ssize_t, count=Py_ssize_t, topic=KnownTopic, partitions=dict)
    cdef int replay(self) except -1

    @cython.locals(
        size=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t, reply=bytearray, out="unsigned char*", raw="const unsigned char*",
        position=Py_ssize_t, number=Py_ssize_t, last=Py_ssize_t, count=Py_ssize_t,
    )
    cpdef bytearray reply(self, long long code)
