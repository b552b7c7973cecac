// The steps of a trial over time; collections in three lanes below, full ones through the steps too.
(function () {
  "use strict";
  var data = window.gcbench.timeline, C = gcbenchChart, F = gcbenchFormat, events = data.collections;
  var readout = document.getElementById("readout"), COLOURS = ["#56b4e9", "#e69f00", "#d55e00"];
  var n = data.start.length, host = data.length.map(function (v, i) { return Math.max(v - data.phases.wait[i], 0); });
  var sorted = data.length.slice().sort(function (a, b) { return a - b; });
  var isLog = sorted[n - 1] > 20 * Math.max(sorted[n >> 1], 1e-9) && sorted[0] > 0;
  function floor(v) { return isLog ? Math.max(v, sorted[0] / 100, 1e-6) : v; }
  function ms(v) { return F.seconds(v / 1000); }
  function options() {
    var steps = uPlot.paths.stepped({ align: 1 }), lowest = 0;
    return {
      scales: { x: { time: false, auto: false }, y: { distr: isLog ? 3 : 1, log: 10, range: function (u, min, max) {
        if (min === null || max === null) return [isLog ? 0.1 : 0, 1];
        lowest = isLog ? min : 0;
        if (isLog) return [min / Math.pow(max / min, 0.3) / 1.2, max * 1.3];
        return [-0.25 * max, 1.06 * max || 1];
      } } },
      axes: [
        C.axis({ space: 90, values: function (u, splits) { return splits.map(ms); } }),
        C.axis({ size: 76, values: function (u, splits) { return splits.map(function (s) { return s === null || s < lowest ? "" : ms(s); }); } }),
      ],
      series: [{}, { stroke: C.css("--text"), width: 1.25, paths: steps, points: { show: false } },
        { stroke: "#009e73", width: 1.25, paths: steps, points: { show: false } }],
      hooks: { drawAxes: [fullPasses], draw: [lanes] },
    };
  }
  function each(u, draw) {
    var k = u.bbox.width / (u.scales.x.max - u.scales.x.min), left = u.bbox.left, right = left + u.bbox.width;
    for (var i = 0; i < events.start.length; i++) {
      var a = left + (events.start[i] - u.scales.x.min) * k, b = a + events.length[i] * k;
      if (b >= left && a <= right) draw(Math.max(a, left), Math.max(Math.min(b, right) - Math.max(a, left), 1.5), events.generation[i]);
    }
  }
  function fullPasses(u) {
    u.ctx.save();
    u.ctx.fillStyle = C.alpha(COLOURS[2], 0.18);
    each(u, function (x, width, generation) { if (generation === 2) u.ctx.fillRect(x, u.bbox.top, width, u.bbox.height); });
    u.ctx.restore();
  }
  function lanes(u) {
    var h = u.bbox.height * 0.055, bottom = u.bbox.top + u.bbox.height;
    u.ctx.save();
    each(u, function (x, width, generation) {
      u.ctx.fillStyle = COLOURS[generation] || COLOURS[2];
      u.ctx.fillRect(x, bottom - (3 - generation) * h * 1.15, width, h);
    });
    u.ctx.restore();
  }
  function read(i) {
    i = Math.min(i, n - 1);
    var end = data.start[i] + data.length[i], within = [], line = document.createElement("p"), more = document.createElement("p");
    for (var k = 0; k < events.start.length; k++) {
      if (events.start[k] < end && events.start[k] + events.length[k] > data.start[i]) {
        var role = data.roles.length > 1 ? (data.roles[events.process[k]] || "") + " " : "";
        within.push(role + "g" + events.generation[k] + " " + ms(events.length[k]));
      }
    }
    line.textContent = "Step " + i.toLocaleString("en-US") + ", " + ms(data.start[i]) + " from the start: " + ms(data.length[i]) + ", " + data.rows[i].toLocaleString("en-US") + " requests; " +
      Object.keys(data.phases).map(function (name) { return name + " " + ms(data.phases[name][i]); }).join(", ") + ".";
    more.textContent = within.length ? "Collections: " + within.slice(0, 8).join(", ") + (within.length > 8 ? " and " + (within.length - 8) + " more" : "") + "." : "No collection in it.";
    readout.replaceChildren(line, more);
  }
  C.make(document.getElementById("chart"), {
    options: options, read: read, least: 0.5,
    data: function () { return [data.start.concat([data.start[n - 1] + data.length[n - 1]]), data.length.concat([data.length[n - 1]]).map(floor), host.concat([host[n - 1]]).map(floor)]; },
    edge: function (x, end) { return end ? x[n] : x[0]; },
  });
  read(0);
})();
