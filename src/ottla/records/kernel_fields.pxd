# cython: boundscheck=False, wraparound=False, initializedcheck=False, overflowcheck=False, cdivision=True
# What `kernel_fields.py` says of its functions, for the compiled kernels: a C compiler puts these into each that uses them.
# They read and write through pointers and check nothing; numbers that leave 64 bits wrap around (-fwrapv).
from libc.string cimport memcpy

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(object)


cdef inline void untrack(object made) noexcept:
    PyObject_GC_UnTrack(made)


cdef inline long long wrap64(long long value) noexcept nogil:
    return value


cdef inline long long number(const unsigned char* raw, Py_ssize_t at, Py_ssize_t size) noexcept:
    cdef long long value = <signed char> raw[at]
    cdef Py_ssize_t index
    for index in range(1, size):
        value = value * 256 + raw[at + index]
    return value


cdef inline void put_number(unsigned char* out, Py_ssize_t at, long long value, Py_ssize_t size) noexcept:
    cdef Py_ssize_t index = size - 1
    while index >= 0:
        out[at + index] = <unsigned char> (value & 0xFF)
        value >>= 8
        index -= 1


cdef inline Py_ssize_t copy(
    unsigned char* out, Py_ssize_t at, const unsigned char* raw, Py_ssize_t start, Py_ssize_t size
) noexcept nogil:
    memcpy(out + at, raw + start, size)
    return at + size


cdef inline (long long, Py_ssize_t) uvarint(const unsigned char* raw, Py_ssize_t position, Py_ssize_t end) noexcept:
    cdef long long value = 0
    cdef long long wide
    cdef int shift = 0
    while position < end and shift < 32:
        wide = raw[position]
        position += 1
        value |= (wide & 0x7F) << shift
        if wide < 0x80:
            if value > 0x7FFFFFFF:
                break
            return value, position
        shift += 7
    return -1, end + 1


cdef inline (long long, Py_ssize_t) varint(
    const unsigned char* raw, Py_ssize_t position, Py_ssize_t end, int bits_max
) noexcept nogil:
    cdef unsigned long long bits = 0
    cdef unsigned long long wide
    cdef int shift = 0
    while position < end and shift < bits_max:
        wide = raw[position]
        position += 1
        bits |= (wide & 0x7F) << shift
        if wide < 0x80:
            if bits_max == 32:
                bits = <unsigned int> bits
            return <long long> (bits >> 1) ^ -<long long> (bits & 1), position
        shift += 7
    return 0, end + 1


cdef inline unsigned long long _zigzag(long long value) noexcept:
    return (<unsigned long long> value << 1) ^ <unsigned long long> (value >> 63)


cdef inline Py_ssize_t uvarint_size(unsigned long long value) noexcept:
    cdef Py_ssize_t size = 1
    while value > 0x7F:
        value >>= 7
        size += 1
    return size


cdef inline Py_ssize_t varint_size(long long value) noexcept:
    return uvarint_size(_zigzag(value))


cdef inline Py_ssize_t put_uvarint(unsigned char* out, Py_ssize_t at, unsigned long long value) noexcept:
    while value > 0x7F:
        out[at] = <unsigned char> ((value & 0x7F) | 0x80)
        value >>= 7
        at += 1
    out[at] = <unsigned char> value
    return at + 1


cdef inline Py_ssize_t put_varint(unsigned char* out, Py_ssize_t at, long long value) noexcept:
    return put_uvarint(out, at, _zigzag(value))


cdef inline (
    long long, long long, long long, long long, long long, long long, long long, long long, long long, long long, long long,
    long long, long long
) batch_header(const unsigned char* raw, Py_ssize_t at) noexcept:
    return (
        number(raw, at, 8),
        number(raw, at + 8, 4),
        number(raw, at + 12, 4),
        number(raw, at + 16, 1),
        <unsigned int> number(raw, at + 17, 4),
        number(raw, at + 21, 2),
        number(raw, at + 23, 4),
        number(raw, at + 27, 8),
        number(raw, at + 35, 8),
        number(raw, at + 43, 8),
        number(raw, at + 51, 2),
        number(raw, at + 53, 4),
        number(raw, at + 57, 4),
    )


cdef inline bint are_headers(const unsigned char* raw, Py_ssize_t position, Py_ssize_t limit) noexcept:
    cdef long long count, size, index
    count, position = varint(raw, position, limit, 32)
    if position > limit or count < 0 or count > (limit - position) // 2:
        return False
    for index in range(count):
        size, position = varint(raw, position, limit, 32)
        if position > limit or size < 0 or size > limit - position:
            return False
        size, position = varint(raw, position + size, limit, 32)
        if position > limit or size > limit - position:
            return False
        if size > 0:
            position += size
    return position == limit


cdef inline unsigned int murmur2(const unsigned char* raw, Py_ssize_t start, Py_ssize_t size) noexcept:
    cdef unsigned int m = 0x5BD1E995u
    cdef unsigned int hashed = 0x9747B28Cu ^ <unsigned int> size
    cdef unsigned int word
    cdef Py_ssize_t at = 0
    raw += start
    while size - at >= 4:
        word = (
            <unsigned int> raw[at] | <unsigned int> raw[at + 1] << 8 | <unsigned int> raw[at + 2] << 16
            | <unsigned int> raw[at + 3] << 24
        )
        word *= m
        word = (word ^ word >> 24) * m
        hashed = (hashed * m) ^ word
        at += 4
    if at < size:
        word = raw[at]
        if size - at > 1:
            word |= <unsigned int> raw[at + 1] << 8
        if size - at > 2:
            word |= <unsigned int> raw[at + 2] << 16
        hashed = (hashed ^ word) * m
    hashed = (hashed ^ hashed >> 13) * m
    return hashed ^ hashed >> 15
