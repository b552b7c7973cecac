// A commit's figures, each against its series' commit before.
(function () {
  "use strict";
  var place = document.getElementById("table"), data = window.gcbench["commit " + place.dataset.commit];
  var rows = data.map(function (row) {
    return { number: row[0], after: row[1], before: row[2] < 0 ? null : row[3], verdict: row[4], note: row[5] };
  });
  var words = gcbenchVerdicts.table(place, rows, document.body.dataset.root);
  document.getElementById("sentence").textContent = "Against each series’ commit before: " + words[0].toLowerCase() + words.slice(1);
})();
