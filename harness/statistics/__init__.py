"""What noisy figures say: ratios with intervals, verdicts, the noise floor."""
