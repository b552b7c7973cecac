"""What goes into other people's processes: the pytest plug-in and the counters behind it."""
