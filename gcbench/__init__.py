"""What goes into other people's processes: the pytest plug-in and the counters; and the verbs.

``gcbench.compare(device="null", gc=["default", "freeze"])`` and the like are for programs; see
`harness/verbs/api.py`. Importing this package loads none of what they need.
"""

from gcbench.verbs import VERBS, __dir__, __getattr__

__all__ = ["VERBS", "__dir__", "__getattr__"]
