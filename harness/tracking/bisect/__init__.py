"""Which commit moved an exact metric: what `gcbench bisect` searches and answers."""
