"""Changes in a history of values: pure functions of one series, no files, no engine."""
