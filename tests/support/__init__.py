"""What tests and benchmarks share. Imports no pytest, so that `bench/` may use it too."""
