// A part that is brought up to date by itself leaves people alone: it waits while somebody writes in it or while an
// answer of theirs is on its way, never shows what is older than that answer, and keeps open what was opened.
"use strict";

const KEEPS = "[data-keeps-open]";
const isLook = (detail) => detail.elt.matches(KEEPS);

function isWritten(part) {
  const active = document.activeElement;
  return part.contains(active) && active.matches("input:not([type=hidden]), textarea, select");
}

document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.detail.elt.closest(KEEPS);
  if (!part) return;
  if (!isLook(event.detail)) {
    part.underWay = (part.underWay || 0) + 1;
  } else if (part.underWay || isWritten(part)) {
    event.preventDefault();
  } else {
    event.detail.xhr.answersBefore = part.answers || 0;
  }
});

document.addEventListener("htmx:beforeSwap", (event) => {
  const part = event.detail.target;
  if (!part.matches(KEEPS)) return;
  const told = event.detail.xhr.answersBefore;
  if (told === undefined) {
    part.answers = (part.answers || 0) + 1;
    part.underWay = 0;
  } else if (part.underWay || told !== (part.answers || 0) || isWritten(part)) {
    event.detail.shouldSwap = false;
    return;
  }
  part.openNames = [...part.querySelectorAll("details[open][data-name]")].map((each) => each.dataset.name);
});

// One that got no answer must not keep the part from being brought up to date.
document.addEventListener("htmx:sendError", () => {
  for (const part of document.querySelectorAll(KEEPS)) part.underWay = 0;
});

document.addEventListener("htmx:afterSwap", (event) => {
  const part = event.detail.target;
  for (const name of part.openNames || []) {
    const found = part.querySelector(`details[data-name="${CSS.escape(name)}"]`);
    if (found) found.open = true;
  }
});
