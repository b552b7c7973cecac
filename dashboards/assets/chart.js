// What the charts share: colours of the theme, zoom, keys, size. Built on uPlot.
var gcbenchChart = (function () {
  "use strict";
  // Okabe and Ito's colours, which colour-blind readers tell apart; from the fifth on dashed too.
  var PALETTE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "", "#8a7a00"];
  function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function colour(i) { return PALETTE[i % 8] || css("--text"); }
  function dash(i) { return i % 8 < 4 ? [] : [8, 4]; }
  function alpha(hex, a) {
    var v = hex.length === 4 ? hex.replace(/[0-9a-f]/gi, "$&$&") : hex, n = parseInt(v.slice(1), 16);
    return "rgba(" + (n >> 16) + "," + ((n >> 8) & 255) + "," + (n & 255) + "," + a + ")";
  }
  function height() { return innerWidth < 640 ? 260 : 360; }
  // wanted: {options(), data(), read(i), open(i), tip(i), height()}, the last three not needed. Returns
  // {draw(anew), plot()}: drawn anew, all of it is shown.
  function make(box, wanted) {
    var plot = null, at = null, fixed = null, tip = document.createElement("div"), tall = wanted.height || height;
    tip.className = "tip"; tip.hidden = true; tip.setAttribute("aria-hidden", "true");
    function xs() { return plot.data[0]; }
    function whole() { plot.setScale("x", { min: wanted.edge(xs(), 0), max: wanted.edge(xs(), 1) }); }
    function draw(anew) {
      var old = plot && anew !== true && [plot.scales.x.min, plot.scales.x.max];
      if (plot) plot.destroy();
      var options = wanted.options();
      options.width = Math.max(240, box.clientWidth);
      options.height = tall();
      options.legend = { show: false };
      options.cursor = { y: false, points: { size: 7 }, drag: { x: true, y: false, dist: 5 } };
      options.hooks = options.hooks || {};
      options.hooks.setCursor = [function (u) {
        if (u.cursor.left >= 0 && u.cursor.idx !== null && u.cursor.idx !== undefined) { at = u.cursor.idx; wanted.read(at); point(u, true); }
        else point(u, false);
      }];
      options.hooks.setScale = [function (u, key) { if (key === "x") box.dataset.x = u.scales.x.min + " " + u.scales.x.max; }];
      plot = new uPlot(options, wanted.data(), box);
      if (old && old[0] !== null && old[0] !== undefined) plot.setScale("x", { min: old[0], max: old[1] });
      else whole();
    }
    // What lies under the pointer, beside it; the same stands below the chart for who has none.
    function point(u, is) {
      if (!wanted.tip) return;
      tip.hidden = !is;
      if (!is) return;
      tip.replaceChildren.apply(tip, wanted.tip(at));
      if (tip.parentNode !== u.over) u.over.append(tip);
      var x = u.cursor.left, right = x + 16 + tip.offsetWidth > u.over.clientWidth;
      tip.style.left = Math.max(0, right ? x - 16 - tip.offsetWidth : x + 16) + "px";
    }
    function go(i) {
      var x = xs(), min = plot.scales.x.min, max = plot.scales.x.max, half = (max - min) / 2;
      at = Math.min(x.length - 1, Math.max(0, i));
      if (x[at] < min || x[at] > max) plot.setScale("x", { min: x[at] - half, max: x[at] + half });
      requestAnimationFrame(function () { plot.setCursor({ left: plot.valToPos(x[at], "x"), top: 10 }); wanted.read(at); });
    }
    function zoom(factor) {
      var x = xs(), low = wanted.edge(x, 0), high = wanted.edge(x, 1), min = plot.scales.x.min, max = plot.scales.x.max;
      var middle = at !== null && x[at] >= min && x[at] <= max ? x[at] : (min + max) / 2;
      var half = Math.max(wanted.least, (max - min) * factor) / 2;
      if (half * 2 >= high - low) return whole();
      middle = Math.min(high - half, Math.max(low + half, middle));
      plot.setScale("x", { min: middle - half, max: middle + half });
    }
    box.addEventListener("blur", function () { tip.hidden = true; });
    box.addEventListener("keydown", function (event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      var step = event.shiftKey ? 10 : 1, last = xs().length - 1, here = at === null ? last : at;
      var keys = {
        ArrowLeft: function () { go(at === null ? last : here - step); }, ArrowRight: function () { go(at === null ? 0 : here + step); },
        Home: function () { go(0); }, End: function () { go(last); },
        "+": function () { zoom(0.5); }, "=": function () { zoom(0.5); }, "-": function () { zoom(2); }, "0": whole,
        Enter: function () { if (wanted.open) wanted.open(here); },
      };
      if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
    });
    [["in", function () { zoom(0.5); }], ["out", function () { zoom(2); }], ["all", whole]].forEach(function (pair) {
      var button = document.getElementById(pair[0]);
      if (button) button.addEventListener("click", pair[1]);
    });
    addEventListener("resize", function () {
      clearTimeout(fixed);
      fixed = setTimeout(function () { plot.setSize({ width: Math.max(240, box.clientWidth), height: tall() }); }, 60);
    });
    document.addEventListener("gcbench-theme", draw);
    draw();
    return { draw: draw, plot: function () { return plot; } };
  }
  function axis(more) {
    var made = { stroke: css("--faint"), grid: { stroke: css("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    Object.keys(more).forEach(function (key) { made[key] = more[key]; });
    return made;
  }
  return { make: make, axis: axis, css: css, colour: colour, dash: dash, alpha: alpha };
})();
