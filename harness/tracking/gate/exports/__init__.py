"""A gate's figures and findings as files that other programs read."""
