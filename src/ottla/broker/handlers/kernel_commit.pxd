# The types that make `kernel_commit.py` compile to C. They change no meaning: without this file everything works, slower.
cimport cython

from ottla.broker.partitions.kernel cimport PartitionTail
from ottla.log.kernel cimport LogTail, Prepared

cdef long long _API_KEY
cdef long long _VERSION_MIN
cdef long long _VERSION_MAX
cdef long long _TOPIC_IDS_SINCE
cdef Py_ssize_t _UUID_SIZE
cdef Py_ssize_t _HEAD_SIZE
cdef Py_ssize_t _PARTITION_HEAD_SIZE
cdef Py_ssize_t _METADATA_SIZE_MAX
cdef Py_ssize_t _REPLY_HEAD_SIZE
cdef Py_ssize_t _REPLY_PARTITION_SIZE
cdef Py_ssize_t _UVARINT_SIZE_MAX
cdef Py_ssize_t _BATCH_HEAD_SIZE
cdef Py_ssize_t _LOG_OVERHEAD
cdef Py_ssize_t _CRC_AT
cdef Py_ssize_t _CRC_START
cdef unsigned char _MAGIC
cdef long long _VALUE_VERSION
cdef Py_ssize_t _VALUE_SIZE
cdef Py_ssize_t _RECORD_OVERHEAD
cdef int _REQUEST_VERSION
cdef long long _INT32_MAX
cdef bint _COMPILED

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

@cython.final
@cython.freelist(8)
cdef class Commit:
    cdef bytearray batch
    cdef list committed
    cdef Py_ssize_t estimated_bytes
    cdef long long first_offset
    cdef long long generation
    cdef KnownGroup group
    cdef list indexes
    cdef str instance_id
    cdef str member_id
    cdef long long now_ms
    cdef Py_ssize_t size
    cdef list topics
    cdef long long version

@cython.final
cdef class UsualCommit:
    cdef dict _groups
    cdef object _find_group
    cdef object _find_topic

    @cython.locals(commit=Commit, group=KnownGroup, prepared=Prepared)
    cpdef object answer(self, bytearray frame, object now, long long now_ms)

    @cython.locals(
        raw="const unsigned char*", version=cython.longlong, position=Py_ssize_t, client_id_size=Py_ssize_t, size=Py_ssize_t,
        at=Py_ssize_t, name=bytes, group=KnownGroup, count=Py_ssize_t, _=Py_ssize_t,
    )
    cdef bint _read(self, bytearray frame, Py_ssize_t end, Commit commit) except -1

    @cython.locals(
        raw="const unsigned char*", group=KnownGroup, start=Py_ssize_t, stop=Py_ssize_t, size=Py_ssize_t, name=bytes,
        topic=KnownTopic, count=Py_ssize_t, _=Py_ssize_t,
    )
    cdef Py_ssize_t _read_topic(self, bytearray frame, Py_ssize_t position, Py_ssize_t end, Commit commit) except? -1

@cython.locals(partition=PartitionTail, log=LogTail)
cdef bint _may_append(KnownGroup group) except -1

@cython.locals(
    raw="const unsigned char*", out="unsigned char*", index=cython.longlong, offset=cython.longlong,
    leader_epoch=cython.longlong, size=Py_ssize_t, metadata_size=Py_ssize_t, metadata_at=Py_ssize_t, metadata=str,
    key_size=Py_ssize_t, value_size=Py_ssize_t, count=Py_ssize_t, batch=bytearray, at=Py_ssize_t,
    step=Py_ssize_t,
)
cdef Py_ssize_t _read_partition(
    bytearray frame, Py_ssize_t position, Py_ssize_t end, Commit commit, KnownTopic topic
) except? -1

@cython.locals(batch=bytearray, out="unsigned char*", count=Py_ssize_t, size=Py_ssize_t, partition=PartitionTail)
cdef Prepared _prepared(Commit commit)

@cython.locals(group=KnownGroup, number=Py_ssize_t, last=Py_ssize_t, count=Py_ssize_t, topic=KnownTopic, partitions=dict)
cdef int _replay(Commit commit) except -1

@cython.locals(
    size=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t, reply=bytearray, out="unsigned char*", raw="const unsigned char*",
    at=Py_ssize_t, position=Py_ssize_t, number=Py_ssize_t, last=Py_ssize_t, count=Py_ssize_t,
)
cdef bytearray _reply(bytearray frame, list topics, list indexes, long long code)

@cython.locals(value=cython.longlong, index=Py_ssize_t)
cdef long long _number(const unsigned char* raw, Py_ssize_t at, Py_ssize_t size) noexcept

@cython.locals(value=cython.longlong, wide=cython.longlong, shift=cython.int)
cdef (Py_ssize_t, Py_ssize_t) _uvarint(const unsigned char* raw, Py_ssize_t position, Py_ssize_t end) noexcept

@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _uvarint_size(Py_ssize_t value) noexcept

@cython.locals(index=Py_ssize_t)
cdef void _put(unsigned char* out, Py_ssize_t at, long long value, Py_ssize_t size) noexcept

cdef Py_ssize_t _put_uvarint(unsigned char* out, Py_ssize_t at, Py_ssize_t value) noexcept

@cython.locals(size=Py_ssize_t, out="unsigned char*", raw="const unsigned char*", index=Py_ssize_t)
cdef Py_ssize_t _copy(bytearray batch, Py_ssize_t at, bytes field) except -1
