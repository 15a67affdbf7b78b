// A part that is brought up to date by itself leaves people alone: it waits while somebody writes in it or while an
// answer of theirs is on its way, never shows what is older than that answer, and keeps open what was opened.
"use strict";

const KEEPS = "[data-keeps-open]";
const isLook = (detail) => detail.elt.matches(KEEPS);

// Also what was typed and not sent yet: it must not be gone when the button is pressed.
function isWritten(part) {
  const fields = [...part.querySelectorAll("input:not([type=hidden]), textarea, select")];
  return fields.some((field) => field === document.activeElement || (field.defaultValue !== undefined && field.value !== field.defaultValue));
}

function lookAtMissed(part) {
  if (!part.missed || isWritten(part)) return;
  part.missed = false;
  htmx.trigger(part, "look");
}

document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.detail.elt.closest(KEEPS);
  if (!part) return;
  if (!isLook(event.detail)) {
    part.underWay = (part.underWay || 0) + 1;
  } else if (part.underWay || isWritten(part)) {
    event.preventDefault();
    part.missed = true;
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
    part.missed = true;
    return;
  }
  part.openNames = [...part.querySelectorAll("details[open][data-name]")].map((each) => each.dataset.name);
});

// What could not be shown meanwhile is looked at when they have left.
document.addEventListener("focusout", (event) => {
  const part = event.target.closest(KEEPS);
  if (part) setTimeout(() => lookAtMissed(part));
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
  lookAtMissed(part);
});
