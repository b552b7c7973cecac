"""The built-in engine: a scheduler, a runner on a device, and the host path between them."""
