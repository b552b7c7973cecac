// A metric's history: series chosen in the table, drawn with their intervals and changes.
(function () {
  "use strict";
  var data = window.gcbench.benchmark, commits = window.gcbench.commits, C = gcbenchChart, F = gcbenchFormat;
  var MOST = 8, MARKS = { worse: ["▼", "--worse"], better: ["▲", "--better"], changed: ["◆", "--faint"], suspicious: ["?", "--faint"] };
  var boxes = Array.prototype.slice.call(document.querySelectorAll("[data-series]"));
  var readout = document.getElementById("readout"), log = document.getElementById("log"), isLog = false, chart = null, last = null;
  var chosen = [];
  var xs = data.commits.map(function (_, i) { return i; });
  function positive(v) { return v !== null && v > 0 ? v : null; }
  function clean(row) { return isLog ? row.map(positive) : row; }
  function fromHash() {
    var s = /^#s=([\d,]+)$/.exec(location.hash), k = /^#k=(\d+)$/.exec(location.hash);
    if (s) return s[1].split(",").map(Number).filter(function (i) { return i < boxes.length; }).slice(0, MOST);
    if (k) return boxes.filter(function (b) { return b.dataset.number === k[1]; }).map(function (b) { return Number(b.dataset.series); });
    return [];
  }
  function usual() {
    var all = boxes.map(function (_, i) { return i; });
    if (all.length <= 6) return all;
    var changed = all.filter(function (i) { return boxes[i].closest("tr").querySelector(".verdict:not(.no_change_shown):not(.insufficient)"); });
    return changed.concat(all.filter(function (i) { return changed.indexOf(i) < 0; })).slice(0, Math.max(5, Math.min(MOST, changed.length))).sort(function (a, b) { return a - b; });
  }
  function paint() {
    boxes.forEach(function (box, i) {
      var slot = chosen.indexOf(i), swatch = box.parentElement.querySelector(".swatch");
      box.checked = slot >= 0;
      box.disabled = slot < 0 && chosen.length >= MOST;
      swatch.style.borderTop = slot >= 0 ? "3px " + (slot % 8 < 4 ? "solid " : "dashed ") + C.colour(slot) : "3px solid transparent";
    });
  }
  function options() {
    var series = [{}], bands = [];
    chosen.forEach(function (_, slot) {
      var c = C.colour(slot), n = series.length, end = { stroke: "transparent", width: 0, points: { show: false } };
      series.push({ stroke: c, width: 2, dash: C.dash(slot), spanGaps: true, points: { show: xs.length < 60, size: 5, fill: c } }, end, Object.assign({}, end));
      bands.push({ series: [n + 1, n + 2], fill: C.alpha(c.length ? c : "#000000", 0.16) });
    });
    return {
      scales: {
        x: { time: false, auto: false },
        y: isLog ? { distr: 3, log: 10 } : { range: function (u, min, max) {
          if (min === null || max === null) return [0, 1];
          var pad = (max - min) * 0.08 || Math.abs(max) * 0.05 || 1;
          return [min - pad, max + pad];
        } },
      },
      axes: [
        C.axis({ space: 100, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000],
          values: function (u, splits) { return splits.map(function (s) { var c = commits[data.commits[s]]; return c ? c[1] : ""; }); } }),
        C.axis({ size: 84, values: function (u, splits) { return splits.map(function (s) { return s === null ? "" : F.withUnit(s, /^(s$|B$|share)/.test(data.unit) ? data.unit : /\/s$/.test(data.unit) ? "/s" : "").replace(" /s", ""); }); } }),
      ],
      series: series, bands: bands, hooks: { draw: [marks] },
    };
  }
  function marks(u) {
    var ctx = u.ctx, ratio = devicePixelRatio || 1;
    ctx.save();
    ctx.textAlign = "center"; ctx.textBaseline = "middle"; ctx.font = 13 * ratio + "px system-ui, sans-serif";
    chosen.forEach(function (i) {
      data.series[i].marks.forEach(function (mark) {
        var v = data.series[i].value[mark[0]], kind = MARKS[mark[1]];
        if (v === null || !kind || mark[0] < u.scales.x.min || mark[0] > u.scales.x.max || (isLog && v <= 0)) return;
        var x = u.valToPos(mark[0], "x", true), y = u.valToPos(v, "y", true);
        ctx.strokeStyle = ctx.fillStyle = C.css(kind[1]);
        ctx.lineWidth = ratio; ctx.globalAlpha = 0.45; ctx.setLineDash([3 * ratio, 3 * ratio]);
        ctx.beginPath(); ctx.moveTo(x, u.bbox.top); ctx.lineTo(x, u.bbox.top + u.bbox.height); ctx.stroke();
        ctx.globalAlpha = 1;
        ctx.fillText(kind[0], x, y + (kind[0] === "▼" ? -12 : 14) * ratio);
      });
    });
    ctx.restore();
  }
  function values() {
    var rows = [xs];
    chosen.forEach(function (i) { var s = data.series[i]; rows.push(clean(s.value), clean(s.high), clean(s.low)); });
    return rows;
  }
  function span(text, name) { var made = document.createElement("span"); made.textContent = text; if (name) made.className = name; return made; }
  function read(i) {
    last = i;
    var commit = commits[data.commits[i]], line = document.createElement("p"), link = document.createElement("a"), list = document.createElement("ul");
    if (!commit) return;
    link.href = "../commit/" + encodeURIComponent(commit[4]) + ".html"; link.textContent = commit[0].slice(0, 8); link.className = "hash";
    line.append(link, span(" " + commit[1] + " "), span(commit[2], "message"));
    if (/^https?:/.test(commit[3])) {
      var there = document.createElement("a");
      there.href = commit[3]; there.rel = "noreferrer noopener"; there.textContent = "↗"; there.setAttribute("aria-label", "The commit itself");
      line.append(" ", there);
    }
    chosen.forEach(function (n, slot) {
      var s = data.series[n], item = document.createElement("li"), swatch = span("", "swatch");
      swatch.style.borderTop = "3px " + (slot % 8 < 4 ? "solid " : "dashed ") + C.colour(slot);
      item.append(swatch, span(s.label + " "), span(F.withUnit(s.value[i], data.unit), "value"));
      if (s.low[i] !== null && s.high[i] !== null) item.append(span(" (" + F.withUnit(s.low[i], data.unit) + " to " + F.withUnit(s.high[i], data.unit) + ")", "faint"));
      s.marks.forEach(function (mark) {
        if (mark[0] === i && MARKS[mark[1]]) item.append(" ", span(MARKS[mark[1]][0] + " " + mark[1] + " " + F.ratio(mark[2]), "verdict " + mark[1]), span(mark[3] ? " " + mark[3] : "", "faint"));
      });
      list.append(item);
    });
    readout.replaceChildren(line, list);
  }
  function choose(next, keep) {
    chosen = next;
    if (keep) history.replaceState(null, "", "#s=" + chosen.join(","));
    paint();
    if (chart) chart.draw();
    read(last === null ? xs.length - 1 : last);
  }
  boxes.forEach(function (box, i) {
    box.addEventListener("change", function () {
      choose(box.checked ? chosen.concat([i]).sort(function (a, b) { return a - b; }) : chosen.filter(function (n) { return n !== i; }), true);
    });
  });
  log.addEventListener("click", function () { isLog = !isLog; log.setAttribute("aria-pressed", isLog); chart.draw(); });
  addEventListener("hashchange", function () { var next = fromHash(); if (next.length) choose(next); });
  document.addEventListener("gcbench-theme", paint);
  var first = fromHash();
  choose(first.length ? first : usual());
  chart = C.make(document.getElementById("chart"), {
    options: options, data: values, read: read, least: 4,
    edge: function (x, end) { return end ? Math.max(x.length - 1, 0) + 0.5 : -0.5; },
    open: function (i) { location.href = "../commit/" + encodeURIComponent(commits[data.commits[i]][4]) + ".html"; },
  });
})();
