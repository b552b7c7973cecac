"""What a command leaves: one record for all kinds, one file in a run's folder."""
