"""What asv tracks of the toy engine."""
