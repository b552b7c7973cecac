"""The server's OpenAPI document, and what a fuzzer makes of it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from served import NULL, num_in_flight, serving

DOCS = Path(__file__).parents[3] / "docs" / "serve.md"
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance"
)
EXAMPLES = 20


@pytest.fixture(scope="module")
def served():
    with serving(*NULL, "--axis", "max-model-len=64") as running:
        yield running


def references(value: object) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


@pytest.mark.slow
def test_it_describes_each_path_of_the_manual_and_no_other(served):
    said = served.ask("GET", "/openapi.json").json()
    listed = re.findall(r"^\| (`(?:GET|POST) [^|]*) \|", DOCS.read_text(), re.MULTILINE)
    paths = {path for row in listed for path in re.findall(r"(/[\w/.]+)`", row)}
    assert paths - {"/openapi.json"} == said["paths"].keys()
    schemas = said["components"]["schemas"]
    assert references(said) == {f"#/components/schemas/{name}" for name in schemas}
    for path, methods in said["paths"].items():
        for method in methods:
            assert served.ask(method.upper(), path, {}).status in (200, 400)


@pytest.mark.slow
def test_no_request_drawn_from_it_is_too_odd(served, tmp_path):
    """Nor any that it excludes."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "schemathesis.cli",
            "run",
            f"{served.url}/openapi.json",
            "--checks",
            CHECKS,
            "--max-examples",
            str(EXAMPLES),
            "--seed",
            "1",
            "--phases",
            "examples,coverage,fuzzing",
            "--generation-database",
            "none",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert num_in_flight(served) == 0
    assert served.complete(max_tokens=3, ignore_eos=True).json()["usage"]["completion_tokens"] == 3
    assert served.end()[::2] == (0, "")
