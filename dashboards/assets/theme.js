// Light or dark: the reader's choice, else the system's. Loaded before anything is drawn.
(function () {
  "use strict";
  var root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  function kept() { try { return localStorage.getItem("gcbench-theme"); } catch (e) { return null; } }
  function isDark() { var t = root.dataset.theme; return t ? t === "dark" : dark.matches; }
  if (kept() === "dark" || kept() === "light") root.dataset.theme = kept();
  document.addEventListener("DOMContentLoaded", function () {
    var button = document.getElementById("theme");
    function name() { button.textContent = isDark() ? "Light" : "Dark"; button.setAttribute("aria-label", "Switch to " + button.textContent.toLowerCase() + " colours"); }
    function changed() { name(); document.dispatchEvent(new Event("gcbench-theme")); }
    button.hidden = false;
    button.addEventListener("click", function () {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("gcbench-theme", root.dataset.theme); } catch (e) { /* private */ }
      changed();
    });
    dark.addEventListener("change", changed);
    name();
  });
})();
