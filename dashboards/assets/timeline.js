// The steps of a trial over time; below them a lane for each phase and for each process that
// collected. Another trial can be laid over it: its steps as a line, its lanes under the first's.
(function () {
  "use strict";
  var box = document.getElementById("chart"), own = window.gcbench["timeline " + box.dataset.page], other = null;
  var C = gcbenchChart, F = gcbenchFormat, PHASES = Object.keys(own.phases);
  var readout = document.getElementById("readout"), select = document.getElementById("other"), overlaid = document.getElementById("overlaid");
  var COLOURS = ["#56b4e9", "#e69f00", "#d55e00"], HOST = "#009e73", OTHER = "#cc79a7", LANE = 17, GAP = 18;
  function ms(v) { return F.seconds(v / 1000); }
  function known(data) {
    var n = data.start.length, sorted = data.length.slice().sort(function (a, b) { return a - b; });
    return { data: data, n: n, least: sorted[0], middle: sorted[n >> 1], most: sorted[n - 1],
      host: data.length.map(function (v, i) { return Math.max(v - data.phases.wait[i], 0); }) };
  }
  var first = known(own), second = null;
  function both() { return second ? [first, second] : [first]; }
  function roles() {
    var found = [];
    both().forEach(function (each) { each.data.roles.forEach(function (role) { if (found.indexOf(role) < 0) found.push(role); }); });
    return found.length ? found : ["engine"];
  }
  function laneNames() { return PHASES.concat(roles().map(function (role) { return "gc: " + role; })); }
  function lanesHeight() { return laneNames().length * LANE + GAP; }
  function tall() { return (innerWidth < 640 ? 240 : 320) + lanesHeight(); }
  function logarithmic() { return both().every(function (each) { return each.least > 0; }) && both().some(function (each) { return each.most > 20 * Math.max(each.middle, 1e-9); }); }
  function options() {
    var steps = uPlot.paths.stepped({ align: 1 }), lowest = 0, isLog = logarithmic();
    var line = function (stroke) { return { stroke: stroke, width: 1.25, paths: steps, points: { show: false } }; };
    return {
      scales: { x: { time: false, auto: false }, y: { distr: isLog ? 3 : 1, log: 10, range: function (u, min, max) {
        var share = lanesHeight() / Math.max(u.height - 40, lanesHeight() * 1.5), room = share / (1 - share);
        if (min === null || max === null) return [isLog ? 0.1 : 0, 1];
        lowest = isLog ? min : 0;
        if (isLog) return [min / Math.pow(max * 1.3 / min, room), max * 1.3];
        return [-room * 1.06 * max, 1.06 * max || 1];
      } } },
      axes: [
        C.axis({ space: 90, values: function (u, splits) { return splits.map(ms); } }),
        C.axis({ size: 84, grid: { show: false }, values: function (u, splits) { return splits.map(function (s) { return s === null || s < lowest ? "" : ms(s); }); } }),
      ],
      series: [{}, line(C.css("--text")), line(HOST), line(OTHER)],
      hooks: { drawAxes: [fullPasses], draw: [lanes] },
    };
  }
  function scale(u) {
    var k = u.bbox.width / (u.scales.x.max - u.scales.x.min), left = u.bbox.left, right = left + u.bbox.width, min = u.scales.x.min;
    // Draws what lies between a and b, at least `least` pixels wide, where that can be seen.
    return function (a, b, least, draw) {
      var from = left + (a - min) * k, to = left + (b - min) * k;
      if (to < left || from > right) return;
      from = Math.max(from, left);
      draw(from, Math.max(Math.min(to, right) - from, least));
    };
  }
  function fullPasses(u) {
    var events = own.collections, put = scale(u);
    u.ctx.save();
    u.ctx.fillStyle = C.alpha(COLOURS[2], 0.18);
    events.start.forEach(function (at, i) {
      if (events.generation[i] === 2) put(at, at + events.length[i], 1.5, function (x, width) { u.ctx.fillRect(x, u.bbox.top, width, u.bbox.height); });
    });
    u.ctx.restore();
  }
  function lanes(u) {
    var ratio = devicePixelRatio || 1, ctx = u.ctx, put = scale(u), names = laneNames(), all = roles(), lane = LANE * ratio;
    var top = u.bbox.top + u.bbox.height - names.length * lane, high = (lane - 3 * ratio) / both().length;
    ctx.save();
    ctx.fillStyle = C.css("--page");
    ctx.fillRect(u.bbox.left, top - ratio, u.bbox.width, names.length * lane + ratio);
    ctx.fillStyle = ctx.strokeStyle = C.css("--faint");
    ctx.font = 11 * ratio + "px system-ui, sans-serif"; ctx.textAlign = "right"; ctx.textBaseline = "middle";
    names.forEach(function (name, row) { ctx.fillText(name, u.bbox.left - 6 * ratio, top + (row + 0.5) * lane - ratio, 76 * ratio); });
    ctx.beginPath(); ctx.moveTo(u.bbox.left, top - GAP / 2 * ratio); ctx.lineTo(u.bbox.left + u.bbox.width, top - GAP / 2 * ratio);
    ctx.globalAlpha = 0.4; ctx.lineWidth = ratio; ctx.stroke(); ctx.globalAlpha = 1;
    both().forEach(function (each, which) {
      var data = each.data, events = data.collections;
      ctx.fillStyle = which ? OTHER : C.css("--text");
      PHASES.forEach(function (name, row) {
        var y = top + row * lane + which * high, pixels = new Map();
        data.start.forEach(function (start, i) {
          var from = start;
          for (var k = 0; k < row; k++) from += data.phases[PHASES[k]][i];
          // A lane of thousands of steps has less than a pixel for each: how full a pixel is, is its shade.
          put(from, from + data.phases[name][i], 0, function (x, width) {
            for (var at = Math.floor(x); at < x + width; at++) pixels.set(at, (pixels.get(at) || 0) + Math.min(at + 1, x + width) - Math.max(at, x));
          });
        });
        pixels.forEach(function (full, x) { ctx.globalAlpha = Math.min(1, 0.08 + 0.82 * full); ctx.fillRect(x, y, 1, high - ratio); });
      });
      ctx.globalAlpha = 1;
      events.start.forEach(function (at, i) {
        var row = PHASES.length + Math.max(all.indexOf(data.roles[events.process[i]]), 0);
        ctx.fillStyle = COLOURS[events.generation[i]] || COLOURS[2];
        put(at, at + events.length[i], 1.5 * ratio, function (x, width) { ctx.fillRect(x, top + row * lane + which * high, width, high - ratio); });
      });
    });
    ctx.restore();
  }
  function span(text, name) { var made = document.createElement("span"); made.textContent = text; if (name) made.className = name; return made; }
  function told(each, i) {
    var data = each.data, end = data.start[i] + data.length[i], within = [], events = data.collections;
    for (var k = 0; k < events.start.length; k++) {
      if (events.start[k] < end && events.start[k] + events.length[k] > data.start[i]) {
        var role = data.roles.length > 1 ? (data.roles[events.process[k]] || "") + " " : "";
        within.push(role + "g" + events.generation[k] + " " + ms(events.length[k]));
      }
    }
    return ["Step " + i.toLocaleString("en-US") + ", " + ms(data.start[i]) + " from the start: " + ms(data.length[i]) + ", " + data.rows[i].toLocaleString("en-US") + " requests; " +
      PHASES.map(function (name) { return name + " " + ms(data.phases[name][i]); }).join(", ") + ".",
      within.length ? "Collections: " + within.slice(0, 8).join(", ") + (within.length > 8 ? " and " + (within.length - 8) + " more" : "") + "." : "No collection in it."];
  }
  function read(place) {
    var x = xs()[place], lines = [];
    both().forEach(function (each, which) {
      var line = document.createElement("p"), words = told(each, at(each.data.start, x));
      if (second) line.append(span((which ? select.selectedOptions[0].textContent : box.dataset.title) + ": ", "faint"));
      line.append(words.join(" "));
      lines.push(line);
    });
    readout.replaceChildren.apply(readout, lines);
  }
  // The last of sorted starts that is not after x.
  function at(starts, x) {
    var low = 0, high = starts.length - 1;
    while (low < high) { var middle = (low + high + 1) >> 1; if (starts[middle] <= x) low = middle; else high = middle - 1; }
    return low;
  }
  // Whether the next step is so late, or there is none, that the line ends with this one.
  function isLate(each, i) {
    var end = each.data.start[i] + each.data.length[i];
    return i + 1 === each.n || each.data.start[i + 1] - end > 10 * Math.max(each.middle, 1e-3);
  }
  // Where its lines turn: at each step's start, and where a step is followed by nothing also at its end.
  function turns(each) {
    var found = each.data.start.slice();
    for (var i = 0; i < each.n; i++) {
      if (isLate(each, i)) { var end = each.data.start[i] + each.data.length[i]; found.push(end, end + 1e-6); }
    }
    return found;
  }
  function xs() { return table()[0]; }
  // uPlot has one row of places for all lines: with two trials, those of both.
  var kept = null;
  function table() {
    if (kept) return kept;
    var isLog = logarithmic(), floor = function (v) { return isLog ? Math.max(v, first.least / 100, 1e-6) : v; };
    var places = Array.from(new Set([].concat.apply([], both().map(turns)))).sort(function (a, b) { return a - b; });
    function along(each, values) {
      return places.map(function (x) {
        var i = each ? at(each.data.start, x) : 0;
        return !each || (isLate(each, i) && x > each.data.start[i] + each.data.length[i]) ? null : floor(values[i]);
      });
    }
    kept = [places, along(first, first.data.length), along(first, first.host), along(second, second && second.data.length)];
    return kept;
  }
  var chart = C.make(box, {
    options: options, read: read, least: 0.5, height: tall,
    data: table, edge: function (x, end) { return end ? x[x.length - 1] : x[0]; },
  });
  function overlay(page) {
    second = page ? known(window.gcbench["timeline " + page]) : null;
    kept = null;
    overlaid.hidden = !second;
    document.getElementById("other-title").textContent = second ? select.selectedOptions[0].textContent : "";
    chart.draw(true);
    read(0);
  }
  function load(page) {
    if (!page || window.gcbench["timeline " + page]) return overlay(page);
    var script = document.createElement("script");
    script.src = "../data/timeline/" + encodeURIComponent(page) + ".js";
    script.onload = function () { if (select.value === page) overlay(page); };
    script.onerror = function () { readout.textContent = "The figures of that trial are not there: " + script.src; };
    document.head.append(script);
  }
  if (select) {
    select.addEventListener("change", function () { load(select.value); });
    load(select.value);
  }
  read(0);
})();
