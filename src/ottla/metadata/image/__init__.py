"""The cluster's metadata as immutable values: one image per subject, and a delta that replays records onto it."""
