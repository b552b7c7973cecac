"""The stages of a step of SGLang's, named as vLLM's where they do the same."""

from engines.sglang import detokenizer, driver, served, tokens
from engines.stages import EVENT_LOOP, StageFunction, StageTable

_SCHEDULER = "sglang.srt.managers.scheduler"
_TOKENIZER_MANAGER = "sglang.srt.managers.tokenizer_manager"

STAGES = StageTable(
    calls=(
        StageFunction(EVENT_LOOP, "engines.sglang.served", "ServerHere.finish"),
        StageFunction("step", "engines.sglang.driver", "Driver.step"),
        StageFunction("schedule", _SCHEDULER, "Scheduler.get_next_batch_to_run"),
        StageFunction("prepare", _SCHEDULER, "Scheduler.run_batch"),
        StageFunction("device", "engines.sglang.tokens", "ScriptedRunner.sample"),
        StageFunction("update_from_output", _SCHEDULER, "Scheduler.process_batch_result"),
        StageFunction("transport", "zmq.sugar.socket", "Socket.send"),
        StageFunction("transport", "zmq._future", "_AsyncSocket._handle_events"),
        StageFunction(
            "detokenize",
            "sglang.srt.managers.detokenizer_manager",
            "DetokenizerManager.handle_batch_token_id_out",
        ),
        StageFunction(
            "process_outputs", _TOKENIZER_MANAGER, "TokenizerManager._handle_batch_output"
        ),
    ),
    coroutines=(
        StageFunction("add", _TOKENIZER_MANAGER, "TokenizerManager._tokenize_one_request"),
    ),
    streams=(
        StageFunction("deliver", _TOKENIZER_MANAGER, "TokenizerManager.generate_request"),
        StageFunction("sse", "engines.sglang.served", "ServerHere.lines_of"),
    ),
    own_files=(detokenizer.__file__, driver.__file__, served.__file__, tokens.__file__),
    inner={
        f"{outer}.<locals>.stream_results": "sse"
        for outer in ("generate_request", "serve_generate_request")  # up to 0.5.20, and later
    },
)
