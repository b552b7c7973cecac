// The list of commits, filtered by a text and by whether there are marks.
(function () {
  "use strict";
  var form = document.getElementById("filter"), text = document.getElementById("text"), marked = document.getElementById("marked");
  var count = document.getElementById("count"), rows = Array.prototype.slice.call(document.querySelectorAll("#commits tbody tr"));
  var words = rows.map(function (row) { return row.textContent.toLowerCase(); });
  function show() {
    var wanted = text.value.trim().toLowerCase(), shown = 0;
    rows.forEach(function (row, i) {
      row.hidden = words[i].indexOf(wanted) < 0 || (marked.checked && row.dataset.marked === undefined);
      shown += row.hidden ? 0 : 1;
    });
    count.textContent = shown === rows.length ? "" : shown.toLocaleString("en-US") + " of " + rows.length.toLocaleString("en-US") + " shown";
  }
  text.addEventListener("input", show);
  marked.addEventListener("change", show);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.hidden = false;
  show();
})();
