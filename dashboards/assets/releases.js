// vLLM's releases along each metric: a line a policy, the spread of samples, what came in where.
(function () {
  "use strict";
  var studies = window.gcbench.releases, C = gcbenchChart, F = gcbenchFormat;
  function line(k) { return "3px " + (k % 8 < 4 ? "solid " : "dashed ") + C.colour(k); }
  function swatches() {
    document.querySelectorAll("[data-line]").forEach(function (each) { each.style.borderTop = line(Number(each.dataset.line)); });
  }
  function span(text, name) { var made = document.createElement("span"); made.textContent = text; if (name) made.className = name; return made; }
  function unit(text) { return /^(s$|B$|share)/.test(text) ? text : ""; }
  function draw(box) {
    var study = studies[box.dataset.study], chart = study.charts[box.dataset.chart], releases = study.releases;
    var readout = document.getElementById(box.getAttribute("aria-describedby")), isMain = box.dataset.chart === "0";
    var count = study.lines.length, xs = releases.map(function (_, i) { return i; });
    // Where lines meet, the later ones lie thinner on those before, so that all are seen.
    var order = study.lines.map(function (_, k) { return k; });
    function thick(k) { return 1.5 + Math.min(1.5 * (count - 1 - k), 6); }
    function tall() { return isMain ? (innerWidth < 640 ? 280 : 380) : 230; }
    function top() {
      var most = 0, least = 0;
      order.forEach(function (k) {
        chart.value[k].forEach(function (v, i) {
          var ends = chart.spread[k][i] || [v, v];
          if (v !== null) { most = Math.max(most, ends[1]); least = Math.min(least, ends[0]); }
        });
      });
      var room = tall() - 50; // from 0, so that heights compare; above the lines the marks' words
      return [least * 1.1, (most || 1) * room / (room - (isMain ? 78 : 52))];
    }
    function options() {
      var ends = top();
      return {
        scales: { x: { time: false, auto: false }, y: { range: function () { return ends; } } },
        axes: [
          C.axis({ space: 46, incrs: [1, 2, 5, 10, 20], values: function (u, splits) { return splits.map(function (s) { return releases[s] ? releases[s][0] : ""; }); } }),
          C.axis({ size: 70, values: function (u, splits) { return splits.map(function (s) { return s === null ? "" : F.withUnit(s, unit(chart.unit)); }); } }),
        ],
        series: [{}].concat(order.map(function (k) {
          var c = C.colour(k);
          return { stroke: c, width: thick(k), dash: C.dash(k), spanGaps: true, points: { show: true, size: 4 + thick(k), stroke: c, fill: c } };
        })),
        hooks: { drawAxes: [marks], draw: [bars] },
      };
    }
    function shown(u, i) { return i >= u.scales.x.min && i <= u.scales.x.max; }
    function marks(u) {
      var ctx = u.ctx, ratio = devicePixelRatio || 1;
      ctx.save();
      ctx.strokeStyle = C.css("--faint"); ctx.lineWidth = ratio; ctx.textAlign = "right"; ctx.textBaseline = "bottom";
      var isRoomy = isMain && u.bbox.width / ratio / (u.scales.x.max - u.scales.x.min) > 16;
      releases.forEach(function (release, i) {
        var pulls = release[2];
        if (i === 0 || !pulls.length || !shown(u, i)) return; // what the first has, none is without
        var x = u.valToPos(i, "x", true), isTried = pulls[0][2];
        ctx.globalAlpha = isTried ? 1 : 0.55;
        ctx.setLineDash(isTried ? [] : [3 * ratio, 3 * ratio]);
        ctx.beginPath(); ctx.moveTo(x, u.bbox.top); ctx.lineTo(x, u.bbox.top + u.bbox.height); ctx.stroke();
        if (!isTried && !isRoomy) return;
        ctx.globalAlpha = 1;
        ctx.fillStyle = C.css(isTried ? "--text" : "--faint");
        ctx.font = (isTried ? "600 " : "") + 11 * ratio + "px system-ui, sans-serif";
        ctx.save();
        ctx.translate(x - 2 * ratio, u.bbox.top + 2 * ratio); ctx.rotate(-Math.PI / 2);
        ctx.fillText("#" + pulls[0][0] + (pulls.length > 1 && isRoomy ? " +" + (pulls.length - 1) : ""), 0, 0);
        ctx.restore();
      });
      ctx.restore();
    }
    function bars(u) {
      var ctx = u.ctx, ratio = devicePixelRatio || 1;
      ctx.save();
      ctx.lineWidth = 1.5 * ratio;
      order.forEach(function (k) {
        ctx.strokeStyle = C.colour(k);
        chart.spread[k].forEach(function (ends, i) {
          if (!ends || !shown(u, i)) return;
          var x = u.valToPos(i, "x", true) + (k - (count - 1) / 2) * 4 * ratio;
          ctx.beginPath(); ctx.moveTo(x, u.valToPos(ends[0], "y", true)); ctx.lineTo(x, u.valToPos(ends[1], "y", true)); ctx.stroke();
        });
      });
      ctx.restore();
    }
    function read(i) {
      var head = document.createElement("p"), list = document.createElement("ul"), pulls = releases[i][2];
      head.append(span(releases[i][0], "value"), span((releases[i][1] ? " " + releases[i][1] : "") + " ", "faint"));
      pulls.slice(0, 3).forEach(function (pull, n) { head.append(span((n ? "; " : "") + "#" + pull[0] + " " + pull[1], "message")); });
      if (pulls.length > 3) head.append(span("; and " + (pulls.length - 3) + " more", "faint"));
      study.lines.forEach(function (name, k) {
        var item = document.createElement("li"), swatch = span("", "swatch"), ends = chart.spread[k][i];
        swatch.style.borderTop = line(k);
        item.append(swatch, span(name + " "), span(F.withUnit(chart.value[k][i], chart.unit), "value"));
        if (ends) item.append(span(" (" + F.withUnit(ends[0], chart.unit) + " to " + F.withUnit(ends[1], chart.unit) + ")", "faint"));
        list.append(item);
      });
      readout.replaceChildren(head, list);
    }
    var made = C.make(box, {
      options: options, read: read, least: 3,
      height: tall,
      data: function () { return [xs].concat(order.map(function (k) { return chart.value[k]; })); },
      edge: function (x, end) { return end ? x.length - 0.5 : -0.5; },
      open: function (i) {
        var row = document.getElementById("release-" + box.dataset.study + "-" + i);
        if (row) { row.scrollIntoView({ block: "center" }); row.focus({ preventScroll: true }); }
      },
    });
    read(releases.length - 1);
    return made;
  }
  // A chart is drawn when it is first seen: in a section that is hidden it has no width.
  var drawn = new Map(), sizes = new ResizeObserver(function (entries) {
    entries.forEach(function (entry) {
      var box = entry.target;
      if (!box.clientWidth) return;
      if (!drawn.has(box)) drawn.set(box, draw(box));
      else if (drawn.get(box).plot().width !== Math.max(240, box.clientWidth)) drawn.get(box).draw();
    });
  });
  document.querySelectorAll("[data-chart]").forEach(function (box) { sizes.observe(box); });
  document.addEventListener("gcbench-theme", swatches);
  swatches();
})();
