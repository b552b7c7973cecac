"""Pages of the site that are made of the code: commands, JSON schemas, Python API.

mkdocs calls `on_config`, `on_files` and `on_page_markdown` (``hooks`` in mkdocs.yml).
"""

import ast
import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import Any

import click
import msgspec
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]

PROJECT_PAGES = ("CONTRIBUTING.md", "CHANGELOG.md")
PYTHON = {
    "In a test suite: `pip install gcbench`": (
        "gcbench.pytest_plugin",
        "gcbench.budget",
        "gcbench.call_cost",
        "gcbench.function_costs",
    ),
    "Stored results: `pip install 'gcbench[bench]'`": (
        "harness.tracking.history",
        "harness.tracking.changes",
        "harness.tracking.verdict",
        "harness.tracking.triage",
        "harness.tracking.detect.examine",
        "harness.tracking.detect.series",
    ),
    "What an engine and a representation are": (
        "engines.protocol",
        "engines.builtin.representations",
    ),
}


def commands_page() -> str:
    """What ``--help`` prints, of every command and subcommand."""
    from harness.cli.main import cli
    from harness.cli.sections import SHOWS_ALL

    def sections(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
        context = click.Context(command, parent=parent, info_name=name, terminal_width=80)
        context.meta[SHOWS_ALL] = True
        path = context.command_path
        yield f"## {path}\n\n```text\n{command.get_help(context)}\n```\n"
        if isinstance(command, click.Group):
            for each in command.list_commands(context):
                child = command.get_command(context, each)
                assert child is not None, each
                yield from sections(child, each, context)

    return "# Commands\n\nGenerated from the code.\n\n" + "\n".join(sections(cli, "gcbench", None))


def documents() -> dict[str, Any]:
    """The JSON documents that gcbench writes, by the name in their ``schema``."""
    from harness.report.kinds import ANY
    from harness.result.result import RESULT_SCHEMA

    found: dict[str, Any] = {}
    for path in sorted([*ROOT.glob("harness/**/*.py"), *ROOT.glob("workloads/**/*.py")]):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
                if any(ast.unparse(each.target) == "schema" and each.value for each in fields):
                    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                    type_ = getattr(import_module(name), node.name)
                    (field,) = (f for f in msgspec.structs.fields(type_) if f.name == "schema")
                    found[field.default] = type_
    found[RESULT_SCHEMA] = ANY  # of which the class that has the field is the base
    return dict(sorted(found.items()))


def json_schema(name: str, type_: Any) -> dict[str, Any]:
    """JSON Schema (2020-12) of one document."""
    made = msgspec.json.schema(type_)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name, **made}


def _summary(type_: Any) -> str:
    if not isinstance(type_, type):
        return "Any result: what all have, and by `kind` what each has found."
    return (getdoc(type_) or "").splitlines()[0]


def schemas_page(schemas: dict[str, Any]) -> str:
    """A table of the documents with a link to each one's JSON Schema."""
    rows = [
        f"| [`{name}`](schemas/{_file(name)}) | {_summary(type_)} |"
        for name, type_ in schemas.items()
    ]
    return "\n".join(
        [
            "# JSON schemas",
            "",
            "Every JSON document names its schema in the field `schema`. The number rises when the "
            "meaning of a field changes. Each link is a JSON Schema (2020-12), generated from the "
            "types that write the document.",
            "",
            "| schema | document |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def python_page() -> str:
    """The public modules, for mkdocstrings to fill in."""
    lines = ["# Python API", "", "Generated from the docstrings.", ""]
    for heading, modules in PYTHON.items():
        lines += [f"## {heading}", "", *(f"::: {name}" for name in modules), ""]
    return "\n\n".join(lines)


def navigation(index: str) -> list[Any]:
    """The sections of docs/README.md with the pages that each links to, and the pages made here."""
    sections: list[Any] = ["README.md"]
    for section in index.split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        sections.append({title: re.findall(r"\]\(([a-z0-9-]+\.md)\)", text)})
    made = ["reference/commands.md", "reference/schemas.md", "reference/python.md"]
    project = [f"project/{name}" for name in PROJECT_PAGES]
    return [*sections, {"Generated reference": made}, {"Project": project}]


def on_config(config: MkDocsConfig) -> None:
    """Lay the navigation out as the index does."""
    config.nav = navigation((ROOT / "docs" / "README.md").read_text())


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, the schemas and the project's own pages."""
    sys.path.insert(0, str(ROOT))  # here: what is inserted while a hook is loaded is taken back
    schemas = documents()
    made = {
        "reference/commands.md": commands_page(),
        "reference/schemas.md": schemas_page(schemas),
        "reference/python.md": python_page(),
        **{f"project/{name}": (ROOT / name).read_text() for name in PROJECT_PAGES},
        **{
            f"reference/schemas/{_file(name)}": json.dumps(json_schema(name, type_), indent=1)
            for name, type_ in schemas.items()
        },
    }
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    for path in sorted(Path(config.docs_dir).glob("*.md")):
        for target in _outside(path.read_text()):
            name = f"repository/{target}"
            if target not in PROJECT_PAGES and name not in files.src_uris:
                files.append(File.generated(config, name, abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links out of docs/ to the copies in the site, and links into it to the pages."""
    if page.file.src_uri.startswith("project/"):
        return re.sub(r"\]\((?:docs/)([^)]+)\)", r"](../\1)", markdown)
    for target in _outside(markdown):
        folder = "project" if target in PROJECT_PAGES else "repository"
        markdown = markdown.replace(f"](../{target}", f"]({folder}/{target}")
    return markdown


def _outside(markdown: str) -> list[str]:
    """Files of the repository outside docs/ that a page links to."""
    return re.findall(r"\]\(\.\./([^)#]+)", markdown)


def _file(name: str) -> str:
    return name.replace("/", "-") + ".json"
