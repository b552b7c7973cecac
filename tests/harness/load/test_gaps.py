"""What the client stamps against what the server stamped: both by one machine's monotonic clock."""

import numpy as np
import pytest
from runs import load
from scripted_server import ScriptedServer

from harness.files import read_rows


# A client that waits for a core stamps tokens late by as much as the gaps that are held against it.
@pytest.mark.flaky(reruns=2)
@pytest.mark.slow
@pytest.mark.parametrize("gaps", [[0.25], [0.4, 0.1]])
def test_gaps_are_the_servers_own(tmp_path, gaps):
    with ScriptedServer(gaps=gaps) as server:
        ran = load(server.url, tmp_path, num_requests=8, output_lens=5, num_warmups=0)
        stamped = np.array(server.seen()["stamps"])
    rows = read_rows(next(ran.folder.glob("rows/*-deliveries.parquet")))
    came = rows["delivered_ns"].reshape(8, 5)
    # The server numbers requests as they come, which need not be their order in the schedule.
    came, stamped = came[np.argsort(came[:, 0])], stamped[np.argsort(stamped[:, 0])]
    assert (came > stamped).all()
    # By how much is at the mercy of whatever else runs here: a gap of the server's, not an average
    # over them, nor that of an answer that came whole.
    off = np.abs(np.diff(came, axis=1) - np.diff(stamped, axis=1))
    assert np.median(off) < min(gaps) * 1e9 / 2
    slept = np.resize(np.roll(gaps, -1), 4) * 1e9
    assert (np.diff(stamped, axis=1) >= 0.99 * slept).all()
    metrics = ran.result.trial.metrics
    assert metrics["itl_median"] == pytest.approx(np.median(np.diff(came, axis=1)) / 1e9)
    assert metrics["tpot_mean"] == pytest.approx(np.mean(came[:, -1] - came[:, 0]) / 4 / 1e9)
