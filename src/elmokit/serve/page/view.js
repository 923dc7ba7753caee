/** What is shown: panel, model and each panel's inputs. The part on the screen is in the URL. */

/** Panels whose inputs are the same share a store. */
export const STORES = {
  compare: "pair",
  where: "where",
  neighbours: "neighbours",
  reading: "reading",
  tokens: "pair",
  tasks: "tasks",
};

const PAUSE = 250; // milliseconds; some browsers refuse a hundred new URLs in half a minute

export class View {
  #timer = 0;

  constructor() {
    this.panel = "compare";
    this.model = null;
    this.lang = null;
    this.stores = {};
    for (const store of Object.values(STORES)) this.stores[store] = {};
    this.read();
  }

  /** Take over what the URL says; inputs that it does not name return to the examples. */
  read() {
    const given = new URLSearchParams(location.hash.slice(1));
    if (given.get("panel") in STORES) this.panel = given.get("panel");
    this.model = given.get("model") ?? this.model;
    this.lang = given.get("lang") ?? this.lang;
    const inputs = Object.entries(Object.fromEntries(given));
    const own = inputs.filter(([name]) => !["panel", "model", "lang"].includes(name));
    this.stores[STORES[this.panel]] = Object.fromEntries(own);
  }

  /** The address of this view. */
  get hash() {
    const own = this.stores[STORES[this.panel]];
    const said = { panel: this.panel, model: this.model, ...own };
    const given = Object.entries(said).filter(([, value]) => value !== null && value !== undefined);
    return `#${new URLSearchParams(given)}`;
  }

  /** Write the URL: in place, or as a new entry that Back returns from. */
  write(asNew = false) {
    clearTimeout(this.#timer);
    if (this.hash === location.hash) return;
    history[asNew ? "pushState" : "replaceState"](null, "", this.hash);
  }

  /** A panel's input; undefined if the example is still there. */
  get(panel, name) {
    return this.stores[STORES[panel]][name];
  }

  set(panel, name, value) {
    const store = this.stores[STORES[panel]];
    if (value === undefined || value === null) delete store[name];
    else store[name] = String(value);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.write(), PAUSE);
  }

  /** Whether all inputs are still the examples. */
  get untouched() {
    return Object.values(this.stores).every((store) => !Object.keys(store).length);
  }
}
