"""What a broker does with a produced batch before it is appended: checks, inspection of compressed records, recompression."""
