"""Other programs' processes: their rings read, who they are, and which have no probe."""
