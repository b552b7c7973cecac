// Verdicts as harness/tracking/changes.py gives them, and tables of them; a test compares the two.
var gcbenchJudge = (function () {
  "use strict";
  var WORDS = { worse: "▼ worse", better: "▲ better", changed: "~ changed", same: "= same", missing: "– missing" };
  var ORDER = ["worse", "better", "changed", "same", "missing"];
  var PAGE = 0, TITLE = 1, SUITE = 2, MACHINE = 3, ENVIRONMENT = 4, UNIT = 5, DIRECTION = 6, KIND = 7, FLOOR = 8, LEAST = 9;
  function or(v, other) { return v === null || v === undefined ? other : v; }
  // Points are [value, low, high]; an infinite interval was stored as null, as none was.
  function verdict(series, before, after) {
    if (!before || !after || before[0] === null || after[0] === null) return "missing";
    var change = after[0] - before[0];
    var beyond = Math.abs(change) > series[LEAST] && Math.abs(change) > series[FLOOR] * Math.abs(before[0]);
    var apart = or(after[1], after[0]) > or(before[2], before[0]) || or(after[2], after[0]) < or(before[1], before[0]);
    if (!beyond || !(apart || series[KIND] === "exact")) return "same";
    if (series[DIRECTION] === "higher") return change > 0 ? "better" : "worse";
    if (series[DIRECTION] === "lower") return change < 0 ? "better" : "worse";
    return "changed";
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
  function sentence(rows) {
    var n = {};
    ORDER.forEach(function (word) { n[word] = 0; });
    rows.forEach(function (row) { n[row.verdict] += 1; });
    if (!rows.length) return "Nothing was measured at both.";
    if (n.same === rows.length) return "No changes in " + n.same.toLocaleString("en-US") + " series.";
    var words = [plural(n.worse, "regression"), plural(n.better, "improvement")];
    if (n.changed) words.push(n.changed + " changed either way");
    words.push(n.same + " unchanged");
    if (n.missing) words.push(n.missing + " without a figure on both sides");
    words = words.join(", ");
    return words[0].toUpperCase() + words.slice(1) + ".";
  }
  // rows: {number, before, after}; those of one verdict together, the largest change first.
  function table(place, rows, root, differing) {
    var several = new Set(window.gcbench.series.map(function (s) { return JSON.stringify([s[MACHINE], s[ENVIRONMENT]]); })).size > 1;
    rows.forEach(function (row) {
      row.series = window.gcbench.series[row.number];
      row.verdict = verdict(row.series, row.before, row.after);
      row.ratio = ratio(row.before, row.after);
      row.size = row.ratio > 0 && isFinite(row.ratio) ? Math.abs(Math.log(row.ratio)) : row.ratio === null ? -1 : Infinity;
    });
    rows.sort(function (a, b) { return ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict) || (b.size === a.size ? a.number - b.number : b.size - a.size); });
    var shown = differing ? rows.filter(function (row) { return ["worse", "better", "changed"].indexOf(row.verdict) >= 0; }) : rows;
    var made = element("table", undefined, "changes"), head = element("tr");
    [["Verdict"], ["Series"], ["Ratio", "number"], ["Before", "number"], ["After", "number"]].forEach(function (h) {
      var th = element("th", h[0], h[1]); th.scope = "col"; head.append(th);
    });
    var thead = element("thead"); thead.append(head); made.append(thead);
    var body = element("tbody");
    shown.forEach(function (row) {
      var tr = element("tr"), judged = element("td"), named = element("td", undefined, "series");
      tr.dataset.number = row.number; tr.dataset.verdict = row.verdict;
      judged.append(element("span", WORDS[row.verdict], "verdict " + row.verdict));
      var link = element("a", row.series[TITLE]);
      link.href = root + "metric/" + encodeURIComponent(row.series[PAGE]) + ".html#k=" + row.number;
      named.append(link);
      if (several) named.append(element("br"), element("span", row.series[MACHINE] + ", " + row.series[ENVIRONMENT], "faint"));
      tr.append(judged, named);
      tr.append(element("td", gcbenchFormat.ratio(row.ratio), "number big"));
      [[row.before, "before"], [row.after, "after"]].forEach(function (side) {
        tr.append(element("td", gcbenchFormat.withUnit(side[0] ? side[0][0] : null, row.series[UNIT]), "number " + side[1]));
      });
      body.append(tr);
    });
    made.append(body);
    var wide = element("div", undefined, "wide");
    wide.tabIndex = 0; wide.setAttribute("role", "region"); wide.setAttribute("aria-label", "Comparison");
    wide.append(made);
    place.replaceChildren(wide);
    return sentence(rows);
  }
  return { table: table, verdict: verdict, ratio: ratio };
})();
