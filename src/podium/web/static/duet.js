// Panes of a duet: painted from a websocket, typed into by whoever has the keyboard.
"use strict";

// The console's policy lets nobody put style elements or style attributes into a page. The terminal writes its own
// colours that way, so it is given sheets and properties instead, which scripts of our own may make.
(function styleWithinPolicy() {
  const make = document.createElement.bind(document);
  const setAttribute = Element.prototype.setAttribute;

  function sheetElement() {
    const element = make("span");
    const sheet = new CSSStyleSheet();
    element.hidden = true;
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    Object.defineProperty(element, "textContent", { set: (text) => sheet.replaceSync(text) });
    element.remove = () => {
      document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
      Element.prototype.remove.call(element);
    };
    return element;
  }
  document.createElement = (name, options) => name === "style" ? sheetElement() : make(name, options);
  Element.prototype.setAttribute = function (name, value) {
    if (name === "style") this.style.cssText = value; else setAttribute.call(this, name, value);
  };
})();

const LARGEST_FONT = 14, SMALLEST_FONT = 9, CELL = 0.602;
const FIRST_PAUSE = 500, LONGEST_PAUSE = 10000;

class Pane {
  constructor(section) {
    this.section = section;
    this.screen = section.querySelector(".screen");
    this.tag = section.querySelector("[data-keyboard]");
    this.trouble = section.querySelector("[data-trouble]");
    this.takeButton = section.querySelector("[data-take]");
    this.giveButton = section.querySelector("[data-give]");
    this.mine = false;
    this.pause = FIRST_PAUSE;
    this.terminal = this.newTerminal();
    this.takeButton?.addEventListener("click", () => this.say({ type: "take" }));
    this.giveButton?.addEventListener("click", () => this.say({ type: "give" }));
    new ResizeObserver(() => this.fit()).observe(this.screen);
    this.connect();
  }

  newTerminal() {
    const terminal = new Terminal({
      cols: 80, rows: 24, scrollback: 0, disableStdin: true, cursorBlink: false, fontSize: LARGEST_FONT,
      fontFamily: '"DejaVu Sans Mono", ui-monospace, monospace', theme: { background: "#101418", foreground: "#e8ecf1" },
      linkHandler: { activate: () => {} },
    });
    // The server sends colours and cursor positions alone; whatever else came is not obeyed either.
    for (const number of [0, 1, 2, 4, 8, 9, 10, 11, 12, 52, 104, 110, 111, 112, 777, 1337]) {
      terminal.parser.registerOscHandler(number, () => true);
    }
    terminal.open(this.screen);
    terminal.textarea.tabIndex = -1;
    terminal.onData((data) => this.type(data));
    terminal.attachCustomKeyEventHandler((event) => this.isForTerminal(event));
    this.screen.addEventListener("keydown", (event) => {
      if (event.target === this.screen && event.key === "Enter" && this.mine) terminal.focus();
    });
    this.screen.addEventListener("paste", (event) => {
      const text = event.clipboardData.getData("text/plain");
      event.preventDefault();
      event.stopImmediatePropagation();
      if (this.mine && text) this.say({ type: "paste", text: text.slice(0, 200000) });
    }, true);
    return terminal;
  }

  isForTerminal(event) {
    if (!this.mine) return false;  // Tab goes on through the page
    if (event.ctrlKey && event.key === "]") {
      if (event.type === "keydown") { event.preventDefault(); this.giveButton.focus(); }
      return false;
    }
    return true;
  }

  type(data) {
    if (!this.mine) return;
    for (let at = 0; at < data.length; at += 4096) this.say({ type: "keys", data: data.slice(at, at + 4096) });
  }

  say(message) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.socket = new WebSocket(`${scheme}://${location.host}/api/v1/panes/${this.section.dataset.pane}`);
    this.socket.addEventListener("open", () => { this.pause = FIRST_PAUSE; });
    this.socket.addEventListener("message", (event) => this.hear(JSON.parse(event.data)));
    this.socket.addEventListener("close", (event) => this.lost(event));
  }

  hear(message) {
    if (message.type === "paint") this.paint(message);
    if (message.type === "state") this.show(message);
    if (message.type === "refused") say(message.words, true);
  }

  paint(message) {
    if (this.terminal.cols !== message.columns || this.terminal.rows !== message.rows) {
      this.terminal.resize(message.columns, message.rows);
      this.fit();
    }
    this.terminal.write(message.text);
  }

  // The pane keeps its size; the letters get as small as can be read, and beyond that one scrolls.
  fit() {
    const room = this.screen.clientWidth - 12;
    const size = Math.floor(room / this.terminal.cols / CELL);
    const fits = Math.max(SMALLEST_FONT, Math.min(LARGEST_FONT, size));
    if (room > 0 && this.terminal.options.fontSize !== fits) this.terminal.options.fontSize = fits;
  }

  show(state) {
    const had = this.mine;
    this.mine = state.mine;
    this.section.classList.toggle("mine", state.mine);
    this.section.classList.toggle("gone", Boolean(state.trouble) || state.dead);
    this.terminal.options.disableStdin = !state.mine;
    this.tag.textContent = state.mine ? "you have the keyboard" : state.who ? `${state.who} has the keyboard` : "Podium has the keyboard";
    this.tag.className = state.mine ? "tag live" : state.who ? "tag wait" : "tag";
    this.tell(state.trouble || (state.dead ? "The program has exited." : ""));
    if (this.takeButton) {
      this.takeButton.hidden = state.mine;
      this.takeButton.disabled = Boolean(state.who) || Boolean(state.trouble);
      this.giveButton.hidden = !state.mine;
    }
    if (state.mine && !had) this.terminal.focus();
    if (!state.mine && had) this.terminal.blur();
  }

  tell(words) {
    this.trouble.textContent = words;
    this.trouble.hidden = !words;
  }

  lost(event) {
    this.show({ mine: false, who: "", dead: false, trouble: event.reason || "Connection lost; reconnecting." });
    if (this.takeButton) this.takeButton.disabled = true;
    this.tag.textContent = "not connected";
    if (event.code === 4401) { location.reload(); return; }
    setTimeout(() => this.connect(), this.pause);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
  }
}

document.querySelectorAll("[data-pane]").forEach((section) => new Pane(section));
