"""What an oracle of the probe writes down: each collection of each process, by its generation."""

HOOK = """
import gc, os, time

FOLDER = {folder!r}
OPENED = os.O_WRONLY | os.O_APPEND | os.O_CREAT


def hook(phase, info):
    if phase == "stop":  # opened anew, for a fork is another process
        file = os.open(f"{{FOLDER}}/{{os.getpid()}}", OPENED)
        os.write(file, str(info["generation"]).encode())
        os.close(file)


if "GCBENCH_PROBE" in os.environ:  # gcbench itself reads this file, too
    gc.callbacks.append(hook)
    with open(f"{{FOLDER}}/{{os.getpid()}}.began", "w") as file:
        file.write(str(time.monotonic_ns()))
"""
"""A hook of one's own in every process; it begins a little after the probe."""
