/** Two sentences and their similarities, for the panels that compare two. */

import { h } from "./dom.js";
import { examplesFor } from "./examples.js";
import { textField } from "./widgets.js";

/** Both fields of a panel; asks the service whenever one changes. */
export class Pair {
  constructor(frame, panel, onAnswer, onEmpty) {
    Object.assign(this, { frame, panel, onAnswer, onEmpty });
    const { app } = frame;
    this.fields = ["a", "b"].map((name) =>
      textField(app, name === "a" ? app.t.first : app.t.second, this.text(name), (text) => {
        app.view.set(panel, name, text === this.example(name) ? undefined : text);
        this.ask();
      }),
    );
  }

  example(name) {
    return examplesFor(this.frame.app.model)[name];
  }

  text(name) {
    return this.frame.app.view.get(this.panel, name) ?? this.example(name);
  }

  /** The request for what is in the fields. */
  get body() {
    return { first: this.text("a"), second: this.text("b"), model: this.frame.app.model.name };
  }

  ask(delay = undefined) {
    const { frame } = this;
    if (!this.body.first.trim() || !this.body.second.trim()) {
      frame.drop("pair");
      frame.request = null;
      frame.tell(frame.app.t.emptyPair);
      this.onEmpty();
      return;
    }
    frame.ask("pair", "/similarity/tokens", this.body, this.onAnswer, delay);
  }

  /** A field with something below it, side by side with the other where there is room. */
  columns(...below) {
    const column = (field, which) => h("div", { class: "column" }, field, below[which] ?? null);
    return h("div", { class: "columns" }, ...this.fields.map(column));
  }
}
