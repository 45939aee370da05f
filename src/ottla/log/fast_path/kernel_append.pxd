# The types that make `kernel_append.py` compile to C. They change no meaning: without this file everything works, slower.
cimport cython

from ottla.log.fast_path.kernel_producers cimport ProducersTail, ProducerTail
from ottla.records.kernel_batch cimport BatchLimits, CheckedBatch

cdef Py_ssize_t _LOG_OVERHEAD
cdef int _DECLINE_NO
cdef int _DECLINE_LOG
cdef Py_ssize_t _CRC_START
cdef long long _RELATIVE_OFFSET_MAX
cdef long long _BLOCK_ENTRIES
cdef long long _INT64_MAX
cdef long long _UNKNOWN

cdef class IndexTail:
    cdef public object _keys
    cdef public object _values
    cdef public long long _written
    cdef public long long base_offset
    cdef public long long count
    cdef public long long entries_max
    cdef public long long last_key
    cdef public long long last_value

cdef int _add_entry(IndexTail index, long long key, long long value) except -1

cdef class SegmentTail:
    cdef public long long _first_timestamp
    cdef public long long _last_base_offset
    cdef public long long _last_offset
    cdef public long long _last_position
    cdef public long long _last_size
    cdef public long long _max_timestamp
    cdef public long long _max_timestamp_offset
    cdef public long long base_offset
    cdef public long long bytes_since_index_entry
    cdef public long long created_ms
    cdef public object file
    cdef public long long index_interval_bytes
    cdef public bint is_dormant
    cdef public IndexTail offset_index
    cdef public long long roll_jitter_ms
    cdef public IndexTail time_index

    @cython.locals(
        size=cython.longlong, relative_offset=cython.longlong, first=cython.longlong, waited_ms=cython.longlong,
        offset_index=IndexTail, time_index=IndexTail,
    )
    cpdef bint must_roll(
        self, long long segment_bytes, long long age_max_ms, long long size_bytes, long long max_timestamp,
        long long last_offset, long long now_ms
    ) except -1

    @cython.locals(position=cython.longlong)
    cpdef int append_one(
        self, object data, long long size, long long base_offset, long long last_offset, long long max_timestamp
    ) except -1

    cpdef int count_in(
        self, long long position, long long size, long long base_offset, long long last_offset, long long max_timestamp
    ) except -1

    @cython.locals(time_index=IndexTail)
    cpdef int index(self, long long position, long long size, long long last_offset, long long max_timestamp) except -1

cdef class EpochsTail:
    cdef public list _epochs
    cdef public list _starts

    @cython.locals(count=Py_ssize_t)
    cpdef bint is_latest(self, long long epoch) except -1

@cython.final
@cython.freelist(16)
cdef class FastAppend:
    cdef readonly CheckedBatch batch
    cdef readonly int decline
    cdef ProducerTail entry
    cdef bint is_transaction_start
    cdef long long leader_epoch
    cdef long long now_ms
    cdef object records

cdef class LogTail:
    cdef public EpochsTail epochs
    cdef public long long flush_messages
    cdef public object flush_wanted_up_to
    cdef public long long high_watermark
    cdef public BatchLimits limits
    cdef public long long log_end_offset
    cdef public long long log_start_offset
    cdef public ProducersTail producers
    cdef public long long recovery_point
    cdef public long long segment_age_max_ms
    cdef public long long segment_bytes
    cdef public object segments
    cdef public object write_barrier

    @cython.locals(
        size=Py_ssize_t, batch=CheckedBatch, end_offset=cython.longlong, segment=SegmentTail, append=FastAppend,
        entry=ProducerTail, is_transaction_start=bint,
    )
    cpdef FastAppend check_fast(
        self, const unsigned char[::1] data, Py_ssize_t start, object records, long long leader_epoch, long long now_ms,
        bint from_client, int request_version, object verified_by=*, CheckedBatch checked=*
    )

    @cython.locals(append=FastAppend)
    cpdef FastAppend declined(self, int decline, CheckedBatch batch=*)

    @cython.locals(
        batch=CheckedBatch, first_offset=cython.longlong, end_offset=cython.longlong, size=cython.longlong,
        segment=SegmentTail, producers=ProducersTail, records=object,
    )
    cpdef long long write(self, FastAppend append) except -1

    @cython.locals(size=cython.longlong, offset=cython.longlong, segment=SegmentTail, entry=ProducerTail)
    cpdef long long append_marker(
        self, bytearray marker, long long producer_id, int epoch, int coordinator_epoch, int transaction_version,
        long long leader_epoch, long long now_ms
    ) except -2

    cpdef bint increment_high_watermark(self, long long offset) except -1
