// Numbers as harness/format.py writes them; a test holds the two against each other.
var gcbenchFormat = (function () {
  "use strict";
  var MISSING = "–";
  function known(v) { return typeof v === "number" && isFinite(v); }
  function fixed(v, decimals) {
    return v.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals, roundingMode: "halfEven" });
  }
  function number(v) {
    if (!known(v)) return MISSING;
    if (v === 0) return "0";
    var rounded = Math.abs(v) < 1000 ? Number(v.toExponential(2)) : Math.round(v);
    return fixed(rounded, Math.min(100, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded)) + 1e-12))));
  }
  function seconds(v) {
    if (!known(v)) return MISSING;
    if (v === 0) return "0 s";
    var a = Math.abs(v);
    var unit = a >= 1 ? [1, "s"] : a >= 1e-3 ? [1e-3, "ms"] : a >= 1e-7 ? [1e-6, "µs"] : [1e-9, "ns"];
    return number(v / unit[0]) + " " + unit[1];
  }
  function count(v) {
    if (!known(v)) return MISSING;
    if (v === Math.round(v)) return fixed(v, 0);
    return Math.abs(v) >= 100 ? fixed(v, 1) : number(v);
  }
  function percent(v) {
    if (!known(v)) return MISSING;
    return fixed(100 * v, Math.abs(v) >= 0.00995 || v === 0 ? 1 : 2) + " %";
  }
  function bytes(v) {
    if (!known(v)) return MISSING;
    var units = ["B", "KiB", "MiB"];
    for (var i = 0; i < 3; i++) {
      if (Math.abs(v) < 1023.5) return number(v) + " " + units[i];
      v /= 1024;
    }
    return number(v) + " GiB";
  }
  function withUnit(v, unit) {
    if (!known(v)) return MISSING;
    if (unit === "s") return seconds(v);
    if (unit === "B") return bytes(v);
    if (unit.indexOf("share") === 0) return percent(v);
    return ((/\/s$/.test(unit) ? number(v) : count(v)) + " " + unit).trim();
  }
  // Whether a unit is a word that need not stand at each value, as seconds and bytes do; and a value without it.
  function plain(unit) { return unit !== "" && ["s", "B", "B/s", "FLOP/s"].indexOf(unit) < 0 && unit.indexOf("share") !== 0; }
  function bare(v, unit) { var text = withUnit(v, unit); return plain(unit) && text.endsWith(" " + unit) ? text.slice(0, -unit.length - 1) : text; }
  // A ratio as a change, with its sign: "+12.3 %".
  function change(ratio) { return known(ratio) ? (ratio >= 1 ? "+" : "") + percent(ratio - 1) : MISSING; }
  return { number: number, seconds: seconds, withUnit: withUnit, bare: bare, plain: plain, change: change, MISSING: MISSING };
})();
