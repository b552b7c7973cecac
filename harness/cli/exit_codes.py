"""What gcbench's exit codes mean; `gcbench --help` and docs/running.md show the same table."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Only a decision of the command itself is 1: CI reads it as "worse"."""

    MEASURED = 0
    WORSE = 1
    WRONG_USAGE = 2
    NOT_MEASURED = 3
    INTERNAL_ERROR = 70
    """EX_SOFTWARE of sysexits.h."""
    OUTPUT_FAILED = 74
    """EX_IOERR of sysexits.h."""
    INTERRUPTED = 130
    """What a shell says of a process that SIGINT has ended."""
    READER_LEFT = 141
    """What a shell says of a process that SIGPIPE has ended."""


MEANINGS = {
    ExitCode.MEASURED: "measured, and not judged worse",
    ExitCode.WORSE: "worse: a regression (gate, nightly, compare --fail-on worse)",
    ExitCode.WRONG_USAGE: "wrong usage or configuration, or a file that cannot be read or written",
    ExitCode.NOT_MEASURED: "nothing could be measured, or not everything that was asked for",
    ExitCode.INTERNAL_ERROR: "an error in gcbench itself, or not enough memory",
    ExitCode.OUTPUT_FAILED: "standard output is full or closed",
    ExitCode.INTERRUPTED: "interrupted, by SIGTERM or SIGHUP too; what had been measured is stored",
    ExitCode.READER_LEFT: "the program that read standard output ended early, as head does",
}
