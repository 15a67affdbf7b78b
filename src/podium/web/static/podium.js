// What htmx does not do: coming in by a link's fragment, and telling what went wrong.
"use strict";

(function comeInByFragment() {
  const form = document.getElementById("login");
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (form && given) {
    // The fragment was never sent anywhere; it is not to stay in the history either.
    history.replaceState(null, "", location.pathname + location.search);
    form.elements.token.value = given;
    form.submit();
  }
})();

// An answer that says why something was not done is shown like any other.
document.addEventListener("htmx:beforeSwap", (event) => {
  const status = event.detail.xhr.status;
  if (status === 401) { location.reload(); return; }
  if (status >= 400) {
    event.detail.shouldSwap = false;
    const told = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html");
    const words = told.querySelector(".fault");
    say(words ? words.textContent : "The request failed (" + status + ").", true);
  }
});
document.addEventListener("htmx:sendError", () => say("The console is not responding. Is `podium serve` still running?", true));

function say(words, bad) {
  const said = document.getElementById("said");
  said.className = bad ? "fault" : "notice";
  said.textContent = words;
}

// On a narrow screen the pages' names run on beyond the edge: the one that is shown comes into sight.
const current = document.querySelector(".top nav [aria-current]");
if (current) { current.scrollIntoView({ block: "nearest", inline: "center" }); }

// A line that is lost and not back within some seconds is told; what is shown may be old by then.
const LOST = "Live updates are interrupted; reconnecting. The page may be out of date.";
let lost = 0;
function lineLost() { lost = lost || setTimeout(() => say(LOST, true), 5000); }
function lineBack() {
  clearTimeout(lost);
  lost = 0;
  const said = document.getElementById("said");
  if (said.textContent === LOST) { said.className = ""; said.textContent = ""; }
}
// Pages with streams of their own tell of them by the second pair.
for (const name of ["htmx:sseError", "podium:lost"]) { document.addEventListener(name, lineLost); }
for (const name of ["htmx:sseOpen", "podium:back"]) { document.addEventListener(name, lineBack); }
