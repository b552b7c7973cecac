"""Results across commits: what was measured, what changed, and whether that matters."""
