// A metric's history: series chosen in the table, drawn with their intervals and changes.
(function () {
  "use strict";
  var data = window.gcbench.benchmark, commits = window.gcbench.commits, C = gcbenchChart, F = gcbenchFormat;
  var MOST = 8, MARKS = { worse: ["▼", "--worse"], better: ["▲", "--better"], changed: ["◆", "--faint"], suspicious: ["?", "--faint"] };
  var boxes = Array.prototype.slice.call(document.querySelectorAll("[data-series]"));
  var readout = document.getElementById("readout"), log = document.getElementById("log"), each = document.getElementById("each");
  var isLog = false, isEach = false, chart = null, last = null, NOISE = 5;
  var chosen = [];
  var xs = data.commits.map(function (_, i) { return i; });
  function positive(v) { return v !== null && v > 0 ? v : null; }
  // What a series is divided by: where each is 1.00, its first value.
  function base(i) { return isEach ? data.series[i].value.find(function (v) { return v !== null && v > 0; }) || 1 : 1; }
  function clean(row, by) {
    var scaled = by === 1 ? row : row.map(function (v) { return v === null ? null : v / by; });
    return isLog ? scaled.map(positive) : scaled;
  }
  function shown(v) { return isEach ? (v === null ? F.MISSING : v.toFixed(2)) : F.withUnit(v, data.unit); }
  // Of the labels only what tells the chosen series from each other.
  function labels() {
    var parts = chosen.map(function (i) { return data.series[i].label.split(" · "); });
    var differ = (parts[0] || []).map(function (_, k) { return parts.some(function (p) { return p.length !== parts[0].length || p[k] !== parts[0][k]; }); });
    return parts.map(function (p) { return p.filter(function (_, k) { return differ[k] !== false; }).join(" · ") || p.join(" · "); });
  }
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
          var middle = min / 2 + max / 2, half = Math.max((max - min) * 0.58, noise() * NOISE) || Math.abs(max) * 0.05 || 1;
          return [middle - half, middle + half];
        } },
      },
      axes: [
        C.axis({ space: 100, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000],
          values: function (u, splits) { return splits.map(function (s) { var c = commits[data.commits[s]]; return c ? c[1] : ""; }); } }),
        C.axis({ size: 84, values: function (u, splits) { return splits.map(function (s) { return s === null ? "" : isEach ? s.toFixed(2) : F.withUnit(s, /^(s$|B$|share)/.test(data.unit) ? data.unit : /\/s$/.test(data.unit) ? "/s" : "").replace(" /s", ""); }); } }),
      ],
      series: series, bands: bands, hooks: { draw: [marks, named] }, padding: [null, room(), null, null],
    };
  }
  // The largest noise of those shown, in the unit that is drawn.
  function noise() {
    return Math.max.apply(null, chosen.map(function (i) {
      var known = data.series[i].value.filter(function (v) { return v !== null; });
      return known.length ? data.series[i].noise * Math.abs(known[known.length - 1] / base(i)) : 0;
    }).concat([0]));
  }
  var FONT = "px system-ui, sans-serif", pen = document.createElement("canvas").getContext("2d");
  // Room at the right for the names of the lines; on a phone they stand below only.
  function room() {
    if (innerWidth < 640) return 16;
    pen.font = 12 + FONT;
    return 16 + Math.min(260, Math.max.apply(null, labels().map(function (text) { return pen.measureText(text).width; }).concat([0])));
  }
  function named(u) {
    if (innerWidth < 640) return;
    var ctx = u.ctx, ratio = devicePixelRatio || 1, line = 15 * ratio, texts = labels(), places = [];
    chosen.forEach(function (i, slot) {
      var row = u.data[1 + 3 * slot], end = Math.min(row.length - 1, Math.floor(u.scales.x.max));
      while (end >= 0 && row[end] === null) end--;
      if (end >= u.scales.x.min) places.push({ slot: slot, y: u.valToPos(row[end], "y", true) });
    });
    places.sort(function (a, b) { return a.y - b.y; });
    // Downwards where they would lie on each other, and all of them up again where the last is too low.
    places.forEach(function (place, k) { if (k) place.y = Math.max(place.y, places[k - 1].y + line); });
    var low = u.bbox.top + u.bbox.height, over = places.length ? places[places.length - 1].y - low : 0;
    for (var k = places.length - 1; k >= 0 && over > 0; k--) places[k].y = Math.min(places[k].y, low - (places.length - 1 - k) * line);
    ctx.save();
    ctx.font = 12 * ratio + FONT; ctx.textAlign = "left"; ctx.textBaseline = "middle";
    places.forEach(function (place) {
      ctx.fillStyle = C.colour(place.slot);
      ctx.fillRect(u.bbox.left + u.bbox.width + 3 * ratio, place.y - ratio, 6 * ratio, 2 * ratio);
      ctx.fillStyle = C.css("--text");
      ctx.fillText(texts[place.slot], u.bbox.left + u.bbox.width + 12 * ratio, place.y, (room() - 14) * ratio);
    });
    ctx.restore();
  }
  function marks(u) {
    var ctx = u.ctx, ratio = devicePixelRatio || 1;
    ctx.save();
    ctx.textAlign = "center"; ctx.textBaseline = "middle"; ctx.font = 13 * ratio + "px system-ui, sans-serif";
    chosen.forEach(function (i) {
      data.series[i].marks.forEach(function (mark) {
        var v = data.series[i].value[mark[0]], kind = MARKS[mark[1]];
        if (v !== null) v /= base(i);
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
    chosen.forEach(function (i) { var s = data.series[i], by = base(i); rows.push(clean(s.value, by), clean(s.high, by), clean(s.low, by)); });
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
      if (isEach && s.value[i] !== null) item.append(span(" = " + shown(s.value[i] / base(n)), "faint"));
      if (s.low[i] !== null && s.high[i] !== null) item.append(span(" (" + F.withUnit(s.low[i], data.unit) + " to " + F.withUnit(s.high[i], data.unit) + ")", "faint"));
      s.marks.forEach(function (mark) {
        if (mark[0] === i && MARKS[mark[1]]) item.append(" ", span(MARKS[mark[1]][0] + " " + mark[1] + " " + F.change(mark[2]), "verdict " + mark[1]), span(mark[3] ? " " + mark[3] : "", "faint"));
      });
      list.append(item);
    });
    readout.replaceChildren(line, list);
  }
  function tip(i) {
    var commit = commits[data.commits[i]], head = document.createElement("b"), texts = labels();
    head.textContent = commit[0].slice(0, 8) + "  " + commit[1];
    return [head, span(commit[2], "message")].concat(chosen.map(function (n, slot) {
      var line = span("", "line"), swatch = span("", "swatch"), v = data.series[n].value[i];
      swatch.style.borderTop = "3px " + (slot % 8 < 4 ? "solid " : "dashed ") + C.colour(slot);
      line.append(swatch, span(shown(v === null ? null : v / base(n)), "value"), " " + texts[slot]);
      return line;
    }));
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
  each.addEventListener("click", function () { isEach = !isEach; each.setAttribute("aria-pressed", isEach); chart.draw(); read(last); });
  addEventListener("hashchange", function () { var next = fromHash(); if (next.length) choose(next); });
  document.addEventListener("gcbench-theme", paint);
  var first = fromHash();
  choose(first.length ? first : usual());
  chart = C.make(document.getElementById("chart"), {
    options: options, data: values, read: read, tip: tip, least: 4,
    edge: function (x, end) { return end ? Math.max(x.length - 1, 0) + 0.5 : -0.5; },
    open: function (i) { location.href = "../commit/" + encodeURIComponent(commits[data.commits[i]][4]) + ".html"; },
  });
})();
