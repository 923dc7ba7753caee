/** Controls that several panels have: a sentence with words to click, a layer slider, bars. */

import { freshId, h, labelled, onArrows, select } from "./dom.js";

/** A text field that reports what is typed. */
export function textField(app, label, value, onText, rows = 2, hint = null) {
  const input = h("textarea", { rows, spellcheck: "false", lang: app.textLang });
  input.value = value;
  input.addEventListener("input", () => onText(input.value));
  return labelled(label, input, hint);
}

/** A row of words of which one is chosen. Call the result with tokens and the chosen place. */
export function wordRow(app, label, onChoose) {
  const root = h("div", { class: "words", role: "radiogroup", "aria-label": label });
  root.lang = app.textLang;
  const show = (tokens, chosen) => {
    select(root)
      .selectAll("button")
      .data(tokens)
      .join((enter) => enter.append("button").attr("type", "button").attr("role", "radio"))
      .text((token) => token)
      .attr("aria-checked", (_, place) => String(place === chosen))
      .attr("tabindex", (_, place) => (place === (chosen ?? 0) ? 0 : -1))
      .on("click", (event) => {
        event.currentTarget.focus();
        onChoose(places().indexOf(event.currentTarget));
      })
      .on("keydown", (event) => {
        const place = places().indexOf(event.currentTarget);
        onArrows(event, place, tokens.length, (next) => places()[next].click());
      });
  };
  const places = () => [...root.querySelectorAll("button")];
  return { root, show };
}

/** Where a chosen word is after an edit: the same word nearest to its old place, or null. */
export function follow(tokens, place, word) {
  if (tokens[place] === word) return place;
  const same = tokens.map((token, at) => [token, at]).filter(([token]) => token === word);
  same.sort((x, y) => Math.abs(x[1] - place) - Math.abs(y[1] - place));
  return same.length ? same[0][1] : null;
}

/** The name of a layer in the language of the page. */
export function layerName(t, layer) {
  return t.layers[layer] ?? t.layers.other(layer);
}

/** A slider over layers. Call `show` with the names and the chosen one. */
export function layerSlider(app, onLayer) {
  const { t } = app;
  const id = freshId("layer");
  const input = h("input", { type: "range", min: 0, step: 1, id });
  const marks = h("div", { class: "marks", "aria-hidden": "true" });
  const note = h("p", { class: "note" });
  let layers = [];
  input.addEventListener("input", () => onLayer(layers[input.value]));
  const show = (names, chosen) => {
    layers = names;
    input.max = names.length - 1;
    input.value = names.indexOf(chosen);
    input.setAttribute("aria-valuetext", layerName(t, chosen));
    select(marks)
      .selectAll("span")
      .data(names)
      .join("span")
      .attr("class", (name) => (name === chosen ? "chosen" : ""))
      .text((name) => layerName(t, name))
      .each(function (_, place) {
        this.style.left = `${(100 * place) / Math.max(1, names.length - 1)}%`;
      })
      .on("click", (_, name) => onLayer(name));
    note.textContent = t.layerNotes[chosen] ?? t.layerNotes.other(chosen);
  };
  const slider = h("div", { class: "slider" }, input, marks);
  const root = h("div", { class: "field layers" }, h("label", { for: id }, t.layer), slider, note);
  return { root, show };
}

/** Which of the layers to show first: the one in the URL if the model has it, or the mix. */
export function chosenLayer(layers, wanted) {
  if (layers.includes(wanted)) return wanted;
  return layers.includes("mix") ? "mix" : layers.at(-1);
}

/** Layers in order: by number, then the mix. */
export function layerNames(byLayer) {
  return Object.keys(byLayer).sort((x, y) => (x === "mix") - (y === "mix") || x - y);
}

/** Rows of a name, a bar from `from` to `to`, and a number: [{name, value, text, chosen, note}]. */
export function bars(root, rows, [from, to] = [0, 1]) {
  const row = select(root)
    .selectAll("li")
    .data(rows)
    .join((enter) => {
      const item = enter.append("li");
      item.append("span").attr("class", "name");
      item.append("span").attr("class", "track").append("span").attr("class", "bar");
      item.append("span").attr("class", "value");
      return item;
    })
    .classed("chosen", (each) => Boolean(each.chosen));
  row.select(".name").text((each) => each.name);
  row.select(".value").text((each) => each.text);
  const at = (value) => (100 * (Math.min(to, Math.max(from, value)) - from)) / (to - from);
  row.select(".bar").each(function (each) {
    const zero = at(0);
    this.style.left = `${Math.min(zero, at(each.value))}%`;
    this.style.width = `${Math.abs(at(each.value) - zero)}%`;
  });
}

const HALF = 0.5225; // shares of the deep colour from which black, in the dark theme, and white,
const DEEP = 0.69; // in the light one, have a contrast of at least 4.5; see panels.css

/** Colour elements of a d3 selection by a share from 0 to 1 of each datum. */
export function shade(selection, share) {
  const bounded = (datum) => Math.max(0, Math.min(1, share(datum)));
  selection
    .classed("half", (datum) => bounded(datum) > HALF)
    .classed("deep", (datum) => bounded(datum) > DEEP)
    .each(function (datum) {
      this.style.setProperty("--v", `${100 * bounded(datum)}%`);
    });
}

/** A number as the page writes it, with a real minus sign. */
export function fixed(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}
