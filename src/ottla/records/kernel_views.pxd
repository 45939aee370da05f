# cython: boundscheck=False, wraparound=False, initializedcheck=False
# What `kernel_views.py` says of its functions, for the compiled kernels.


cdef inline const unsigned char* raw_of(const unsigned char[::1] view) noexcept:
    return &view[0]


cdef inline unsigned char* out_of(unsigned char[::1] view) noexcept nogil:
    return &view[0]


cdef extern from "Python.h":
    object PyByteArray_FromStringAndSize(const char*, Py_ssize_t)
    void* PyEval_SaveThread()
    void PyEval_RestoreThread(void*) nogil


cdef inline bytearray new_buffer(Py_ssize_t size):
    return <bytearray> PyByteArray_FromStringAndSize(NULL, size)


cdef inline void* unlock(Py_ssize_t size) noexcept:
    return PyEval_SaveThread() if size >= 65536 else NULL


cdef inline void lock(void* unlocked) noexcept nogil:
    if unlocked != NULL:
        PyEval_RestoreThread(unlocked)
