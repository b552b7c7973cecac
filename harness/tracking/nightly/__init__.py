"""Each night: measure what is new by asv, look for changes, measure suspicions again, say it."""
