// A commit's figures, each against its series' commit before.
(function () {
  "use strict";
  var place = document.getElementById("table"), data = window.gcbench["commit " + place.dataset.commit];
  var rows = data.map(function (row) {
    return { number: row[0], after: [row[1]], before: row[3] < 0 ? null : [row[4]], verdict: row[5], note: row[6] };
  });
  var words = gcbenchVerdicts.table(place, rows, document.body.dataset.root, false);
  document.getElementById("sentence").textContent = "Against each series’ commit before: " + words[0].toLowerCase() + words.slice(1);
})();
