// What each page has: light or dark, the reader's choice, else the system's, set before anything is
// drawn; and the menu, which on a phone is folded.
(function () {
  "use strict";
  var root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  function kept() { try { return localStorage.getItem("gcbench-theme"); } catch (e) { return null; } }
  function isDark() { var t = root.dataset.theme; return t ? t === "dark" : dark.matches; }
  root.classList.add("js");
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
    var menu = document.getElementById("menu"), pages = document.getElementById("pages");
    function open(is) { menu.setAttribute("aria-expanded", is); pages.classList.toggle("open", is); }
    menu.hidden = false;
    menu.addEventListener("click", function () { open(menu.getAttribute("aria-expanded") !== "true"); });
    pages.addEventListener("keydown", function (event) { if (event.key === "Escape") { open(false); menu.focus(); } });
    open(false);
  });
})();
