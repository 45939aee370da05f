# The types that make `kernel_producers.py` compile to C. They change no meaning: without this file everything works, slower.
cimport cython

cdef long long _TRANSACTIONAL_OR_CONTROL
cdef long long _TRANSACTIONAL
cdef long long _SEQUENCE_MASK
cdef int _EPOCH_BUMP_SINCE
cdef Py_ssize_t _BATCHES_REMEMBERED
cdef Py_ssize_t _NUMBERS_PER_BATCH

@cython.final
cdef class RecentBatches:
    cdef Py_ssize_t _count
    cdef Py_ssize_t _start
    cdef long long[25] _numbers

    cpdef int add(
        self, long long first_sequence, long long last_sequence, long long first_offset, long long last_offset,
        long long timestamp_ms
    ) except -1

    @cython.locals(index=Py_ssize_t)
    cpdef bint follows(self, long long sequence) except -1

    cdef Py_ssize_t _place(self, Py_ssize_t index) noexcept

    cdef int _put(
        self, Py_ssize_t at, long long first_sequence, long long last_sequence, long long first_offset,
        long long last_offset, long long timestamp_ms
    ) except -1

cdef class ProducerTail:
    cdef public RecentBatches batches
    cdef public int coordinator_epoch
    cdef public int epoch
    cdef public long long last_timestamp_ms
    cdef public long long seen_ms
    cdef public object transaction_first_offset

    cpdef int set_epoch(self, int epoch) except -1

cdef class ProducersTail:
    cdef public dict _ongoing
    cdef public dict _producers
    cdef public dict _verifications
    cdef public dict _unreplicated
    cdef public object first_unstable_offset
    cdef public long long map_end_offset

    @cython.locals(in_transaction=cython.longlong, entry=ProducerTail)
    cpdef ProducerTail next_in_line(self, long long producer_id, long long epoch, long long attributes, long long sequence)

    @cython.locals(last_offset=cython.longlong, last_sequence=cython.longlong)
    cpdef int count_in(
        self, ProducerTail entry, long long sequence, long long first_offset, long long last_offset_delta, long long timestamp_ms
    ) except -1

    @cython.locals(entry=ProducerTail)
    cpdef ProducerTail first_in_transaction(
        self, long long producer_id, long long epoch, long long attributes, long long sequence, object verified_by
    )

    cpdef int begin_transaction(self, ProducerTail entry, long long producer_id, int epoch, long long first_offset) except -1

    @cython.locals(entry=ProducerTail)
    cpdef ProducerTail in_transaction(
        self, long long producer_id, int epoch, int coordinator_epoch, int transaction_version
    )

    cpdef int commit_transaction(
        self, ProducerTail entry, long long producer_id, int epoch, int coordinator_epoch, long long offset,
        long long timestamp_ms
    ) except -1

    @cython.locals(settled=list)
    cpdef int on_high_watermark(self, long long high_watermark) except -1

    cpdef int find_first_unstable(self) except -1
