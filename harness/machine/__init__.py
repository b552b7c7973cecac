"""What a figure was measured on: machine, interpreter, checkout; and what would spoil it."""
