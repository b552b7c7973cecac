"""Writes the pages of a site from what was worked out for them."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from dashboards import script
from dashboards.content.commits import Commit
from dashboards.content.experiments import Experiment, latest_figures
from dashboards.content.grid import BETTER, GridCell, GridTable, layout
from dashboards.content.machines import machines, of_experiments
from dashboards.content.morning import advice, common_unit, variants
from dashboards.content.news import Item
from dashboards.content.recent_changes import RecentChanges, marks_by_commit, recent_steps
from dashboards.content.releases import TABLE_COLUMNS
from dashboards.content.series import ChartSeries
from dashboards.content.standing import Standing
from dashboards.content.timelines import Timeline
from dashboards.pages import ASSETS, templates
from dashboards.pictures.sparkline import LAST, sparkline
from harness.report.header import machine_words
from harness.tracking.detect.page import MachineEvent
from harness.tracking.event_words import event_sentence
from harness.tracking.history import History
from harness.tracking.verdict import Key, SeriesVerdict

MOST_GRID_SERIES = 2000
"""More series than these, and the overview names the rest instead of drawing them."""

_MOST_ROWS = 5
"""Series of a commit that the overview shows at once; the rest is folded."""

_MANY_VARIANTS = 3
"""So many series of a benchmark with one verdict are one row, which opens."""

_MOST_EXPERIMENTS = 8
"""Experiments that the overview of a folder without nights names."""

_MENU_OF = {
    "metric": "metrics.html",
    "commit": "commits.html",
    "experiment": "experiments.html",
    "timeline": "timelines.html",
}
"""Where in the menu the pages of a folder are."""


class Content(NamedTuple):
    """All that the pages show. ``items``: what to act on, each with the commands that show it once
    more. ``timelines``: those drawn, and how many not. ``root``: where the results are.
    """

    commits: list[Commit]
    series: list[ChartSeries]
    verdicts: Mapping[Key, SeriesVerdict]
    latest: RecentChanges
    items: list[tuple[Item, list[str]]]
    standings: list[Standing]
    experiments: list[Experiment]
    timelines: tuple[list[Timeline], int]
    root: Path
    found: History
    now: datetime
    notice: str = ""
    events: Sequence[MachineEvent] = ()


class Writer:
    """Writes the pages of one site into a folder."""

    def __init__(self, folder: Path, content: Content) -> None:
        self.folder, self.content = folder, content
        self.by_page: dict[str, list[ChartSeries]] = {}
        for series in content.series:
            self.by_page.setdefault(series.page, []).append(series)
        self.places = {commit.hash: place for place, commit in enumerate(content.commits)}
        self.sparks = {
            each.key: sparkline(each, content.verdicts[each.key]) for each in content.series
        }
        self.several = len({series.key[:2] for series in content.series}) > 1
        self.heat_maps = self._heat_maps()
        self.everywhere = self._everywhere()
        self.pages = 0

    def everything(self) -> int:
        """All of it; the number of pages."""
        shutil.copytree(ASSETS, self.folder / "assets")
        content = self.content
        self._page("index.html", "overview.html", **self._overview())
        if content.series:
            self._metrics()
            self._commits()
            self._page("compare.html", "compare.html", data=["commits", "series", "verdicts"])
        if self.heat_maps:
            self._page("heatmap.html", "heatmap.html", sources=self.heat_maps)
        self._experiments()
        self._releases()
        if content.timelines[0]:
            self._timelines()
        self._page(
            "machines.html",
            "machines.html",
            machines=machines(content.root, content.found.figures),
            experiments=of_experiments(content.experiments),
            problems=content.found.problems,
        )
        return self.pages

    def _everywhere(self) -> dict[str, Any]:
        """What each page can name."""
        content = self.content
        has = [
            (True, "index.html", "Overview"),
            (bool(content.series), "commits.html", "Commits"),
            (bool(content.series), "compare.html", "Compare"),
            (bool(content.series), "metrics.html", "Metrics"),
            (bool(content.experiments), "experiments.html", "Experiments"),
            (bool(self.heat_maps), "heatmap.html", "Heat map"),
            (bool(content.timelines[0]), "timelines.html", "Timelines"),
            (any(each.releases for each in content.experiments), "releases.html", "Releases"),
            (True, "machines.html", "Machines"),
        ]
        return {
            "menu": [(address, word) for there, address, word in has if there],
            "built": f"{content.now:%Y-%m-%d %H:%M} UTC",
            "several": self.several,
        }

    def _page(self, path: str, template: str, data: Iterable[str] = (), **content: Any) -> None:
        target = self.folder / path
        target.parent.mkdir(exist_ok=True)
        root = "../" * path.count("/")
        current = _MENU_OF.get(path.split("/", 1)[0], path)
        text = (
            templates()
            .get_template(template)
            .render(
                root=root,
                current=current,
                data=[f"{root}data/{name}.js" for name in data],
                **self.everywhere,
                **content,
            )
        )
        target.write_text(text, encoding="utf-8", errors="replace")
        self.pages += 1

    def _data(self, path: str, name: str, value: Any) -> None:
        target = self.folder / "data" / f"{path}.js"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(script.assigned(name, value), encoding="utf-8")

    def _overview(self) -> dict[str, Any]:
        content = self.content
        commit = content.commits[-1] if content.commits else None
        verdicts = content.verdicts
        shown, drawn = [], 0
        for page, series in self.by_page.items():
            drawn += len(series)
            if drawn <= MOST_GRID_SERIES:
                changed = sum(bool(verdicts[each.key].news) for each in series)
                shown.append((page, series[0], self._grid(series), changed))
        return {
            "notice": content.notice,
            "latest": content.latest,
            "advice": advice(
                [item for item, _ in content.items], content.latest, content.standings
            ),
            "variants": variants,
            "common_unit": common_unit,
            "experiments": content.experiments,
            "releases": max(
                (each.releases for each in content.experiments if each.releases),
                key=lambda study: study.weight,
                default=None,
            ),
            "standings": content.standings,
            "events": [(event, event_sentence(event)) for event in content.events],
            "items": content.items,
            "most_rows": _MOST_ROWS,
            "many_variants": _MANY_VARIANTS,
            "most_experiments": _MOST_EXPERIMENTS,
            "by_key": {series.key: series for series in content.series},
            "sparks": self.sparks,
            "left_out": content.found.rewritten,
            "commit": commit,
            "commits": {each.hash: each for each in content.commits},
            "grids": shown,
            "chosen": max(range(len(shown)), key=lambda place: shown[place][3], default=0),
            "hidden": len(self.by_page) - len(shown),
            "problems": len(content.found.problems),
            "incomplete": [each for each in content.experiments if each.incomplete],
            "read": {
                "figures": len(content.found.figures),
                "commits": len(content.commits),
                "series": len(content.series),
                "experiments": len(content.experiments),
                "timelines": len(content.timelines[0]),
            },
        }

    def _axes(self, series: ChartSeries) -> dict[str, str]:
        where = {"machine": series.key[0], "environment": series.key[1]} if self.several else {}
        return {**series.params, **where}

    def _grid(self, series: list[ChartSeries]) -> GridTable:
        cells = []
        for place, each in enumerate(series):
            values = each.values
            text = each.bare(values[-1]) if values else "–"
            cells.append(
                (
                    self._axes(each),
                    GridCell(
                        text,
                        verdict=self.content.verdicts[each.key].word,
                        sparkline=self.sparks[each.key],
                        href=f"metric/{each.page}.html#s={place}",
                    ),
                )
            )
        first = series[0]
        unit = f", in {first.plain_unit}" if first.plain_unit else ""
        return layout(
            cells, f"{BETTER.get(first.direction, 'no direction')}{unit}; the last {LAST} commits"
        )

    def _heat_maps(self) -> list[Experiment]:
        """One of the last figures that asv stored, then those of experiments, the newest first."""
        latest = latest_figures(self.by_page, self._axes)
        return [*latest, *(each for each in self.content.experiments if not each.releases)]

    def _experiments(self) -> None:
        found = self.content.experiments
        if found:
            self._page("experiments.html", "experiments.html", experiments=found)
        for each in found:
            self._page(
                f"experiment/{each.page}.html",
                "experiment.html",
                each=each,
                machine=machine_words(each.machine) if each.machine else "",
                timelines=[
                    line for line in self.content.timelines[0] if line.experiment == each.name
                ],
            )

    def _releases(self) -> None:
        """Engines by release, the weightiest summary first."""
        found = [(each, each.releases) for each in self.content.experiments if each.releases]
        if found:
            found.sort(key=lambda pair: pair[1].weight, reverse=True)
            self._data("releases", "releases", [study.data for _, study in found])
            self._page(
                "releases.html",
                "releases.html",
                data=["releases"],
                studies=found,
                columns=TABLE_COLUMNS,
            )

    def _metrics(self) -> None:
        verdicts = self.content.verdicts
        self._data("commits", "commits", script.commits_value(self.content.commits))
        self._data("series", "series", script.series_value(self.content.series))
        self._page(
            "metrics.html",
            "metrics.html",
            benchmarks=[
                (page, series[0], len(series), self.sparks[series[0].key])
                for page, series in self.by_page.items()
            ],
        )
        self._data("verdicts", "verdicts", script.verdicts_value(self.content.series, verdicts))
        marks = recent_steps(verdicts)
        for page, series in self.by_page.items():
            value = script.benchmark_value(series, verdicts, marks, self.places)
            self._data(f"metric/{page}", "benchmark", value)
            shown = [(each, self.sparks[each.key], verdicts[each.key].word) for each in series]
            self._page(
                f"metric/{page}.html",
                "metric.html",
                data=["commits", f"metric/{page}"],
                first=series[0],
                series=shown,
            )

    def _commits(self) -> None:
        known = self.content.commits
        values = script.commit_values(self.content.series, self.content.verdicts, known)
        marks = marks_by_commit(self.content.verdicts)
        befallen = {commit for event in self.content.events for commit in event.commits}
        self._page(
            "commits.html",
            "commits.html",
            rows=[
                (commit, len(rows), marks.get(commit.hash, []), commit.hash in befallen)
                for commit, rows in zip(known, values, strict=True)
            ][::-1],
            told=any(commit.subject for commit in known),
            age=self.content.standings[0].age if self.content.standings else "",
        )
        for place, (commit, rows) in enumerate(zip(known, values, strict=True)):
            self._data(f"commit/{commit.page}", f"commit {place}", rows)
            self._page(
                f"commit/{commit.page}.html",
                "commit.html",
                data=["commits", "series", "verdicts", f"commit/{commit.page}"],
                commit=commit,
                place=place,
                older=known[place - 1] if place else None,
                newer=known[place + 1] if place + 1 < len(known) else None,
            )

    def _timelines(self) -> None:
        found, left = self.content.timelines
        self._page("timelines.html", "timelines.html", timelines=found, left=left)
        for each in found:
            self._data(f"timeline/{each.page}", f"timeline {each.page}", each.data)
            self._page(
                f"timeline/{each.page}.html",
                "timeline.html",
                data=[f"timeline/{each.page}"],
                timeline=each,
                others=[
                    other
                    for other in found
                    if other.experiment == each.experiment and other is not each
                ],
            )
