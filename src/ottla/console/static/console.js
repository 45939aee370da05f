"use strict";
// Pages work without this file. It refreshes what `data-live` marks, and moves the focus with the keyboard.
(() => {
  const REFRESH_MS = 5000;

  async function refresh() {
    const marked = document.querySelectorAll("[data-live]");
    if (!marked.length || document.hidden || document.querySelector("[data-live] details[open], [data-live] :focus")) return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const each of marked) {
        const other = fresh.querySelector(`[data-live="${CSS.escape(each.dataset.live)}"]`);
        if (other) each.replaceWith(document.importNode(other, true));
      }
      reach();
    } catch { /* the next turn tries again */ }
  }
  setInterval(refresh, REFRESH_MS);

  // A table that is wider than the window is scrolled with the arrow keys.
  function reach() {
    for (const each of document.querySelectorAll(".scroll")) {
      if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
      else each.removeAttribute("tabindex");
    }
  }
  reach();
  window.addEventListener("resize", reach);

  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input, textarea, select") && !event.ctrlKey && !event.metaKey) {
      const search = document.querySelector("input[type=search]");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    }
  });
})();
