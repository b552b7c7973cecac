"""vLLM itself: its releases and checkouts, and the environment that they run in."""
