"""A module's bytecode that a full disk has cut short, so that no import gets past it."""

from pathlib import Path


def cut_bytecode(error: BaseException) -> str:
    """What to remove where ``error`` comes of such a file, else "".

    CPython before 3.12.8 and 3.13.1 keeps what it could write (#126606). The exception does not
    name the file, but what has read it does.
    """
    trace = error.__traceback__ if isinstance(error, EOFError) else None
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        if frame.f_code.co_name == "get_code" and (path := frame.f_locals.get("bytecode_path")):
            return (
                f"{path} has been cut short, as by a full disk; remove {Path(path).parent}, which "
                "Python makes anew"
            )
    return ""
