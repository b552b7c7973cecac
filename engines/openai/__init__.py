"""Any OpenAI-compatible server as an engine: requests go out, stamped bytes come back."""
