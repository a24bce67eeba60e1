// Text that scrolls sideways must be reachable from the keyboard.
"use strict";

(function () {
  function refresh() {
    document.querySelectorAll("pre").forEach(function (block) {
      if (block.scrollWidth > block.clientWidth) {
        block.tabIndex = 0;
      } else {
        block.removeAttribute("tabindex");
      }
    });
  }
  document.addEventListener("DOMContentLoaded", refresh);
  document.addEventListener("toggle", refresh, true);
  document.addEventListener("change", refresh);
  window.addEventListener("resize", refresh);
})();
