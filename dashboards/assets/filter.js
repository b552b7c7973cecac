// Rows narrowed by a text, a verdict or whether they have marks; what is left saved as CSV.
(function () {
  "use strict";
  function shown(row) { return !row.hidden && !row.closest("[data-holds][hidden]"); }
  function field(cell) {
    var text = cell.innerText === undefined ? cell.textContent : cell.innerText || cell.textContent;
    text = text.trim().replace(/\s+/g, " ");
    return /[",]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  }
  function csv(place) {
    var lines = [], tables = place.matches("table") ? [place] : Array.prototype.slice.call(place.querySelectorAll("table"));
    tables.forEach(function (table) {
      var rows = Array.prototype.filter.call(table.tBodies[0].rows, shown);
      if (!rows.length) return;
      [table.tHead.rows[0]].concat(rows).forEach(function (row) { lines.push(Array.prototype.map.call(row.cells, field).join(",")); });
    });
    return lines.filter(function (line, i) { return line !== lines[0] || i === 0; }).join("\n") + "\n";
  }
  document.querySelectorAll("[data-filter]").forEach(function (form) {
    var place = document.querySelector(form.dataset.filter), count = form.querySelector("[role=status]"), of = form.elements;
    function show() {
      var wanted = of.text.value.trim().toLowerCase(), word = of.verdict ? of.verdict.value : "", marked = of.marked && of.marked.checked;
      var rows = Array.prototype.slice.call(place.querySelectorAll("[data-row]")), left = 0, narrowed = wanted || word || marked;
      rows.forEach(function (row) {
        // What stands above a row is searched too: the commit that made the change.
        var text = row.textContent;
        for (var holder = row.closest("[data-holds]"); holder; holder = holder.parentElement.closest("[data-holds]")) {
          var head = holder.querySelector("h3, summary");
          if (head) text += " " + head.textContent;
        }
        row.hidden = text.toLowerCase().indexOf(wanted) < 0 || (word && row.dataset.row !== word) || (marked && !row.dataset.row);
        left += row.hidden ? 0 : 1;
      });
      place.querySelectorAll("[data-holds]").forEach(function (holder) {
        var mine = Array.prototype.slice.call(holder.querySelectorAll("[data-row]"));
        holder.hidden = mine.length > 0 && mine.every(function (row) { return row.hidden; });
        if (holder.tagName === "DETAILS" && narrowed && !holder.hidden) holder.open = true;
      });
      count.textContent = left === rows.length ? "" : left.toLocaleString("en-US") + " of " + rows.length.toLocaleString("en-US") + " shown";
    }
    form.addEventListener("input", show);
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    form.querySelector("[data-csv]").addEventListener("click", function () {
      var link = document.createElement("a");
      link.href = "data:text/csv;charset=utf-8," + encodeURIComponent(csv(place));
      link.download = document.title.replace(/[^A-Za-z0-9]+/g, "-").slice(0, 60) + ".csv";
      link.click();
    });
    document.addEventListener("gcbench-rows", show);
    form.hidden = false;
    show();
  });
})();
