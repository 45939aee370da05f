# The types that make `kernel.py` compile to C. They change no meaning: without this file everything works, slower.
cimport cython

from ottla.records cimport kernel_fields as fields

cdef Py_ssize_t _RECORD_SIZE_MIN
cdef Py_ssize_t _GROWTH_MIN
cdef Py_ssize_t _SCRATCH_SIZE
cdef Py_ssize_t _NAME_SIZE_MAX
cdef Py_ssize_t _NAME_SLOT_MASK
cdef list _NAMES
cdef bint _COMPILED
cdef bytes _NO_HEADERS
cdef long long _INT32_MAX
cdef long long _INT64_MAX
cdef long long _INT64_MIN

@cython.final
cdef class Record:
    cdef readonly long long offset
    cdef readonly long long timestamp
    cdef readonly bytes key
    cdef readonly bytes value
    cdef bytes _headers

cdef long long _checked64(long long value) except? -1

@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _write_field(bytearray buffer, Py_ssize_t position, bytes field) except -1

@cython.locals(
    record=Record, timestamp=cython.longlong, max_timestamp=cython.longlong, timestamp_delta=cython.longlong,
    offset_delta=cython.longlong, tail=bytes,
)
cpdef tuple encode_records(
    bytearray buffer, Py_ssize_t position, object records, long long base_offset, long long base_timestamp
)

@cython.locals(stamp=cython.longlong, max_timestamp=cython.longlong, offset_delta=cython.longlong, scratch=bytearray, size=Py_ssize_t)
cpdef tuple encode_rows(bytearray buffer, Py_ssize_t position, object rows, long long base_timestamp)

@cython.locals(
    key_size=Py_ssize_t, value_size=Py_ssize_t, size=Py_ssize_t, needed=Py_ssize_t,
    out="unsigned char*",
)
cdef Py_ssize_t _encode(
    bytearray buffer, Py_ssize_t position, long long timestamp_delta, long long offset_delta, bytes key, bytes value,
    object headers, Py_ssize_t headers_size,
) except -1

@cython.locals(key=bytes, position=Py_ssize_t, needed=Py_ssize_t)
cdef Py_ssize_t _encode_headers(bytearray scratch, object headers) except -1

cdef bytes _header_key(str name)

@cython.final
cdef class RecordIterator:
    cdef bytes _data
    cdef const unsigned char* _raw
    cdef Py_ssize_t _start
    cdef Py_ssize_t _position
    cdef Py_ssize_t _end
    cdef Py_ssize_t _index
    cdef Py_ssize_t _count
    cdef long long _base_offset
    cdef long long _base_timestamp
    cdef bint _is_append_time

    @cython.locals(
        raw="const unsigned char*", position=Py_ssize_t, began=Py_ssize_t, limit=Py_ssize_t, size=cython.longlong,
        key_size=cython.longlong, value_size=cython.longlong, timestamp_delta=cython.longlong,
        offset_delta=cython.longlong, record=Record,
    )
    cdef Record _read(self)

@cython.locals(
    raw="const unsigned char*", end=Py_ssize_t, position=Py_ssize_t, count=cython.longlong, size=cython.longlong,
    index=Py_ssize_t, key=str, value=bytes, first=tuple, second=tuple, more=list,
)
cdef tuple _decode_headers(bytes data)

@cython.locals(slot=Py_ssize_t, known=tuple, kept=bytes, other="const unsigned char*", same=Py_ssize_t)
cdef str _header_name(const unsigned char* raw, Py_ssize_t position, Py_ssize_t size)
