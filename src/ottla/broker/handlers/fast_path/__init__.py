"""The compiled fast path of Produce and OffsetCommit: from request frame to reply frame."""
