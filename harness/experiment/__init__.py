"""Many trials: the grid, who runs when, what is kept, what comes of it."""
