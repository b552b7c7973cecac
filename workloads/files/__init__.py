"""Files: read in bounds, written whole or not at all."""
