"""Which class a model's architecture is."""

from engines.builtin.model import Model, Ops, Parallel
from engines.builtin.model.config import ModelConfig
from engines.builtin.model.weights import Weights
from engines.builtin.registries import ARCHITECTURES


def build_model(config: ModelConfig, weights: Weights, ops: Ops, parallel: Parallel) -> Model:
    """The rank's share of the model. Raises ValueError where weights are missing or of another
    shape, or the ranks cannot share it evenly.
    """
    model: Model = ARCHITECTURES.load(config.architecture)(config, weights, ops, parallel)
    return model
