// A part that is brought up to date by itself waits while somebody writes in it, and keeps open what was opened.
"use strict";

document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.detail.elt;
  if (!part.hasAttribute("data-keeps-open")) return;
  const active = document.activeElement;
  if (part.contains(active) && active.matches("input, textarea, select")) event.preventDefault();
});

document.addEventListener("htmx:beforeSwap", (event) => {
  const part = event.detail.target;
  if (!part.hasAttribute("data-keeps-open")) return;
  part.openNames = [...part.querySelectorAll("details[open][data-name]")].map((each) => each.dataset.name);
});

document.addEventListener("htmx:afterSwap", (event) => {
  const part = event.detail.target;
  for (const name of part.openNames || []) {
    const found = part.querySelector(`details[data-name="${CSS.escape(name)}"]`);
    if (found) found.open = true;
  }
});
