"""Where the built-in engine's swappable parts are found by name."""

from engines.registry import Registry

_HERE = "engines.builtin"

REPRESENTATIONS = Registry(
    "representation",
    {
        "list_of_lists": f"{_HERE}.representations.list_of_lists:ListOfLists",
        "int_or_list": f"{_HERE}.representations.int_or_list:IntOrList",
        "list_of_arrays": f"{_HERE}.representations.list_of_arrays:ListOfArrays",
        "padded_arrays": f"{_HERE}.representations.padded_arrays:PaddedArrays",
        "flat_arrays": f"{_HERE}.representations.flat_arrays:FlatArrays",
        "tensor": f"{_HERE}.representations.tensor:TensorItself",
    },
    group="gcbench.representations",
)

DELIVERIES = Registry(
    "delivery",
    {
        "per_request": f"{_HERE}.delivery.per_request:PerRequest",
        "columnar": f"{_HERE}.delivery.columnar:Columnar",
    },
)

DEVICES = Registry(
    "device",
    {
        "null": f"{_HERE}.device.null:NullDevice",
        "modelled": f"{_HERE}.device.modelled:ModelledDevice",
    },
)

OUTPUT_PROCESSING = Registry(
    "output processing",
    {
        "inline": f"{_HERE}.engine:INLINE",
        "overlapped": f"{_HERE}.engine:OVERLAPPED",
    },
)

WORKERS = Registry(
    "worker",
    {
        "in-process": f"{_HERE}.worker.in_process:InProcessWorker",
        "process": f"{_HERE}.worker.process:ProcessWorker",
    },
)

WIRES = Registry("wire", {"pickle": f"{_HERE}.wire.pickled:Pickled"})
