"""Two commits measured side by side: what `gcbench gate` judges and says."""
