/** The frame of every panel: title, lead, body, errors in place, and the copy buttons. */

import { Latest } from "./api.js";
import { h } from "./dom.js";
import { asCurl, asPython, copy } from "./snippets.js";

export const TYPING = 180; // milliseconds without a key before a request
const SLOW = 350; // milliseconds before a request counts as slow enough to say so

export class Frame {
  #questions = new Map();
  #pending = new Set();
  #problems = new Map();
  #request = null;
  #slow = 0;

  /** `id` names the panel and its strings. */
  constructor(app, id) {
    const { t } = app;
    this.app = app;
    this.body = h("div", { class: "body" });
    this.error = h("p", { class: "error", role: "alert", hidden: true });
    this.status = h("p", { class: "status", role: "status" });
    this.code = h("textarea", { class: "code", readonly: true, rows: 6, hidden: true });
    this.code.setAttribute("aria-label", t.copyPython);
    this.buttons = [
      h("button", { type: "button", onclick: () => this.#copy(asPython) }, t.copyPython),
      h("button", { type: "button", onclick: () => this.#copy(asCurl) }, t.copyCurl),
    ];
    this.foot = h("div", { class: "foot" }, ...this.buttons, this.status);
    this.root = h(
      "section",
      { class: "panel", id: `panel-${id}`, role: "tabpanel", "aria-labelledby": `tab-${id}` },
      h("h2", {}, t[id].title),
      h("p", { class: "lead" }, t[id].lead),
      this.error,
      this.body,
      this.foot,
      this.code,
    );
    this.request = null;
  }

  /** Send a request. Its answer is used only if no other was asked for under the same name. */
  ask(name, route, body, done, delay = TYPING) {
    if (!this.#questions.has(name)) this.#questions.set(name, new Latest());
    this.tell(null);
    this.#questions.get(name).ask(route, body, delay, {
      done: (answer) => {
        this.#problem(name, null);
        done(answer);
      },
      failed: (error) => {
        if (error.kind === "unauthorized") this.app.askForKey();
        this.#problem(name, sentence(this.app.t.errors, error));
      },
      busy: (busy) => this.#busy(name, busy),
    });
  }

  /** Drop a question, because its answer is no longer wanted. */
  drop(name) {
    this.#questions.get(name)?.drop();
    this.#problem(name, null);
    this.#busy(name, false);
  }

  /** Drop all questions: the panel goes away. */
  close() {
    for (const name of this.#questions.keys()) this.drop(name);
  }

  /** Say what is wrong with the inputs, in place; null takes it back. */
  tell(text) {
    this.#problem("", text);
  }

  #problem(name, text) {
    if (text === null) this.#problems.delete(name);
    else this.#problems.set(name, text);
    const said = [...this.#problems.values()].join(" ");
    this.error.hidden = !said;
    if (this.error.textContent !== said) this.error.textContent = said;
  }

  /** What the copy buttons copy: {route, body, shown}; null disables them. */
  set request(request) {
    this.#request = request;
    for (const button of this.buttons) button.disabled = request === null;
    this.code.hidden = true;
  }

  #busy(name, busy) {
    if (busy) this.#pending.add(name);
    else this.#pending.delete(name);
    clearTimeout(this.#slow);
    this.body.setAttribute("aria-busy", String(this.#pending.size > 0));
    if (this.#pending.size) {
      this.#slow = setTimeout(() => {
        this.status.textContent = this.app.t.working;
        this.root.classList.add("slow");
      }, SLOW);
      return;
    }
    if (this.root.classList.contains("slow")) this.status.textContent = "";
    this.root.classList.remove("slow");
  }

  async #copy(write) {
    const text = write(this.#request);
    const copied = await copy(text);
    this.status.textContent = copied ? this.app.t.copied : this.app.t.notCopied;
    this.code.hidden = copied;
    if (!copied) {
      this.code.value = text;
      this.code.focus();
      this.code.select();
    }
  }
}

function sentence(errors, error) {
  const known = errors[error.kind];
  if (typeof known === "string") return known;
  return (known ?? errors.other)(error.message);
}
