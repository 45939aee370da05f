"""The `produce` verb: lines to records, records to batches, batches to brokers."""
