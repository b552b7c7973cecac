"""What a workload is made of: lengths, arrivals, acceptance, conversations, priorities."""
