"""The device's totals, in memory that two processes share."""

from engines.vllm.device_log import DeviceLog, DeviceTotals

ADDS = """
import json, sys
from engines.vllm.device_log import DeviceLog
log = DeviceLog(sys.argv[1])
found = log.read()
for step in range(1000):
    log.add(step, 1, 2.7e-3)
print(json.dumps(found))
"""


def test_either_process_sees_what_the_other_has_added(tmp_path, fresh_interpreter):
    path = str(tmp_path / "log")
    log = DeviceLog(path, create=True)
    assert log.read() == DeviceTotals(0, 0, 0)
    log.add(2**40, 0, 0.25)
    assert fresh_interpreter(ADDS, path) == [2**40, 0, 250_000_000]
    assert log.read() == (2**40 + 499_500, 1000, 250_000_000 + 1000 * 2_700_000)
    assert DeviceLog(path).read() == log.read()


def test_a_new_log_starts_at_zero(tmp_path):
    path = str(tmp_path / "log")
    DeviceLog(path, create=True).add(1, 1, 1.0)
    assert DeviceLog(path, create=True).read() == (0, 0, 0)
