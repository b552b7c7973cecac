"""The dashboard and the alerts of docs/probe.md ask for what `gcbench probe` serves."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from ruamel.yaml import YAML

from harness.probed.exposition import ProbedMetrics

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs" / "probe"
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool, of Debian's package prometheus, is not here"
)


def served() -> set[str]:
    """Names of all series."""
    text = generate_latest(ProbedMetrics().registry()).decode()
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    parts = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
    return {f"{name}{part}" for name, kind in kinds.items() for part in parts[kind]}


def asked_by_dashboard() -> list[str]:
    dashboard = json.loads((DOCS / "grafana.json").read_text())
    queries = [each["definition"] for each in dashboard["templating"]["list"][1:]]
    return queries + [each["expr"] for panel in dashboard["panels"] for each in panel["targets"]]


def asked_by_alerts() -> list[str]:
    rules = YAML(typ="safe").load(DOCS / "alerts.yml")
    return [rule["expr"] for group in rules["groups"] for rule in group["rules"]]


def test_every_series_that_is_asked_for_is_served_and_the_other_way_round():
    asked = {
        name
        for query in [*asked_by_dashboard(), *asked_by_alerts()]
        for name in re.findall(r"gcbench_\w+", query)
    }
    assert asked <= served()
    assert {name for name in served() if name.endswith(("collections_total", "_bucket"))} <= asked


def promtool(*words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["promtool", *words], input=text, capture_output=True, text=True, check=False
    )


@needs_promtool
def test_prometheus_takes_the_alerts_and_raises_them_when_it_should(tmp_path):
    for file in (DOCS / "alerts.yml", HERE / "alerts_test.yml"):
        shutil.copy(file, tmp_path)
    checked = promtool("check", "rules", str(tmp_path / "alerts.yml"))
    assert checked.returncode == 0, checked.stderr
    tested = promtool("test", "rules", str(tmp_path / "alerts_test.yml"))
    assert tested.returncode == 0, tested.stdout + tested.stderr


@needs_promtool
def test_prometheus_finds_nothing_to_say_of_what_is_served():
    checked = promtool(
        "check", "metrics", text=generate_latest(ProbedMetrics().registry()).decode()
    )
    assert (checked.returncode, checked.stderr) == (0, "")


@needs_promtool
def test_prometheus_takes_every_query_of_the_dashboard(tmp_path):
    """As rules: promtool has no other way to parse a query without a server."""
    queries = [
        each.replace("$__rate_interval", "5m")
        for each in asked_by_dashboard()
        if not each.startswith("label_values")
    ]
    rules = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(queries)]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))  # is YAML too
    checked = promtool("check", "rules", str(path))
    assert checked.returncode == 0, checked.stderr
    assert len(queries) == 6
