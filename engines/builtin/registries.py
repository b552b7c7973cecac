"""Where the built-in engine's swappable parts are found by name."""

from engines.contract import representation_breach
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
    breach=representation_breach,
)

DELIVERIES = Registry(
    "delivery",
    {
        "per_request": f"{_HERE}.delivery.per_request:PER_REQUEST",
        "columnar": f"{_HERE}.delivery.columnar:COLUMNAR",
        "vllm_v1": f"{_HERE}.delivery.vllm_v1:VLLM_V1",
    },
)

DETOKENIZERS = Registry(
    "detokenizer",
    {
        "none": f"{_HERE}.left_out:NONE",
        "decode_stream": f"{_HERE}.text.decode_stream:DecodeStreams",
        "byte_table": f"{_HERE}.text.byte_table:ByteTable",
    },
)

LOGPROBS = Registry(
    "shape of log-probabilities",
    {
        "none": f"{_HERE}.left_out:NONE",
        "lists": f"{_HERE}.logprobs.lists:Lists",
        "arrays": f"{_HERE}.logprobs.arrays:ArrayLogprobs",
    },
)

REQUEST_STREAMS = Registry(
    "kind of request stream",
    {"none": f"{_HERE}.left_out:NONE", "collector": f"{_HERE}.delivery.streams:RequestStreams"},
)

DEVICES = Registry(
    "device",
    {
        "null": f"{_HERE}.device.null:NullDevice",
        "modelled": f"{_HERE}.device.modelled:ModelledDevice",
        "cpu": f"{_HERE}.device.cpu:CpuDevice",
        "cuda": f"{_HERE}.device.cuda:CudaDevice",
    },
)

ARCHITECTURES = Registry(
    "model architecture",
    {
        "OPTForCausalLM": f"{_HERE}.model.opt:OPT",
        "LlamaForCausalLM": f"{_HERE}.model.llama:Llama",
        "MistralForCausalLM": f"{_HERE}.model.llama:Llama",
        "Qwen2ForCausalLM": f"{_HERE}.model.llama:Llama",
        "Qwen3ForCausalLM": f"{_HERE}.model.llama:Llama",
    },
)

SCHEDULERS = Registry(
    "scheduler",
    {
        "live": f"{_HERE}.scheduler:Scheduler",
        "replayed": f"{_HERE}.replayed_scheduler:ReplayedScheduler",
    },
)

SCHEDULING_POLICIES = Registry(
    "scheduling policy",
    {
        "fcfs": f"{_HERE}.waiting.fcfs:FirstComeFirstServed",
        "priority": f"{_HERE}.waiting.priority:ByPriority",
    },
)

OUTPUT_PROCESSING = Registry(
    "output processing",
    {
        "inline": f"{_HERE}.output_processing.same_thread:Inline",
        "overlapped": f"{_HERE}.output_processing.same_thread:Overlapped",
        "thread": f"{_HERE}.output_processing.thread:Threaded",
        "process": f"{_HERE}.output_processing.process:OutputProcess",
    },
)

WORKERS = Registry(
    "worker",
    {
        "in-process": f"{_HERE}.worker.in_process:InProcessWorker",
        "driver": f"{_HERE}.worker.driver:DriverWorker",
        "process": f"{_HERE}.worker.process:ProcessWorker",
    },
)

WIRES = Registry(
    "wire",
    {
        "full": f"{_HERE}.wire.full:Full",
        "pickle": f"{_HERE}.wire.pickled:Pickled",
        "pickle5": f"{_HERE}.wire.out_of_band:OutOfBand",
        "msgpack": f"{_HERE}.wire.msgpack:Msgpack",
        "msgpack-delta": f"{_HERE}.wire.msgpack_delta:MsgpackDelta",
        "columns": f"{_HERE}.wire.columns:Columns",
    },
)

TRANSPORTS = Registry(
    "transport of a wire",
    {
        "sockets": f"{_HERE}.transport.sockets:Sockets",
        "shared-memory": f"{_HERE}.transport.shared_memory:SharedMemory",
        "gloo": f"{_HERE}.transport.gloo:Gloo",
    },
)
