"""APIs that read and write records: Produce, Fetch, ListOffsets, DeleteRecords, OffsetForLeaderEpoch."""
