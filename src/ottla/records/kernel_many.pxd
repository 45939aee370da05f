# The types that make `kernel_many.py` compile to C. They change no meaning: without this file everything works, slower.
cimport cython

from ottla.records cimport kernel_fields as fields, kernel_views as views
from ottla.records.kernel_accumulate cimport OpenBatch, TopicBatches

cdef Py_ssize_t _RUN_SIZE
cdef bytes _NO_HEADERS
cdef Py_ssize_t _RUNS_FIRST
cdef Py_ssize_t _DAMAGED
cdef Py_ssize_t _HEADER_NUMBERS_SIZE_MAX
cdef long long _INT32_MAX
cdef long long _last_owner
cdef bint _COMPILED

@cython.final
cdef class Places:
    cdef readonly long long owner
    cdef readonly list batches
    cdef readonly Py_ssize_t count
    cdef bytearray _runs
    cdef Py_ssize_t _size
    cdef OpenBatch _last
    cdef Py_ssize_t _next

    cpdef int add(self, OpenBatch batch, Py_ssize_t index) except -1

    @cython.locals(out="unsigned char*")
    cdef int _start_run(self, OpenBatch batch, Py_ssize_t index) except -1

    cpdef Py_ssize_t run_count(self) except -1

    @cython.locals(raw="const unsigned char*", at=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t)
    cpdef tuple run(self, Py_ssize_t number)

    @cython.locals(raw="const unsigned char*", low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t)
    cpdef Py_ssize_t run_of(self, Py_ssize_t record) except -1

cpdef Py_ssize_t append_list(
    TopicBatches topic, Py_ssize_t partition, long long timestamp, list values, list keys, list headers, Py_ssize_t start,
    Places places
) except -1

@cython.locals(
    packed=bytes, headers_raw="const unsigned char*", index=Py_ssize_t, end=Py_ssize_t, key_raw="const unsigned char*",
    value_raw="const unsigned char*", key_size=Py_ssize_t, value_size=Py_ssize_t, bytes_key=bytes, bytes_value=bytes,
)
cdef Py_ssize_t _append_list(
    TopicBatches topic, Py_ssize_t partition, long long timestamp, list values, list keys, list headers, Py_ssize_t start,
    Places places
) except -1

@cython.locals(is_keyless=bint, batch=OpenBatch, before=Py_ssize_t, index=Py_ssize_t)
cdef bint _append(
    TopicBatches topic, Py_ssize_t partition, long long timestamp, const unsigned char* key, Py_ssize_t key_at,
    Py_ssize_t key_size, const unsigned char* value, Py_ssize_t value_at, Py_ssize_t value_size,
    const unsigned char* headers, Py_ssize_t headers_size, Places places
) except -1

@cython.final
cdef class BytesColumn:
    cdef const unsigned char[::1] bitmap
    cdef bint is_wide
    cdef bint is_null
    cdef const int[::1] ends
    cdef const long long[::1] wide_ends
    cdef const unsigned char[::1] data
    cdef Py_ssize_t limit
    cdef Py_ssize_t first

    cdef Py_ssize_t start(self, Py_ssize_t row) noexcept

    @cython.locals(begin=cython.longlong, end=cython.longlong)
    cdef Py_ssize_t size(self, Py_ssize_t row) noexcept

@cython.final
cdef class NumbersColumn:
    cdef const unsigned char[::1] bitmap
    cdef const long long[::1] numbers
    cdef Py_ssize_t first

    cpdef long long get(self, Py_ssize_t row, long long default) noexcept

@cython.final
cdef class HeadersColumn:
    cdef BytesColumn lists
    cdef BytesColumn keys
    cdef BytesColumn values
    cdef readonly bytearray packed
    cdef readonly Py_ssize_t packed_size

    @cython.locals(count=Py_ssize_t, entry=Py_ssize_t, out="unsigned char*", key_size=Py_ssize_t)
    cpdef bint pack(self, Py_ssize_t row) except -1

    @cython.locals(size=Py_ssize_t, out="unsigned char*")
    cdef bint _pack_field(self, BytesColumn column, Py_ssize_t entry) except -1

    cdef int _make_room(self, Py_ssize_t size) except -1

@cython.final
cdef class RecordColumns:
    cdef readonly Py_ssize_t rows
    cdef readonly BytesColumn keys
    cdef readonly BytesColumn values
    cdef readonly HeadersColumn headers
    cdef readonly NumbersColumn partitions
    cdef readonly NumbersColumn timestamps

    cpdef Py_ssize_t append(
        self, TopicBatches topic, Py_ssize_t partition, long long timestamp, Py_ssize_t start, Places places
    ) except -1

    @cython.locals(
        keys=BytesColumn, values=BytesColumn, packed=HeadersColumn, no_headers=bytes, headers="const unsigned char*",
        headers_size=Py_ssize_t, empty="const unsigned char*", row=Py_ssize_t, key_size=Py_ssize_t, value_size=Py_ssize_t,
        number=cython.longlong, stamp=cython.longlong, key_raw="const unsigned char*", value_raw="const unsigned char*",
        key_at=Py_ssize_t, value_at=Py_ssize_t,
    )
    cdef Py_ssize_t _append(
        self, TopicBatches topic, Py_ssize_t partition, long long timestamp, Py_ssize_t start, Places places
    ) except -1

    @cython.locals(number=cython.longlong, stamp=cython.longlong)
    cpdef tuple record(self, Py_ssize_t row, long long partition, long long timestamp)

@cython.locals(size=Py_ssize_t, start=Py_ssize_t)
cdef bytes _bytes_of(BytesColumn column, Py_ssize_t row, str name)
