"""A toy engine: continuous batching with nothing behind it."""
