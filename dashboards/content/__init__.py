"""What pages say, each kind worked out of stored results."""
