"""How many steps are still under way when `Engine.step` returns, by kind of output processing."""

INLINE = 0
OVERLAPPED = 1
"""A step's output is processed while the next runs on the device."""
