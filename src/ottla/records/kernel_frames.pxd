# The types that make `kernel_frames.py` compile to C. They change no meaning: without this file everything works, slower.
cimport cython

from ottla.records cimport kernel_fields as fields, kernel_views as views

cdef int _GZIP
cdef int _SNAPPY
cdef int _LZ4
cdef int _ZSTD
cdef Py_ssize_t _GZIP_BYTES_MIN
cdef long long _GZIP_EXPANSION_MAX
cdef Py_ssize_t _SNAPPY_HEADER_BYTES
cdef long long _SNAPPY_EXPANSION_MAX
cdef Py_ssize_t _LZ4_HEADER_BYTES
cdef long long _LZ4_EXPANSION_MAX
cdef long long _ZSTD_BLOCK_BYTES_MAX

@cython.locals(raw="const unsigned char*")
cpdef long long plain_bytes_max(int codec, const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end) except -2

cdef long long _gzip(const unsigned char* raw, Py_ssize_t start, Py_ssize_t end) noexcept

cdef bint _is_snappy_stream(const unsigned char* raw, Py_ssize_t at, Py_ssize_t end) noexcept

@cython.locals(plain=cython.longlong, position=Py_ssize_t, size=cython.longlong, block=cython.longlong)
cdef long long _snappy(const unsigned char* raw, Py_ssize_t start, Py_ssize_t end) noexcept

@cython.locals(plain=cython.longlong, position=Py_ssize_t)
cdef long long _snappy_block(const unsigned char* raw, Py_ssize_t start, Py_ssize_t end) noexcept

@cython.locals(
    flags=int, block_bytes_max=cython.longlong, checksum_bytes=Py_ssize_t, position=Py_ssize_t, plain=cython.longlong,
    size=cython.longlong,
)
cdef long long _lz4(const unsigned char* raw, Py_ssize_t start, Py_ssize_t end) noexcept

@cython.locals(
    plain=cython.longlong, position=Py_ssize_t, descriptor=int, is_single=int, content=int, content_bytes=Py_ssize_t,
    claimed=cython.longlong, blocks=cython.longlong, is_last=int, header=cython.longlong, kind=int, size=cython.longlong,
)
cdef long long _zstd(const unsigned char* raw, Py_ssize_t start, Py_ssize_t end) noexcept

@cython.locals(value=cython.longlong, wide=cython.longlong, index=Py_ssize_t)
cdef long long _little(const unsigned char* raw, Py_ssize_t at, Py_ssize_t size) noexcept
