"""What a partition knows of its producers: sequences, epochs, open transactions, snapshots."""
