"""Left out: no such work is done."""

NONE = None
