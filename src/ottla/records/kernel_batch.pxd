# The types that make `kernel_batch.py` compile to C. They change no meaning: without this file everything works, slower.
cimport cython

from ottla.records cimport kernel_fields as fields, kernel_frames as frames, kernel_views as views
from ottla.records.kernel_columns cimport RecordWalk

cdef Py_ssize_t _HEADER_SIZE
cdef Py_ssize_t _LOG_OVERHEAD
cdef long long _MAGIC
cdef long long _CODEC_MASK
cdef long long _RECORD_SIZE_MIN
cdef long long _COUNT_MAX
cdef long long _LZ4
cdef long long _ZSTD
cdef Py_ssize_t _LZ4_FLAGS_AT
cdef long long _LZ4_INDEPENDENT
cdef long long _TRANSACTIONAL
cdef long long _ZSTD_REQUEST_VERSION_MIN
cdef long long _TIMESTAMP_UNBOUNDED
cdef int _DECLINE_NO
cdef int _DECLINE_HEADER
cdef int _DECLINE_CRC
cdef int _DECLINE_RECORDS

cdef class BatchLimits

@cython.final
@cython.freelist(16)
cdef class CheckedBatch:
    cdef readonly long long attributes
    cdef readonly long long base_sequence
    cdef readonly long long count
    cdef readonly int decline
    cdef readonly BatchLimits limits
    cdef readonly long long max_timestamp
    cdef readonly long long producer_epoch
    cdef readonly long long producer_id
    cdef readonly long long size_bytes

@cython.final
cdef class BatchLimits:
    cdef bint _are_batches_kept
    cdef bint _are_codecs_kept
    cdef long long _size_bytes_max
    cdef long long _after_max_ms
    cdef long long _before_max_ms
    cdef bint _are_records_read
    cdef bint _needs_keys
    cdef RecordWalk _walk
    cdef object _inspection

    @cython.locals(
        size=Py_ssize_t, base_offset=cython.longlong, batch_length=cython.longlong, _=cython.longlong, magic=cython.longlong,
        crc=cython.longlong, attributes=cython.longlong, last_offset_delta=cython.longlong, base_timestamp=cython.longlong,
        max_timestamp=cython.longlong, producer_id=cython.longlong, producer_epoch=cython.longlong,
        base_sequence=cython.longlong, count=cython.longlong, codec=cython.longlong, batch=CheckedBatch, is_fast=bint,
    )
    cpdef CheckedBatch check(
        self, const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end, object covered, long long now_ms,
        bint from_client, int request_version
    )

    @cython.locals(size_max=cython.longlong)
    cdef bint _is_readable(
        self, const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end, int codec, long long count,
        long long base_timestamp, long long max_timestamp, long long now_ms
    ) except -1

    cpdef bint takes_own(self, long long size) except -1

    @cython.locals(walk=RecordWalk)
    cdef bint _are_records_fast(
        self, const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end, long long count, long long base_timestamp,
        long long max_timestamp, long long now_ms
    ) except -1

cdef long long _checksum(object covered) except -1
