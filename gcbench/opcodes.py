"""Counts bytecodes, and what they allocate, in a step of an engine or any other call.

A bytecode is an instruction as `dis` lists it, with these exceptions: the ``EXTENDED_ARG`` in
front of an instruction is part of it, and neither ``RESUME`` nor what a function runs before its
first ``RESUME`` is counted. The rule is the same however a Python version lets us count.
"""

import sys

if sys.version_info >= (3, 12):
    from gcbench.opcodes_monitoring import OpcodeCounter, tracers
else:
    from gcbench.opcodes_settrace import OpcodeCounter, tracers

__all__ = ["OpcodeCounter", "tracers"]
