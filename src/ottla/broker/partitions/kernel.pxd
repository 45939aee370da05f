# The types that make `kernel.py` compile to C. They change no meaning: without this file everything works, slower.
cimport cython

from ottla.log.fast_path.kernel_append cimport FastAppend, LogTail
from ottla.records.kernel_batch cimport CheckedBatch

cdef int _DECLINE_PARTITION

cdef class PartitionTail:
    cdef public tuple _others_in_sync
    cdef public object _owner
    cdef public dict ack_waits
    cdef public long long asked_by
    cdef public object flushing
    cdef public dict follower_ends
    cdef public dict follower_watches
    cdef public bint is_internal
    cdef public bint is_leading
    cdef public tuple isr
    cdef public int leader_epoch
    cdef public LogTail log
    cdef public Py_ssize_t min_isr
    cdef public long long unread_bytes
    cdef public dict watches

    cpdef FastAppend check_fast(
        self, const unsigned char[::1] data, Py_ssize_t start, object records, long long now_ms, int request_version
    )

    @cython.locals(first_offset=cython.longlong, batch=CheckedBatch)
    cpdef long long write(self, FastAppend append) except -1

    @cython.locals(offset=cython.longlong)
    cpdef long long append_marker(
        self, bytearray marker, long long producer_id, int epoch, int coordinator_epoch, int transaction_version,
        long long now_ms
    ) except -2

    cpdef int has_grown(self, long long size_bytes) except -1

    @cython.locals(log=LogTail, log_end_offset=cython.longlong, end=cython.longlong)
    cpdef int advance(self, bint is_append=*) except -1

    cdef long long _replicated_end(self, long long end) except -1
