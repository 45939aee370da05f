# The types that make `kernel_commit.py` compile to C. They change no meaning: without this file everything works, slower.
cimport cython

from ottla.broker.handlers.fast_path.kernel_commit_records cimport Commit, KnownGroup, KnownTopic
from ottla.broker.partitions.kernel cimport PartitionTail
from ottla.log.fast_path.kernel_append cimport FastAppend, LogTail
from ottla.records cimport kernel_fields as fields

cdef long long _API_KEY
cdef long long _VERSION_MIN
cdef long long _VERSION_MAX
cdef long long _TOPIC_IDS_SINCE
cdef Py_ssize_t _UUID_SIZE
cdef Py_ssize_t _HEAD_SIZE
cdef Py_ssize_t _PARTITION_HEAD_SIZE
cdef Py_ssize_t _METADATA_SIZE_MAX
cdef Py_ssize_t _ELEMENTS_MAX
cdef int _DECLINE_NO

@cython.final
cdef class FastCommit:
    cdef dict _groups
    cdef object _find_group
    cdef object _find_topic
    cdef set _granted_groups
    cdef set _granted_topics

    @cython.locals(commit=Commit, group=KnownGroup, append=FastAppend, log=LogTail)
    cpdef object answer(self, bytearray frame, object now, long long now_ms, set granted_groups, set granted_topics)

    @cython.locals(
        raw="const unsigned char*", version=cython.longlong, position=Py_ssize_t, client_id_size=Py_ssize_t, size=Py_ssize_t,
        at=Py_ssize_t, name=bytes, group=KnownGroup, count=Py_ssize_t, _=Py_ssize_t, commit=Commit,
    )
    cdef Commit _read(self, bytearray frame, Py_ssize_t end, long long now_ms)

    @cython.locals(
        raw="const unsigned char*", group=KnownGroup, start=Py_ssize_t, stop=Py_ssize_t, size=Py_ssize_t, name=bytes,
        topic=KnownTopic, count=Py_ssize_t, _=Py_ssize_t,
    )
    cdef Py_ssize_t _read_topic(self, bytearray frame, Py_ssize_t position, Py_ssize_t end, Commit commit) except? -1

@cython.locals(partition=PartitionTail)
cdef bint _may_append(KnownGroup group) except -1

@cython.locals(
    raw="const unsigned char*", index=cython.longlong, offset=cython.longlong, leader_epoch=cython.longlong,
    size=Py_ssize_t, metadata_size=Py_ssize_t, metadata_at=Py_ssize_t, metadata=str,
)
cdef Py_ssize_t _read_partition(
    bytearray frame, Py_ssize_t position, Py_ssize_t end, Commit commit, KnownTopic topic
) except? -1
