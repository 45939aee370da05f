"use strict";
// The records page works without this file. It continues a search by itself, with progress and a stop button, and shows new
// records as they come. Rows arrive as HTML that the server has escaped.
(() => {
  const ROWS_MAX = 1000;
  const HIDDEN_MS_MAX = 5 * 60 * 1000;
  const controls = document.getElementById("controls");
  const status = document.getElementById("status");
  const rows = document.getElementById("rows");
  if (!controls || !window.EventSource) return;
  let stream = null;

  function button(label, action, kind) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = label;
    if (kind) made.className = kind;
    made.addEventListener("click", action);
    return made;
  }

  function fill(html, first) {
    const held = document.createElement("template");
    held.innerHTML = html;
    const added = held.content.childElementCount;
    if (first) rows.prepend(...[...held.content.children].reverse());
    else rows.append(held.content);
    while (rows.childElementCount > ROWS_MAX) (first ? rows.lastElementChild : rows.firstElementChild).remove();
    if (added) document.getElementById("none")?.remove();
  }

  const count = (number) => Math.round(number).toLocaleString("en-US");
  const stop = button("Stop", () => close("stopped"), "danger");
  const live = button("Live", () => tail());
  let watched = null;

  function close(why) {
    if (!stream) return;
    stream.close();
    stream = null;
    stop.remove();
    document.getElementById("bar")?.remove();
    live.hidden = false;
    live.setAttribute("aria-pressed", "false");
    document.body.classList.remove("is-live");
    if (why) status.textContent = status.textContent.replace(/ \(.*\)$|$/, ` (${why})`);
  }

  function open(url) {
    close();
    stream = new EventSource(url);
    live.hidden = true;
    controls.prepend(stop);
    stream.addEventListener("failure", (event) => close(JSON.parse(event.data).text));
    stream.addEventListener("end", () => close(""));
    return stream;
  }

  function search() {
    const before = Number(controls.dataset.searched), found = Number(controls.dataset.found), of = Number(controls.dataset.of);
    const more = document.getElementById("continue");
    more?.remove();
    const address = new URL(controls.dataset.search, location.href);
    address.searchParams.set("limit", Math.max(1, Number(controls.dataset.limit) - found));
    const source = open(address);
    const bar = document.createElement("progress");
    bar.id = "bar";
    bar.max = Math.max(1, of);
    bar.value = before;
    bar.setAttribute("aria-label", "Records searched");
    controls.prepend(bar);
    source.addEventListener("rows", (event) => fill(JSON.parse(event.data).html, false));
    source.addEventListener("progress", (event) => {
      const told = JSON.parse(event.data);
      bar.value = before + told.records;
      const speed = told.seconds > 0.1 ? `, ${count(told.bytes / told.seconds / 1e6)} MB/s` : "";
      status.textContent = `${count(before + told.records)} of ${count(of)} records searched${speed}, ${count(found + told.matched)} found`;
      if (told.at && more) {
        const next = new URL(more.href);
        next.searchParams.set("at", told.at);
        more.href = next;
      } else if (!told.at) more?.removeAttribute("href");
    });
    stop.addEventListener("click", () => { if (more?.href) controls.append(more); }, { once: true });
    source.addEventListener("end", () => { if (more?.href) controls.append(more); });
  }

  function tail() {
    let shown = 0, skipped = 0;
    const source = open(controls.dataset.tail);
    document.body.classList.add("is-live");
    status.textContent = "Connecting";
    source.addEventListener("begin", () => { if (!shown && !skipped) status.textContent = "Waiting for new records"; });
    source.addEventListener("rows", (event) => {
      const told = JSON.parse(event.data);
      fill(told.html, true);
      shown += told.count;
      skipped += told.skipped;
      status.textContent = `${count(shown)} new${skipped ? `, ${count(skipped)} skipped` : ""}`;
    });
  }

  document.addEventListener("visibilitychange", () => {
    clearTimeout(watched);
    if (document.hidden) watched = setTimeout(() => close("stopped: this tab was hidden for five minutes"), HIDDEN_MS_MAX);
  });
  window.addEventListener("pagehide", () => close());

  controls.append(live);
  if (controls.dataset.goesOn === "yes") search();
})();
