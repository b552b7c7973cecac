// A commit's figures, each against its series' commit before.
(function () {
  "use strict";
  var place = document.getElementById("table"), data = window.gcbench["commit " + place.dataset.commit];
  var rows = data.map(function (row) {
    return { number: row[0], after: row.slice(1, 4), before: row[4] < 0 ? null : row.slice(5, 8) };
  });
  var words = gcbenchJudge.table(place, rows, document.body.dataset.root, false);
  document.getElementById("sentence").textContent = "Against each series’ commit before: " + words[0].toLowerCase() + words.slice(1);
})();
