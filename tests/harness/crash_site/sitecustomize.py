"""Python imports this as it begins, wherever this folder is on PYTHONPATH."""

from crash_points import obey_environment

obey_environment()
