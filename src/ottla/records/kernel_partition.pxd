# The types that make `kernel_partition.py` compile to C. They change no meaning: without this file everything works, slower.
cimport cython

from ottla.records cimport kernel_fields as fields

cdef unsigned int _MASK31

@cython.locals(raw="const unsigned char*")
cpdef object murmur2(bytes key)

@cython.locals(raw="const unsigned char*")
cpdef Py_ssize_t partition_of_key(bytes key, Py_ssize_t count) except -1
