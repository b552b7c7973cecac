// One of several sections by a select; without this script all of them are shown.
(function () {
  "use strict";
  function own(box, selector) {
    return Array.prototype.filter.call(box.querySelectorAll(selector), function (element) {
      return element.parentElement.closest("[data-switch]") === box;
    });
  }
  document.querySelectorAll("[data-switch]").forEach(function (box) {
    var label = own(box, ".choose")[0], select = label && label.querySelector("select");
    var sections = own(box, "[data-choice]");
    if (!select || sections.length < 2) return;
    label.hidden = false;
    function show() {
      sections.forEach(function (section) { section.hidden = section.dataset.choice !== select.value; });
    }
    select.addEventListener("change", show);
    show();
  });
})();
