"""What to ask of an engine: workloads, and the schedules they are realised into."""
