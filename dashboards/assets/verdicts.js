// Tables of verdicts. What is said of two commits was worked out by harness/tracking/verdict.py
// when the site was built; here it is looked up.
var gcbenchVerdicts = (function () {
  "use strict";
  var known = window.gcbench.verdicts, ORDER = known.words;
  var PAGE = 0, TITLE = 1, MACHINE = 3, ENVIRONMENT = 4, UNIT = 5;
  // Points are [value, level, low, high], the level null where the series has no value; not all have an interval.
  function verdict(number, before, after) {
    if (!before || !after || before[1] === null || after[1] === null) return "missing";
    return ORDER[Number(known.tables[known.series[number][1]][before[1]][after[1]])];
  }
  function ratio(before, after) {
    if (!before || !after || before[0] === null || after[0] === null) return null;
    return before[0] === 0 && after[0] === 0 ? 1 : after[0] / before[0];
  }
  function element(tag, text, name) {
    var made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    return made;
  }
  function plural(n, word) { return n ? n.toLocaleString("en-US") + " " + word + (n === 1 ? "" : "s") : "no " + word + "s"; }
  // How many series stand how; without regressions and improvements where only the rest is meant.
  function sentence(rows, isRest) {
    var n = {};
    ORDER.forEach(function (word) { n[word] = 0; });
    rows.forEach(function (row) { n[row.verdict] += 1; });
    if (!rows.length) return "Nothing was measured at both.";
    var words = isRest ? [] : [plural(n.worse, "regression"), plural(n.better, "improvement")], NAMES = {
      changed: "changed either way", suspicious: "suspicious", inconclusive: "inconclusive", same: "the same",
      no_change_shown: "with no change shown", insufficient: "with too few points",
      reset: "with a baseline reset between", missing: "without a figure on both sides",
    };
    ORDER.forEach(function (word) { if (NAMES[word] && n[word]) words.push(n[word].toLocaleString("en-US") + " " + NAMES[word]); });
    words = words.join(", ");
    return words[0].toUpperCase() + words.slice(1) + ".";
  }
  var DIFFERING = ["worse", "better", "changed", "suspicious", "inconclusive"];
  // rows: {number, before, after, verdict, note}; those of one verdict together, the largest change
  // first, and what does not differ folded away below.
  function table(place, rows, root) {
    rows.forEach(function (row) {
      row.series = window.gcbench.series[row.number];
      row.ratio = ratio(row.before, row.after);
      row.size = row.ratio > 0 && isFinite(row.ratio) ? Math.abs(Math.log(row.ratio)) : row.ratio === null ? -1 : Infinity;
    });
    rows.sort(function (a, b) { return ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict) || (b.size === a.size ? a.number - b.number : b.size - a.size); });
    var differing = rows.filter(function (row) { return DIFFERING.indexOf(row.verdict) >= 0; });
    var rest = rows.slice(differing.length), parts = [];
    if (differing.length) parts.push(drawn(differing, "What differs", root));
    if (rest.length) {
      var fold = element("details"), title = sentence(rest, true).slice(0, -1);
      fold.append(element("summary", title), drawn(rest, "The rest", root));
      parts.push(fold);
    }
    place.replaceChildren.apply(place, parts);
    document.dispatchEvent(new Event("gcbench-rows"));
    return sentence(rows);
  }
  function figure(point, series, name) {
    var made = element("td", undefined, "number " + name);
    made.append(element("span", gcbenchFormat.bare(point ? point[0] : null, series[UNIT]), "value"));
    if (point && point.length > 2) {
      made.append(element("br"), element("span", gcbenchFormat.bare(point[2], series[UNIT]) + " to " + gcbenchFormat.bare(point[3], series[UNIT]), "faint"));
    }
    return made;
  }
  function drawn(rows, caption, root) {
    var several = new Set(window.gcbench.series.map(function (s) { return JSON.stringify([s[MACHINE], s[ENVIRONMENT]]); })).size > 1;
    var made = element("table", undefined, "changes"), head = element("tr");
    made.append(element("caption", caption + ", each figure with the interval that asv stored"));
    [["Verdict"], ["Series"], ["Change", "number"], ["Before", "number"], ["After", "number"]].forEach(function (h) {
      var th = element("th", h[0], h[1]); th.scope = "col"; head.append(th);
    });
    var thead = element("thead"); thead.append(head); made.append(thead);
    var body = element("tbody");
    rows.forEach(function (row) {
      var tr = element("tr"), judged = element("td"), named = element("td", undefined, "series");
      tr.dataset.number = row.number; tr.dataset.verdict = tr.dataset.row = row.verdict;
      judged.append(element("span", known.labels[ORDER.indexOf(row.verdict)], "verdict " + row.verdict));
      if (row.note) judged.append(element("br"), element("span", row.note, "faint"));
      var link = element("a", row.series[TITLE]);
      link.href = root + "metric/" + encodeURIComponent(row.series[PAGE]) + ".html#k=" + row.number;
      named.append(link);
      if (gcbenchFormat.plain(row.series[UNIT])) named.append(element("br"), element("span", "in " + row.series[UNIT], "faint"));
      if (several) named.append(element("br"), element("span", row.series[MACHINE] + ", " + row.series[ENVIRONMENT], "faint"));
      tr.append(judged, named, element("td", gcbenchFormat.change(row.ratio), "number big"), figure(row.before, row.series, "before"), figure(row.after, row.series, "after"));
      body.append(tr);
    });
    made.append(body);
    var wide = element("div", undefined, "wide");
    wide.tabIndex = 0; wide.setAttribute("role", "region"); wide.setAttribute("aria-label", caption);
    wide.append(made);
    return wide;
  }
  return { table: table, verdict: verdict };
})();
