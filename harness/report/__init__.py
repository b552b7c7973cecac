"""What people read of a result: what is said of each kind, and how that is shown."""
