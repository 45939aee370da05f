"""The producer state of a partition: sequences, epochs, open transactions, snapshots."""
