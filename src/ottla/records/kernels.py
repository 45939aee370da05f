"""Which twin of the kernels is in use: compiled where the install could compile it, else plain."""

from ottla.records.kernel import Record, decode_records, encode_records

__all__ = ["Record", "decode_records", "encode_records"]
