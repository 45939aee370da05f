# The types that make `kernel_accumulate.py` compile to C. They change no meaning: without this file everything works, slower.
cimport cython

from ottla.records cimport kernel_fields as fields

cdef Py_ssize_t _HEADER_SIZE
cdef Py_ssize_t _HEADER_NUMBERS_SIZE_MAX
cdef Py_ssize_t _SPARE_BYTES_MAX
cdef unsigned int _MASK31
cdef long long _NS_PER_MS
cdef bint _COMPILED

@cython.locals(packed=bytearray, count=Py_ssize_t)
cpdef bytes pack_headers(object headers)

@cython.locals(size=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t, out="unsigned char*")
cdef int _pack_field(bytearray packed, object value) except -1

@cython.locals(number=bytearray, end=Py_ssize_t, out="unsigned char*")
cdef int _pack_count(bytearray packed, Py_ssize_t count) except -1

@cython.locals(size=Py_ssize_t)
cpdef Py_ssize_t record_size_max(bytes key, bytes value, bytes headers) except -1

@cython.final
cdef class BufferMemory:
    cdef readonly Py_ssize_t limit
    cdef readonly Py_ssize_t used
    cdef readonly Py_ssize_t spare_size
    cdef readonly list spare
    cdef public bint is_contended

    cpdef bint reserve(self, Py_ssize_t size) except -1
    cpdef void release(self, Py_ssize_t size) noexcept
    cpdef bytearray take(self, Py_ssize_t size)

    @cython.locals(size=Py_ssize_t, kept=Py_ssize_t)
    cpdef object give(self, bytearray buffer)

cdef class OpenBatch:
    cdef readonly BufferMemory memory
    cdef readonly Py_ssize_t capacity
    cdef readonly Py_ssize_t size_max
    cdef public bytearray buffer
    cdef readonly Py_ssize_t end
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t record_bytes_max
    cdef readonly long long base_timestamp
    cdef readonly long long max_timestamp
    cdef readonly bint is_closed
    cdef public dict callbacks
    cdef public long long place_owner
    cdef public Py_ssize_t place_number
    cdef public tuple stored
    cdef public long long stored_offset
    cdef public long long stored_time

    @cython.locals(
        key_size=Py_ssize_t, value_size=Py_ssize_t, called=tuple, made=dict, index=Py_ssize_t, key_raw="const unsigned char*",
        value_raw="const unsigned char*", headers_raw="const unsigned char*",
    )
    @cython.final
    cdef Py_ssize_t _append(
        self, long long timestamp, bytes key, bytes value, bytes headers, object callback
    ) except -2

    @cython.locals(
        base=cython.longlong, delta=cython.longlong, size=Py_ssize_t, end=Py_ssize_t, out="unsigned char*", at=Py_ssize_t,
    )
    @cython.final
    cdef Py_ssize_t _append_raw(
        self, long long timestamp, const unsigned char* key, Py_ssize_t key_at, Py_ssize_t key_size,
        const unsigned char* value, Py_ssize_t value_at, Py_ssize_t value_size, const unsigned char* headers,
        Py_ssize_t headers_size
    ) except -2

    @cython.locals(wanted=Py_ssize_t)
    @cython.final
    cdef int _grow(self, Py_ssize_t needed) except -1

@cython.final
cdef class Delivery:
    cdef readonly object batch
    cdef readonly Py_ssize_t index
    cdef readonly long long timestamp

    @cython.locals(batch=OpenBatch, stored=tuple, stamp=cython.longlong)
    cpdef object result(self, object timeout=*)

@cython.final
cdef class TopicBatches:
    cdef readonly Py_ssize_t partition_count
    cdef readonly object lock
    cdef readonly bint ignores_keys
    cdef readonly list open
    cdef public Py_ssize_t sticky
    cdef public Py_ssize_t sticky_left
    cdef readonly Py_ssize_t sticky_size
    cdef readonly list upcoming

    @cython.locals(raw="const unsigned char*")
    cpdef Py_ssize_t partition_of(self, bytes key) except -2

    cpdef int produced(self, Py_ssize_t size, Py_ssize_t batch_end) except -1

    cpdef int move_on(self) except -1

    cdef Py_ssize_t _hashed(self, const unsigned char* key, Py_ssize_t at, Py_ssize_t size) noexcept

    cpdef Delivery append(
        self, Py_ssize_t partition, long long timestamp, bytes key, bytes value, bytes headers, object callback
    )

    cpdef Delivery send(self, long long timestamp, object key, object value, object callback)

    @cython.locals(is_keyless=bint, batch=OpenBatch, before=Py_ssize_t, index=Py_ssize_t, made=Delivery)
    cdef Delivery _append(
        self, Py_ssize_t partition, long long timestamp, bytes key, bytes value, bytes headers, object callback
    )

cdef class PlainSend:
    cdef public object _clock_ns
    cdef public object _generation
    cdef public object _lineage
    cdef public dict _plain_topics

    @cython.locals(batches=TopicBatches, now_ns=cython.longlong)
    @cython.final
    cdef Delivery _send_plain(self, object topic, object value, object key, object on_delivery)
