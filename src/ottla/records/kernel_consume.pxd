# The types that make `kernel_consume.py` compile to C. They change no meaning: without this file everything works, slower.
cimport cython

from ottla.records cimport kernel_fields as fields, kernel_views as views

cdef Py_ssize_t _RECORD_SIZE_MIN
cdef Py_ssize_t _HEADER_SIZE
cdef Py_ssize_t _LOG_OVERHEAD
cdef Py_ssize_t _CRC_START
cdef long long _MAGIC
cdef long long _CODEC_MASK
cdef long long _APPEND_TIME
cdef long long _TRANSACTIONAL
cdef long long _CONTROL
cdef bytes _NO_HEADERS
cdef bint _COMPILED

@cython.final
@cython.freelist(512)
cdef class ConsumerRecord:
    cdef readonly str topic
    cdef readonly long long offset
    cdef readonly long long timestamp
    cdef readonly object key
    cdef readonly object value
    cdef bytes _headers
    cdef readonly int partition
    cdef readonly int leader_epoch
    cdef readonly int timestamp_type

@cython.final
cdef class RecordDecoder:
    cdef object _view
    cdef const unsigned char[::1] _data
    cdef Py_ssize_t _start
    cdef Py_ssize_t _position
    cdef Py_ssize_t _end
    cdef Py_ssize_t _index
    cdef Py_ssize_t _count
    cdef long long _base_offset
    cdef long long _base_timestamp
    cdef bint _is_append_time
    cdef str _topic
    cdef int _partition
    cdef readonly int leader_epoch
    cdef readonly Py_ssize_t at
    cdef readonly Py_ssize_t batch_size
    cdef readonly long long batch_next_offset
    cdef readonly long long next_offset
    cdef readonly ConsumerRecord failed
    cdef readonly bint is_key_failed

    @cython.locals(
        size=Py_ssize_t, raw="const unsigned char*", base_offset=cython.longlong, length=cython.longlong,
        leader_epoch=cython.longlong, magic=cython.longlong, crc=cython.longlong, attributes=cython.longlong,
        last_delta=cython.longlong, base_timestamp=cython.longlong, max_timestamp=cython.longlong, _=cython.longlong,
        count=cython.longlong, next_offset=cython.longlong, start=Py_ssize_t, stop=Py_ssize_t,
    )
    cpdef bint open_plain(self, Py_ssize_t at, bint is_checked, bint is_committed_only) except -1

    @cython.locals(
        raw="const unsigned char*", end=Py_ssize_t, count=Py_ssize_t, index=Py_ssize_t, position=Py_ssize_t,
        base_offset=cython.longlong, base_timestamp=cython.longlong, is_append_time=bint, partition=int, leader_epoch=int,
        next_offset=cython.longlong, topic=str, is_plain=bint, taken=Py_ssize_t, size=cython.longlong, at=Py_ssize_t,
        stop=Py_ssize_t, delta=cython.longlong, offset_delta=cython.longlong, key_size=cython.longlong, key_at=Py_ssize_t,
        value_size=cython.longlong, value_at=Py_ssize_t, has_headers=bint, offset=cython.longlong, record=ConsumerRecord,
    )
    cpdef Py_ssize_t take(self, list records, Py_ssize_t limit, object key_deserializer, object value_deserializer) except -1

    @cython.locals(taken=Py_ssize_t)
    cpdef Py_ssize_t take_plain(
        self, list records, Py_ssize_t limit, object key_deserializer, object value_deserializer, bint is_checked,
        bint is_committed_only,
    ) except -1

    cdef object _deserialize(self, ConsumerRecord record, object key_deserializer, object value_deserializer)

@cython.locals(
    raw="const unsigned char*", end=Py_ssize_t, position=Py_ssize_t, count=cython.longlong, size=cython.longlong,
    _=Py_ssize_t, found=list,
)
cdef tuple _decode_headers(bytes data)

@cython.locals(out=bytearray)
cdef bytes _encode_headers(object headers)
