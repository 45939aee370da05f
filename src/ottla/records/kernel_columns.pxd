# The types that make `kernel_columns.py` compile to C. They change no meaning: without this file everything works, slower.
cimport cython

from ottla.records cimport kernel_fields as fields, kernel_views as views

cdef Py_ssize_t _RECORD_SIZE_MIN

@cython.locals(
    size=cython.longlong, limit=Py_ssize_t, timestamp_delta=cython.longlong, offset_delta=cython.longlong,
    key_size=cython.longlong, key_at=Py_ssize_t, value_size=cython.longlong, value_at=Py_ssize_t,
)
cdef (Py_ssize_t, long long, long long, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t) _parse_record(
    const unsigned char* raw, Py_ssize_t position, Py_ssize_t end
) noexcept nogil

@cython.locals(key_size=cython.longlong, key_at=Py_ssize_t, value_size=cython.longlong, value_at=Py_ssize_t)
cdef (Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t) _parse_header(
    const unsigned char* raw, Py_ssize_t position, Py_ssize_t limit
) noexcept nogil

@cython.locals(
    count=cython.longlong, left=cython.longlong, key_bytes=Py_ssize_t, value_bytes=Py_ssize_t, key_size=Py_ssize_t,
    value_size=Py_ssize_t, _=Py_ssize_t,
)
cdef (Py_ssize_t, Py_ssize_t, Py_ssize_t) _measure_headers(
    const unsigned char* raw, Py_ssize_t position, Py_ssize_t limit
) noexcept nogil

@cython.final
cdef class RecordWalk:
    cdef readonly long long min_timestamp
    cdef readonly long long max_timestamp
    cdef readonly Py_ssize_t displaced
    cdef readonly Py_ssize_t keyless
    cdef readonly Py_ssize_t valueless
    cdef readonly Py_ssize_t key_bytes
    cdef readonly Py_ssize_t value_bytes
    cdef readonly Py_ssize_t header_count
    cdef readonly Py_ssize_t header_key_bytes
    cdef readonly Py_ssize_t header_value_bytes

    cdef readonly Py_ssize_t index
    cdef readonly Py_ssize_t position
    cdef readonly Py_ssize_t count

    cpdef int walk(
        self, const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count, long long base_timestamp
    ) except -1

    cpdef int begin(self, const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count) except -1

    @cython.locals(raw="const unsigned char*", unlocked=cython.p_void, is_whole=bint)
    cpdef int walk_unlocked(
        self, const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count, long long base_timestamp
    ) except -1

    cpdef int go_on(
        self, const unsigned char[::1] data, Py_ssize_t end, Py_ssize_t until_index, long long base_timestamp
    ) except -1

    cdef int _check(self, Py_ssize_t end, Py_ssize_t until_index, bint is_whole) except -1

    @cython.locals(
        min_timestamp=cython.longlong, max_timestamp=cython.longlong, timestamp=cython.longlong, delta=cython.longlong,
        offset_delta=cython.longlong, displaced=Py_ssize_t, keyless=Py_ssize_t, valueless=Py_ssize_t, key_bytes=Py_ssize_t,
        value_bytes=Py_ssize_t, header_count=Py_ssize_t, header_key_bytes=Py_ssize_t, header_value_bytes=Py_ssize_t,
        position=Py_ssize_t, index=Py_ssize_t, limit=Py_ssize_t, key_size=Py_ssize_t, value_size=Py_ssize_t,
        header_at=Py_ssize_t, headers=Py_ssize_t, _=Py_ssize_t, is_whole=bint,
    )
    cdef bint _step(
        self, const unsigned char* raw, Py_ssize_t end, Py_ssize_t until_index, long long base_timestamp
    ) noexcept nogil

@cython.final
cdef class RecordScan:
    cdef readonly Py_ssize_t index
    cdef readonly Py_ssize_t position
    cdef readonly long long timestamp
    cdef readonly long long offset_delta
    cdef readonly bint is_keyless

    @cython.locals(
        timestamp=cython.longlong, delta=cython.longlong, offset_delta=cython.longlong, end=Py_ssize_t, stop=Py_ssize_t,
        index=Py_ssize_t, limit=Py_ssize_t, key_size=Py_ssize_t, _=Py_ssize_t, raw="const unsigned char*",
    )
    cpdef bint find(
        self, const unsigned char[::1] data, Py_ssize_t count, long long base_timestamp, long long min_timestamp,
        long long min_offset_delta, Py_ssize_t records_max
    ) except -1

@cython.locals(found=RecordWalk)
cpdef tuple walk_records(
    const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count, long long base_timestamp
)

@cython.locals(buffers=list, index=Py_ssize_t)
cpdef list new_buffers(list sizes)

@cython.final
cdef class ColumnWriter:
    cdef long long[::1] _offsets
    cdef long long[::1] _timestamps
    cdef unsigned char[::1] _keys
    cdef int[::1] _key_ends
    cdef unsigned char[::1] _key_data
    cdef unsigned char[::1] _values
    cdef int[::1] _value_ends
    cdef unsigned char[::1] _value_data
    cdef int[::1] _header_lists
    cdef int[::1] _header_key_ends
    cdef unsigned char[::1] _header_key_data
    cdef unsigned char[::1] _header_values
    cdef int[::1] _header_value_ends
    cdef unsigned char[::1] _header_value_data
    cdef Py_ssize_t _row
    cdef Py_ssize_t _headers
    cdef bint _has_keys
    cdef bint _has_values
    cdef bint _has_headers

    @cython.locals(row=Py_ssize_t, position=Py_ssize_t, raw="const unsigned char*", unlocked=cython.p_void)
    cpdef object add(
        self, const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count, long long base_offset,
        long long base_timestamp, bint is_append_time,
    )

    @cython.locals(
        row=Py_ssize_t, last=Py_ssize_t, key_end=Py_ssize_t, value_end=Py_ssize_t, limit=Py_ssize_t, delta=cython.longlong,
        offset_delta=cython.longlong, key_at=Py_ssize_t, key_size=Py_ssize_t, value_at=Py_ssize_t, value_size=Py_ssize_t,
        header_at=Py_ssize_t, keys_out="unsigned char*", values_out="unsigned char*", key_ends="int[::1]",
        key_data="unsigned char[::1]", value_ends="int[::1]", value_data="unsigned char[::1]",
    )
    cdef Py_ssize_t _fill(
        self, const unsigned char* raw, Py_ssize_t position, Py_ssize_t end, Py_ssize_t count, long long base_offset,
        long long base_timestamp, bint is_append_time,
    ) noexcept nogil

    @cython.locals(
        left=cython.longlong, header=Py_ssize_t, key_end=Py_ssize_t, value_end=Py_ssize_t, key_at=Py_ssize_t,
        key_size=Py_ssize_t, value_at=Py_ssize_t, value_size=Py_ssize_t, keys_out="unsigned char*", values_out="unsigned char*",
        key_ends="int[::1]", key_data="unsigned char[::1]", value_ends="int[::1]", value_data="unsigned char[::1]",
    )
    cdef bint _add_headers(self, const unsigned char* raw, Py_ssize_t position, Py_ssize_t limit) noexcept nogil
