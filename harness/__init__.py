"""How to measure: trials in fresh interpreters, rounds of them, and what they say."""
