"""The codec compiler: a schema and a version in, one flat encode and one flat decode function out.

The functions are Python source, made for one version only: no dispatch per field, adjacent fixed-size fields in one `struct`
call together with the length that follows them, one-byte varints inline. They take the straight road and nothing else: at
anything out of the ordinary they raise, and the same function then answers through the plain interpreter, which either
does it slowly or says exactly what is wrong.
"""

from ottla.wire.compiler.decoding import compile_decoder
from ottla.wire.compiler.encoding import compile_encoder

__all__ = ["compile_decoder", "compile_encoder"]
