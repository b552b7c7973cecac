"""First on PYTHONPATH under ``gcbench probe``: starts the probe, then makes way for another.

Any Python that the program starts reads this, 2.7 too, so it is written for all of them. Where
there is no other ``sitecustomize`` the import fails, as it would without this file.
"""

import os
import sys


def _start():  # type: ignore[no-untyped-def]
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    sys.path[:] = [each for each in sys.path if os.path.abspath(each) != here]  # noqa: PTH100
    sys.path_importer_cache.pop(here, None)
    # Where gcbench is installed, its .pth file has started the probe.
    if sys.version_info < (3, 8) or "gcbench.probe" in sys.modules:
        return
    try:
        file = os.path.join(os.path.dirname(here), "probe.py")  # noqa: PTH118, PTH120
        loader = type(__loader__)("gcbench.probe", file)  # type: ignore[name-defined]
        module = type(sys)("gcbench.probe")
        module.__file__ = file
        loader.exec_module(module)
        module.start()
    except Exception as error:  # whatever it is, the program is to run
        sys.stderr.write(
            "gcbench: the probe did not start in process %d: %r\n"  # noqa: UP031
            % (os.getpid(), error)
        )


_start()  # type: ignore[no-untyped-call]
del sys.modules["sitecustomize"]
import sitecustomize  # type: ignore[import-not-found]  # noqa: E402, F401
