"""asv's configuration and result files."""
