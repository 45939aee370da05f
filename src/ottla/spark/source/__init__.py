"""The source: options and offsets (driver), plans of ranges (driver), reading of ranges (executors)."""
