// The inbox while it is open: new cards come, answered ones leave, and nobody loses what they were typing.
"use strict";

(function keepInbox() {
  const inbox = document.getElementById("inbox");
  if (!inbox) return;
  const LEAVES_AFTER = 30000;
  const GATHERED = 150;
  const LOOKED_AGAIN = 30000;
  const only = inbox.dataset.only;
  let waiting = null;
  let looking = false;

  const cards = () => Array.from(inbox.querySelectorAll("article[data-card]"));
  const cardNamed = (id) => cards().find((card) => card.dataset.card === id);
  const parsed = (text) => new DOMParser().parseFromString(text, "text/html");

  async function asked(path) {
    const answer = await fetch(path, { headers: { "hx-request": "true" } });
    if (answer.status === 401) location.reload();
    return answer.ok ? parsed(await answer.text()) : null;
  }

  function isInUse(card) {
    const typed = Array.from(card.querySelectorAll("input:not([type=hidden]):not([type=checkbox]):not([type=radio]), textarea"));
    const chosen = card.querySelector("input[type=radio]:checked");
    return Boolean(chosen) || typed.some((field) => field.value !== field.defaultValue);
  }

  function put(fresh, old) {
    const hadFocus = old.contains(document.activeElement);
    old.replaceWith(fresh);
    htmx.process(fresh);
    if (hadFocus) fresh.focus({ preventScroll: true });
  }

  async function tellAnswer(card) {
    const told = await asked("/cards/" + encodeURIComponent(card.dataset.card) + "/part");
    const fresh = told && told.querySelector("article[data-card]");
    if (!fresh || !card.isConnected || fresh.dataset.version === card.dataset.version) return;
    put(fresh, card);
  }

  function leaveLater(card) {
    if (card.dataset.leaves) return;
    card.dataset.leaves = "yes";
    setTimeout(() => {
      if (card.contains(document.activeElement)) { delete card.dataset.leaves; return; }
      card.remove();
    }, LEAVES_AFTER);
  }

  function merge(told) {
    const list = document.getElementById("cards");
    const fresh = told.getElementById("cards");
    const wanted = Array.from(fresh.querySelectorAll("article[data-card]"));
    const names = new Set(wanted.map((card) => card.dataset.card));
    let came = 0;
    for (const card of cards()) {
      if (names.has(card.dataset.card)) continue;
      if (card.dataset.card.startsWith("apr_") && !card.classList.contains("done")) tellAnswer(card);
      else if (card.classList.contains("done")) leaveLater(card);
      else if (!card.querySelector(".note")) card.remove();
      else leaveLater(card);
    }
    for (const node of Array.from(list.querySelectorAll(":scope > h2, :scope > .empty, :scope > .hint"))) node.remove();
    let before = document.getElementById("bulk-report");
    for (const node of Array.from(fresh.children)) {
      if (node.id === "bulk-report") continue;
      let placed = node;
      const known = node.dataset.card ? cardNamed(node.dataset.card) : null;
      if (known && (known.dataset.version === node.dataset.version || isInUse(known))) placed = known;
      else if (known) put(node, known);
      else if (node.dataset.card) came += 1;
      if (before.nextElementSibling !== placed) before.after(placed);
      if (placed === node) htmx.process(node);
      before = placed;
    }
    count(Number(fresh.dataset.count), came);
  }

  function count(waits, came) {
    const plain = document.title.replace(/^\(\d+\) /, "");
    document.title = waits ? "(" + waits + ") " + plain : plain;
    if (came) document.getElementById("inbox-news").textContent = came === 1 ? "1 more card is waiting." : came + " more cards are waiting.";
    mark();
  }

  async function look() {
    if (looking) { soon(); return; }
    looking = true;
    try {
      if (only) { const card = cardNamed(only); if (card) await tellAnswer(card); return; }
      const told = await asked(inbox.dataset.cards);
      if (told && told.getElementById("cards")) merge(told);
    } catch { /* The console is away; the stream says when it is back. */ } finally { looking = false; }
  }

  function soon() {
    if (waiting === null) waiting = setTimeout(() => { waiting = null; look(); }, GATHERED);
  }

  // Of several selected at once all have one tier; the server holds to it too.
  function mark() {
    const bulk = document.getElementById("bulk");
    if (!bulk) return;
    const boxes = Array.from(inbox.querySelectorAll("input[name=chosen]"));
    const chosen = boxes.filter((box) => box.checked);
    const tier = chosen.length ? chosen[0].dataset.tier : null;
    for (const box of boxes) box.disabled = tier !== null && box.dataset.tier !== tier;
    bulk.hidden = chosen.length === 0;
    document.getElementById("bulk-count").textContent = chosen.length + " selected, " + (tier || "") + ":";
  }

  function step(by) {
    const all = cards();
    const at = all.findIndex((card) => card.contains(document.activeElement));
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
    if (next) { next.focus(); next.scrollIntoView({ block: "nearest" }); }
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select")) return;
    if (event.key === "j") step(1);
    if (event.key === "k") step(-1);
  });
  inbox.addEventListener("change", (event) => { if (event.target.name === "chosen") mark(); });
  // Who answered stays with the card that they answered.
  document.addEventListener("htmx:afterSwap", (event) => {
    const target = event.detail.target;
    const card = target && target.dataset && target.dataset.card ? cardNamed(target.dataset.card) : null;
    if (card) card.focus({ preventScroll: true });
    mark();
  });

  mark();
  const stream = new EventSource(inbox.dataset.live);
  stream.addEventListener("inbox", soon);
  // What happened between the page and the stream, and while the stream was away.
  stream.addEventListener("open", soon);
  stream.addEventListener("open", () => document.dispatchEvent(new Event("podium:back")));
  stream.addEventListener("error", () => document.dispatchEvent(new Event("podium:lost")));
  window.addEventListener("pagehide", () => stream.close());
  // That a host died is no event.
  setInterval(soon, LOOKED_AGAIN);
})();
