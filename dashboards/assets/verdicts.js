// Tables of verdicts. What is said of two commits was worked out by harness/tracking/verdict.py
// when the site was built; here it is looked up.
var gcbenchVerdicts = (function () {
  "use strict";
  var known = window.gcbench.verdicts, ORDER = known.words;
  var PAGE = 0, TITLE = 1, MACHINE = 3, ENVIRONMENT = 4, UNIT = 5;
  // Points are [value, level], the level null where the series has no value.
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
  function sentence(rows) {
    var n = {};
    ORDER.forEach(function (word) { n[word] = 0; });
    rows.forEach(function (row) { n[row.verdict] += 1; });
    if (!rows.length) return "Nothing was measured at both.";
    var words = [plural(n.worse, "regression"), plural(n.better, "improvement")], NAMES = {
      changed: "changed either way", suspicious: "suspicious", inconclusive: "inconclusive", same: "the same",
      no_change_shown: "with no change shown", insufficient: "with too few points",
      reset: "with a baseline reset between", missing: "without a figure on both sides",
    };
    ORDER.forEach(function (word) { if (NAMES[word] && n[word]) words.push(n[word].toLocaleString("en-US") + " " + NAMES[word]); });
    words = words.join(", ");
    return words[0].toUpperCase() + words.slice(1) + ".";
  }
  // rows: {number, before, after, verdict, note}; those of one verdict together, the largest change first.
  function table(place, rows, root, differing) {
    var several = new Set(window.gcbench.series.map(function (s) { return JSON.stringify([s[MACHINE], s[ENVIRONMENT]]); })).size > 1;
    rows.forEach(function (row) {
      row.series = window.gcbench.series[row.number];
      row.ratio = ratio(row.before, row.after);
      row.size = row.ratio > 0 && isFinite(row.ratio) ? Math.abs(Math.log(row.ratio)) : row.ratio === null ? -1 : Infinity;
    });
    rows.sort(function (a, b) { return ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict) || (b.size === a.size ? a.number - b.number : b.size - a.size); });
    var shown = differing ? rows.filter(function (row) { return ["worse", "better", "changed", "suspicious", "inconclusive"].indexOf(row.verdict) >= 0; }) : rows;
    var made = element("table", undefined, "changes"), head = element("tr");
    [["Verdict"], ["Series"], ["Ratio", "number"], ["Before", "number"], ["After", "number"]].forEach(function (h) {
      var th = element("th", h[0], h[1]); th.scope = "col"; head.append(th);
    });
    var thead = element("thead"); thead.append(head); made.append(thead);
    var body = element("tbody");
    shown.forEach(function (row) {
      var tr = element("tr"), judged = element("td"), named = element("td", undefined, "series");
      tr.dataset.number = row.number; tr.dataset.verdict = row.verdict;
      judged.append(element("span", known.labels[ORDER.indexOf(row.verdict)], "verdict " + row.verdict));
      if (row.note) judged.append(element("br"), element("span", row.note, "faint"));
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
  return { table: table, verdict: verdict };
})();
