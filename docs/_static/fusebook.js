// What scrolls must be reachable from the keyboard.
"use strict";

(function () {
  const SCROLLING = "pre, .table-wrapper, .equation-maths";

  function refresh() {
    document.querySelectorAll(SCROLLING).forEach(function (block) {
      if (block.scrollWidth > block.clientWidth ||
          block.scrollHeight > block.clientHeight + 1) {
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

// A kernel beside its code: a line and its counterparts are marked together.
(function () {
  function keys(line) {
    return line ? line.dataset.at.split(" ") : [];
  }

  // Within its pane alone: the page stays where it is.
  function reveal(line) {
    const pane = line.closest(".kernel-pane");
    const box = pane.getBoundingClientRect();
    const at = line.getBoundingClientRect();
    if (at.top < box.top || at.bottom > box.bottom) {
      pane.scrollTop += at.top - box.top - box.height / 3;
    }
  }

  function set_up(view) {
    const lines = Array.from(view.querySelectorAll("[data-at]"));

    function counterparts(line) {
      const own = keys(line);
      return lines.filter(function (other) {
        return keys(other).some(function (key) { return own.includes(key); });
      });
    }

    function mark(line) {
      const lit = line ? counterparts(line) : [];
      lines.forEach(function (other) {
        other.classList.toggle("lit", lit.includes(other));
      });
      const other = lit.find(function (each) {
        return each.closest(".kernel-pane") !== line.closest(".kernel-pane") &&
               each.getClientRects().length > 0;
      });
      if (other) reveal(other);
      return other;
    }

    function line_of(event) {
      return event.target.closest("[data-at]");
    }

    view.addEventListener("mouseover", function (event) { mark(line_of(event)); });
    view.addEventListener("mouseleave", function () {
      mark(view.contains(document.activeElement)
        ? document.activeElement.closest("[data-at]") : null);
    });
    view.addEventListener("focusin", function (event) { mark(line_of(event)); });
    view.addEventListener("focusout", function () { mark(null); });
    view.addEventListener("click", function (event) {
      const other = event.target.closest("a") && mark(line_of(event));
      if (!other) return;
      event.preventDefault();
      other.querySelector("a").focus({ preventScroll: true });
    });
    view.addEventListener("keydown", function (event) {
      const down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const link = document.activeElement.closest(".kernel-line a");
      if (!down || !link) return;
      const links = Array.from(
        link.closest(".kernel-pane").querySelectorAll(".kernel-line a"));
      const next = links[links.indexOf(link) + down];
      event.preventDefault();
      if (next) next.focus();
    });
  }

  document.addEventListener("DOMContentLoaded", function () {
    document.querySelectorAll(".kernel-view").forEach(set_up);
  });
})();

// On paper every fold is open; afterwards it is again as it was.
(function () {
  let opened = [];
  window.addEventListener("beforeprint", function () {
    opened = Array.from(document.querySelectorAll("details:not([open])"));
    opened.forEach(function (fold) { fold.open = true; });
  });
  window.addEventListener("afterprint", function () {
    opened.forEach(function (fold) { fold.open = false; });
    opened = [];
  });
})();

// The other language begins where the reader is: at the last place that has a name.
(function () {
  function place() {
    const top = document.documentElement.clientHeight / 4;
    let found = "";
    document.querySelectorAll("article section[id], article dt[id]").forEach(function (each) {
      if (each.getClientRects().length > 0 &&
          each.getBoundingClientRect().top <= top) {
        found = each.id;
      }
    });
    return window.scrollY > 0 && found ? "#" + found : "";
  }

  document.addEventListener("click", function (event) {
    const link = event.target.closest("a.language");
    if (!link) return;
    const address = new URL(link.href);
    address.search = window.location.search;
    address.hash = place();
    link.href = address.href;
  });
})();
