# The types that make `kernel_produce.py` compile to C. They change no meaning: without this file everything works, slower.
cimport cython

from ottla.broker.partitions.kernel cimport PartitionTail
from ottla.log.fast_path.kernel_append cimport FastAppend
from ottla.records cimport kernel_fields as fields, kernel_views as views
from ottla.records.kernel_batch cimport CheckedBatch

cdef int _VERSION_MIN
cdef int _VERSION_MAX
cdef int _TOPIC_IDS_SINCE
cdef Py_ssize_t _UUID_SIZE
cdef Py_ssize_t _HEAD_SIZE
cdef Py_ssize_t _REPLY_HEAD_SIZE
cdef Py_ssize_t _REPLY_TAIL_SIZE
cdef Py_ssize_t _PARTITION_SIZE
cdef Py_ssize_t _UVARINT_SIZE_MAX
cdef Py_ssize_t _PARTITIONS_MAX
cdef Py_ssize_t _FRAME_BYTES_MAX
cdef long long _TRANSACTIONAL
cdef int _DECLINE_NO

@cython.final
@cython.freelist(16)
cdef class Appended:
    cdef FastAppend append
    cdef readonly long long base_offset
    cdef readonly long long end_offset
    cdef public object failure
    cdef readonly int index
    cdef readonly PartitionTail partition

@cython.final
cdef class Unsettled:
    cdef readonly list appended
    cdef readonly list outcomes
    cdef readonly bytearray reply
    cdef readonly long long timeout_ms

@cython.final
cdef class FastProduce:
    cdef int _acks
    cdef dict _by_id
    cdef dict _by_name
    cdef set _granted
    cdef long long _requests
    cdef long long _timeout_ms

    @cython.locals(
        topics=list, appended=list, has_failed=bint, is_unsettled=bint, one=Appended, first=Py_ssize_t, count=Py_ssize_t,
        partition=PartitionTail, unsettled=Unsettled, acks=cython.int, timeout_ms=cython.longlong,
    )
    cpdef object answer(self, bytearray frame, long long now_ms, set granted)

    @cython.locals(
        version=cython.int, position=Py_ssize_t, client_id_size=Py_ssize_t, acks=cython.int, count=Py_ssize_t, _=Py_ssize_t,
        raw="const unsigned char*",
    )
    cdef bint _check(
        self, const unsigned char[::1] data, Py_ssize_t end, object view, long long now_ms, list topics, list appended
    ) except -1

    @cython.locals(
        start=Py_ssize_t, size=Py_ssize_t, name_at=Py_ssize_t, topic_id=bytes, name=str, stop=Py_ssize_t, count=Py_ssize_t, _=Py_ssize_t,
        index=cython.int, records_at=Py_ssize_t, held=dict, one=Appended, raw="const unsigned char*",
        partition=PartitionTail, append=FastAppend, batch=CheckedBatch,
    )
    cdef Py_ssize_t _check_topic(
        self, const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end, object view, int version, long long now_ms,
        list topics, list appended
    ) except? -1

@cython.locals(checked=dict, one=Appended, batch=CheckedBatch)
cdef dict _checked(list appended)

@cython.locals(
    size=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t, _=Py_ssize_t, reply=bytearray, out="unsigned char*",
    raw="const unsigned char*", position=Py_ssize_t, first=Py_ssize_t, count=Py_ssize_t,
    number=Py_ssize_t, one=Appended,
)
cdef bytearray _reply(bytearray frame, list topics, list appended)
