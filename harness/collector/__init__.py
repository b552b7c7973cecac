"""The collector of each process: its policy, heap, counter phase and probe in the window."""
