"""How a step's tokens are taken in and handed to the consumer; one way a file."""

from collections.abc import Callable
from typing import Any, NamedTuple

from engines.builtin.delivery.stage import Stages
from engines.builtin.request_table import RequestTable
from engines.builtin.token_store import TokenStore
from engines.protocol import EngineConfig


class Delivery(NamedTuple):
    """A token store for the scheduler's side, and the stages that read what it has taken.

    ``needs_columns``: whether it asks the representation for `Representation.columns`.
    ``tokens_type``: the type of `Taken.tokens`, for msgspec.
    """

    needs_columns: bool
    tokens_type: Any
    token_store: Callable[[EngineConfig, RequestTable], TokenStore]
    stages: Callable[[EngineConfig], Stages]
