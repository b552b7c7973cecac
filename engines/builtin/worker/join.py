"""The ranks that a model is divided among, as one of them sees them."""

from engines.builtin.device.choice import device_class
from engines.builtin.model import Parallel
from engines.builtin.transport import TransportPlan


def ranks_of(plan: TransportPlan, rank: int) -> Parallel:
    """All of the plan's configuration; waits for the others where they have to talk."""
    from engines.builtin.model.parallel import ONE_RANK, join

    backend, size = device_class(plan.config).backend, plan.config.tensor_parallel_size
    if size == 1 or not backend:
        return ONE_RANK
    return join(backend, plan.folder, rank, size)
