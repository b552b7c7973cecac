// Two commits, chosen here; each one's figures are a script that is loaded when it is asked for.
(function () {
  "use strict";
  var commits = window.gcbench.commits, base = document.getElementById("base"), head = document.getElementById("head");
  var place = document.getElementById("table"), say = document.getElementById("sentence");
  var turn = 0;
  for (var i = commits.length - 1; i >= 0; i--) {
    var words = commits[i][0].slice(0, 8) + " · " + commits[i][1] + (commits[i][2] ? " · " + commits[i][2].slice(0, 60) : "");
    base.append(new Option(words, i)); head.append(new Option(words, i));
  }
  function load(i, done) {
    if (window.gcbench["commit " + i]) return done();
    var script = document.createElement("script");
    script.src = "data/commit/" + encodeURIComponent(commits[i][4]) + ".js";
    script.onload = done;
    script.onerror = function () { say.textContent = "The figures of " + commits[i][0].slice(0, 8) + " are not there: " + script.src; };
    document.head.append(script);
  }
  function figures(i) {
    var found = {};
    window.gcbench["commit " + i].forEach(function (row) { found[row[0]] = row[1]; });
    return found;
  }
  function show() {
    var one = Number(base.value), other = Number(head.value), mine = ++turn;
    history.replaceState(null, "", "#" + commits[one][0] + ".." + commits[other][0]);
    if (one === other) { place.replaceChildren(); say.textContent = "This is one commit: choose two."; return; }
    load(one, function () { load(other, function () {
      if (mine !== turn) return;
      var before = figures(one), after = figures(other);
      var rows = window.gcbench.series.map(function (_, n) { return { number: n, before: before[n], after: after[n], verdict: gcbenchVerdicts.verdict(n, before[n], after[n]) }; })
        .filter(function (row) { return row.before || row.after; });
      say.textContent = gcbenchVerdicts.table(place, rows, "");
    }); });
  }
  function find(hash) { return commits.findIndex(function (c) { return hash && c[0].indexOf(hash.toLowerCase()) === 0; }); }
  function asked() {
    var parts = decodeURIComponent(location.hash.slice(1)).split(".."), one = find(parts[0]), other = find(parts[1]);
    base.value = one >= 0 ? one : Math.max(0, commits.length - 2);
    head.value = other >= 0 ? other : commits.length - 1;
    show();
  }
  base.addEventListener("change", show);
  head.addEventListener("change", show);
  document.getElementById("swap").addEventListener("click", function () { var v = base.value; base.value = head.value; head.value = v; show(); });
  document.getElementById("form").addEventListener("submit", function (event) { event.preventDefault(); });
  addEventListener("hashchange", asked);
  asked();
})();
