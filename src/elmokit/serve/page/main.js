/** The page: header, tabs, and the panel in view. Panels are rebuilt from the view; see view.js. */

import { call, setApiKey } from "./api.js";
import { dropDown, h, labelled, onArrows } from "./dom.js";
import en from "./en.js";
import { build as compare } from "./panels/compare.js";
import { build as neighbours } from "./panels/neighbours.js";
import { build as reading } from "./panels/reading.js";
import { build as tasks } from "./panels/tasks.js";
import { build as tokens } from "./panels/tokens.js";
import { build as where } from "./panels/where.js";
import { View } from "./view.js";
import zh from "./zh.js";

const LANGUAGES = { en, zh };
const PANELS = { compare, where, neighbours, reading, tokens, tasks };
const RETRY = 2000; // milliseconds until the next try to reach the service

class App {
  info = null;
  sentences = {};
  #frame = null;

  constructor(root) {
    this.root = root;
    this.view = new View();
    this.lang = firstLanguage(this.view.lang);
    this.theme = localStorage.getItem("elmokit-theme") ?? "auto";
    this.#applyTheme();
    addEventListener("popstate", () => this.#fromUrl());
    addEventListener("hashchange", () => this.#fromUrl());
  }

  /** The strings of the language. */
  get t() {
    return LANGUAGES[this.lang];
  }

  /** The model in use, as /info describes it. */
  get model() {
    const { models, default_model: usual } = this.info;
    const named = (name) => models.find((model) => model.name === name);
    return named(this.view.model) ?? this.#modelFor(this.lang) ?? named(usual) ?? models[0];
  }

  /** The language of what is typed, for fonts and line breaks. */
  get textLang() {
    return this.model.language ?? null;
  }

  #modelFor(lang) {
    return this.info.models.find((model) => (model.language ?? "").startsWith(lang));
  }

  async start() {
    this.draw();
    try {
      this.info = await call("/info");
      this.sentences = await call("/examples");
    } catch (error) {
      if (error.kind === "unauthorized") {
        this.askForKey();
        return;
      }
      this.#say(error.status === 503 ? this.t.loading : this.t.errors.unreachable);
      setTimeout(() => this.start(), RETRY);
      return;
    }
    this.view.model = this.model.name;
    this.view.write();
    this.draw();
  }

  /** Build everything from the view. */
  draw() {
    const { t } = this;
    document.documentElement.lang = this.lang === "zh" ? "zh-CN" : "en";
    document.title = t.title;
    this.main = h("main", { id: "main", tabindex: -1 });
    this.keyBox = h("div", { class: "key-box", hidden: true });
    this.root.replaceChildren(
      h("a", { class: "skip", href: "#main", onclick: (event) => this.#skip(event) }, t.skip),
      this.#header(),
      this.keyBox,
      ...(this.info ? [this.#tabs()] : []),
      this.main,
      this.#footer(),
    );
    if (this.info) {
      this.#showPanel();
      // the row of tabs scrolls on a phone
      this.#tab.scrollIntoView({ block: "nearest", inline: "center" });
    } else this.#say(t.loading);
  }

  #say(sentence) {
    this.main.replaceChildren(h("p", { class: "status", role: "status" }, sentence));
  }

  #skip(event) {
    event.preventDefault(); // the hash is the view's
    this.main.focus();
  }

  #header() {
    const { t } = this;
    const themes = Object.entries(t.themes);
    const controls = h("div", { class: "controls" });
    if (this.info) {
      const names = this.info.models.map(({ name }) => [name, name]);
      controls.append(
        labelled(
          t.model,
          dropDown(names, this.model.name, (name) => this.setModel(name)),
        ),
      );
    }
    controls.append(
      labelled(
        t.language,
        dropDown(
          Object.entries(LANGUAGES).map(([lang, { name }]) => [lang, name]),
          this.lang,
          (lang) => this.#setLanguage(lang),
        ),
      ),
      labelled(
        t.theme,
        dropDown(themes, this.theme, (theme) => this.#setTheme(theme)),
      ),
    );
    const title = h("div", { class: "title" }, h("h1", {}, t.brand), h("p", {}, t.tagline));
    return h("header", {}, title, controls);
  }

  #tabs() {
    const { t, view } = this;
    const names = Object.keys(PANELS);
    const list = h("div", { class: "tabs", role: "tablist", "aria-label": t.panels });
    for (const name of names) {
      const chosen = name === view.panel;
      list.append(
        h(
          "button",
          {
            type: "button",
            role: "tab",
            id: `tab-${name}`,
            "aria-selected": String(chosen),
            "aria-controls": chosen ? `panel-${name}` : null,
            tabindex: chosen ? 0 : -1,
            onclick: () => this.#setPanel(name),
            onkeydown: (event) =>
              onArrows(event, names.indexOf(name), names.length, (next) =>
                this.#setPanel(names[next]),
              ),
          },
          t[name].tab,
        ),
      );
    }
    return h("nav", { "aria-label": t.panels }, list);
  }

  get #tab() {
    return document.getElementById(`tab-${this.view.panel}`);
  }

  #footer() {
    const { t, info } = this;
    return h(
      "footer",
      {},
      info ? h("span", {}, t.version(info.version)) : null,
      h("a", { href: "docs" }, t.apiDocs),
    );
  }

