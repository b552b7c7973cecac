"""What gcbench can be asked for: a frozen record and a function each, whoever asks."""
