"""SGLang's host path, release by release, with no GPU."""