  #showPanel() {
    this.#frame?.close();
    this.#frame = PANELS[this.view.panel](this);
    this.main.replaceChildren(this.#frame.root);
  }

  #setPanel(name) {
    this.view.write(); // what was typed last
    this.view.panel = name;
    this.view.write(true);
    this.draw();
    this.#tab.focus({ preventScroll: true });
  }

  setModel(name) {
    this.view.model = name;
    this.view.write();
    this.draw();
    this.root.querySelector("header select").focus();
  }

  #setLanguage(lang) {
    this.lang = lang;
    this.view.lang = null;
    localStorage.setItem("elmokit-language", lang);
    // examples follow the language; what a person typed keeps its model
    if (this.info && this.view.untouched)
      this.view.model = (this.#modelFor(lang) ?? this.model).name;
    this.view.write();
    this.draw();
    this.root.querySelectorAll("header select")[this.info ? 1 : 0].focus();
  }

  #setTheme(theme) {
    this.theme = theme;
    localStorage.setItem("elmokit-theme", theme);
    this.#applyTheme();
  }

  #applyTheme() {
    if (this.theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.theme;
  }

  #fromUrl() {
    if (location.hash === this.view.hash) return;
    this.view.read();
    if (this.view.lang in LANGUAGES) this.lang = this.view.lang;
    if (this.info) this.view.model = this.model.name;
    this.view.write();
    this.draw();
  }

  /** Ask for the API key of the service, in place. */
  askForKey() {
    const { t } = this;
    if (!this.keyBox.hidden) return;
    const input = h("input", { type: "password", autocomplete: "off", required: true });
    const wrong = h("p", { class: "error", role: "alert", hidden: true });
    const form = h(
      "form",
      {},
      h("h2", {}, t.key.title),
      labelled(t.key.label, input),
      h("button", { type: "submit" }, t.key.use),
      wrong,
      h("p", { class: "note" }, t.key.note),
    );
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      setApiKey(input.value);
      try {
        await call("/tokenize", { inputs: "key" });
      } catch (error) {
        if (error.kind === "unauthorized") {
          setApiKey(null);
          wrong.hidden = false;
          wrong.textContent = t.key.wrong;
          input.select();
          return;
        }
      }
      this.start();
    });
    this.keyBox.replaceChildren(form);
    this.keyBox.hidden = false;
    if (!this.info) this.main.replaceChildren();
    input.focus();
  }
}

/** The language in the URL, chosen before, or of the browser. */
function firstLanguage(given) {
  const wanted = [given, localStorage.getItem("elmokit-language"), ...navigator.languages];
  for (const lang of wanted) {
    const short = (lang ?? "").slice(0, 2).toLowerCase();
    if (short in LANGUAGES) return short;
  }
  return "en";
}

new App(document.getElementById("app")).start();
