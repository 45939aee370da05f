"""The codec compiler: turns a schema and a version into one flat encode and one flat decode function.

The functions are generated Python source for one version: no dispatch per field, adjacent fixed-size fields and the length
that follows them in one `struct` call, one-byte varints inline. They are the fast path only. For anything they do not handle
they call the interpreter, which either does it slowly or raises an error that names the field.
"""

from ottla.wire.compiler.decoding import compile_decoder
from ottla.wire.compiler.encoding import compile_encoder

__all__ = ["compile_decoder", "compile_encoder"]
