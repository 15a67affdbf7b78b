// The list of runs and a run's page, kept live: every line once, in order, also after a lost connection.
"use strict";

const MOST_LINES = 1500;
const MOST_ROWS = 200;
const AGAIN_MILLISECONDS = [500, 1000, 2000, 5000];

function ago(words) {
  for (const time of words.querySelectorAll("time[data-ago]")) {
    const at = new Date(time.dateTime);
    const seconds = Math.max(0, (Date.now() - at) / 1000);
    const told = seconds < 60 ? Math.round(seconds) + " s"
      : seconds < 3600 ? Math.round(seconds / 60) + " min"
      : seconds < 172800 ? Math.round(seconds / 3600) + " h" : Math.round(seconds / 86400) + " days";
    time.title = at.toLocaleString();
    time.textContent = told + " ago";
  }
}

// A stream that is asked for again when it breaks, from where it was. It ends when the server says so.
function follow(address, hearings) {
  let failures = 0;
  function open() {
    const source = new EventSource(address());
    source.onopen = () => { failures = 0; document.dispatchEvent(new Event("podium:back")); };
    for (const [name, hear] of Object.entries(hearings)) {
      source.addEventListener(name, (event) => hear(event.data));
    }
    source.addEventListener("end", () => { source.close(); if (hearings.over) { hearings.over(); } });
    source.onerror = () => {
      // Requested anew and not by the browser itself, which gives up when the console is away for a moment.
      source.close();
      document.dispatchEvent(new Event("podium:lost"));
      setTimeout(open, AGAIN_MILLISECONDS[Math.min(failures++, AGAIN_MILLISECONDS.length - 1)]);
    };
  }
  open();
}

function parsed(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

function liveRun(page) {
  const run = page.dataset.run;
  let heard = Number(page.dataset.after);
  const log = () => document.getElementById("log");
  const lastShown = () => {
    const lines = log().querySelectorAll("li[data-seq]");
    return lines.length ? Number(lines[lines.length - 1].dataset.seq) : 0;
  };

  function append(html) {
    const list = log();
    if (!list) { return; }
    for (const line of [...parsed(html).querySelectorAll("li[data-seq]")]) {
      if (Number(line.dataset.seq) > lastShown()) { list.append(line); }
    }
    const lines = list.querySelectorAll("li[data-seq]");
    for (let i = 0; i < lines.length - MOST_LINES; i++) { lines[i].remove(); }
    if (document.getElementById("follow").checked) { list.scrollTop = list.scrollHeight; }
  }

  // One after the other, so that no line is asked for twice.
  let catching = Promise.resolve();
  function catchUp() {
    catching = catching.then(async () => {
      for (let more = true; more && log();) {
        const before = lastShown();
        const answer = await fetch("/runs/" + run + "/lines?after=" + before);
        if (!answer.ok) { return; }
        append(await answer.text());
        more = lastShown() - before >= 150;
      }
    }).catch(() => undefined);
  }

  function hearLine(html) {
    const line = parsed(html).querySelector("li[data-seq]");
    heard = Math.max(heard, Number(line.dataset.seq));
    if (!log()) { return; }
    if (Number(line.dataset.seq) > lastShown() + 1) { catchUp(); } else { append(html); }
  }

  function put(name, html) {
    const place = document.getElementById(name);
    place.pending = html;
    if (name !== "head" && place.contains(document.activeElement)) {
      // Somebody is at it: it is put there when they have left.
      place.addEventListener("focusout", () => setTimeout(() => {
        if (place.pending) { put(name, place.pending); }
      }), { once: true });
      return;
    }
    place.pending = null;
    const old = place.querySelector(".lanes .scroll");
    const left = old ? old.scrollLeft : 0;
    const atEnd = !old || left + old.clientWidth >= old.scrollWidth - 20;
    const open = place.querySelector("details[open]") !== null;
    place.replaceChildren(parsed(html));
    htmx.process(place);
    ago(place);
    const now = place.querySelector(".lanes .scroll");
    if (now) { now.scrollLeft = atEnd ? now.scrollWidth : left; }
    const table = place.querySelector("figcaption details");
    if (table) { table.open = open; }
  }

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id === "part") {
      const shown = (/part\/(\w+)/.exec(event.detail.pathInfo.requestPath) || [])[1];
      for (const link of document.querySelectorAll(".tabs a")) {
        if (link.href.endsWith("show=" + shown)) { link.setAttribute("aria-current", "true"); }
        else { link.removeAttribute("aria-current"); }
      }
      if (log()) { log().scrollTop = log().scrollHeight; catchUp(); }
    }
    if (event.target.id === "timeline") {
      const scroll = event.target.querySelector(".lanes .scroll");
      if (scroll && page.hasAttribute("data-live")) { scroll.scrollLeft = scroll.scrollWidth; }
    }
    if (event.target.id === "acts") { begin(); }
  });

  let following = false;
  function begin() {
    if (following) { return; }
    following = true;
    follow(() => "/live/runs/" + run + "?after=" + heard, {
      line: hearLine,
      gap: catchUp,
      head: (html) => put("head", html),
      acts: (html) => put("acts", html),
      timeline: (html) => put("timeline", html),
      over: () => { following = false; },
    });
  }

  if (log()) { log().scrollTop = log().scrollHeight; }
  if (page.hasAttribute("data-live")) { begin(); }
}

function liveList(rows) {
  const shown = () => [...rows.querySelectorAll("tr[data-run]")].slice(0, MOST_ROWS).map((row) => row.id).join(",");
  function row(html) {
    const made = parsed(html).querySelector("tr");
    ago(made);
    return made;
  }
  follow(() => "/live/runs?" + rows.dataset.live + "&rows=" + shown(), {
    row: (html) => {
      const made = row(html);
      const old = document.getElementById(made.id);
      if (old && !old.contains(document.activeElement)) { old.replaceWith(made); }
    },
    new: (html) => {
      const made = row(html);
      if (document.getElementById(made.id)) { return; }
      made.classList.add("fresh");
      rows.prepend(made);
      const none = document.getElementById("none");
      if (none) { none.remove(); }
    },
  });
}

(function begin() {
  const page = document.getElementById("run");
  const rows = document.getElementById("runs");
  if (page) { liveRun(page); }
  if (rows) { liveList(rows); }
  ago(document);
  setInterval(() => ago(document), 15000);
  document.addEventListener("htmx:afterSwap", () => ago(document));
})();
