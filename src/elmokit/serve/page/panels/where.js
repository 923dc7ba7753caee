/** Where a word lives: its occurrences in many sentences as points, layer by layer. */

import { dropDown, h, labelled, select } from "../dom.js";
import { examplesFor } from "../examples.js";
import { Frame } from "../frame.js";
import { SHAPES, scatterPlot } from "../scatter_plot.js";
import {
  bars,
  chosenLayer,
  fixed,
  layerName,
  layerNames,
  layerSlider,
  textField,
} from "../widgets.js";

const OWN = "own";

/** Lines "label TAB sentence" or "sentence" as the service takes them. */
function readLines(text) {
  return text
    .split("\n")
    .filter((line) => line.trim())
    .map((line) => {
      const tab = line.indexOf("\t");
      if (tab < 0) return { text: line.trim() };
      return { text: line.slice(tab + 1).trim(), label: line.slice(0, tab).trim() || undefined };
    });
}

const writeLines = (sentences) =>
  sentences.map(({ text, label }) => (label ? `${label}\t${text}` : text)).join("\n");

export function build(app) {
  const { t, view } = app;
  const frame = new Frame(app, "where");
  const sets = app.sentences[(app.model.language ?? "en").slice(0, 2)] ?? app.sentences.en ?? {};
  const get = (name) => view.get("where", name);
  const set = (name, value) => view.set("where", name, value);
  const first = examplesFor(app.model).where;
  const usual = first in sets ? first : (Object.keys(sets)[0] ?? "");
  const base = () => (sets[get("set")] ? get("set") : usual);
  const chosenSet = () => (get("text") === undefined ? base() : OWN);
  const word = () => get("word") ?? base();
  const text = () => get("text") ?? writeLines(sets[base()] ?? []);

  const choice = dropDown(
    [...Object.keys(sets).map((name) => [name, name]), [OWN, t.where.own]],
    chosenSet(),
    (name) => {
      if (name === OWN) set("text", "");
      else {
        set("text", undefined);
        set("word", undefined);
        set("set", name === usual ? undefined : name);
      }
      refill();
      ask(0);
      if (name === OWN) lines.focus();
    },
  );
  const wordInput = h("input", { type: "text", spellcheck: "false", lang: app.textLang });
  wordInput.addEventListener("input", () => {
    set("word", wordInput.value === base() ? undefined : wordInput.value);
    ask();
  });
  const field = textField(
    app,
    t.where.text,
    "",
    (value) => {
      set("text", value === writeLines(sets[base()] ?? []) ? undefined : value);
      choice.value = chosenSet();
      ask();
    },
    8,
    h("p", { class: "note" }, t.where.hint),
  );
  const lines = field.querySelector("textarea");
  const colour = dropDown(
    [
      ["label", t.where.byLabel],
      ["cluster", t.where.byCluster],
    ],
    get("colour") ?? "label",
    (value) => {
      set("colour", value === "label" ? undefined : value);
      clusterField.hidden = value !== "cluster";
      show();
    },
  );
  const clusters = h("input", { type: "number", min: 2, max: 8, value: get("clusters") ?? 2 });
  clusters.addEventListener("input", () => {
    if (!clusters.checkValidity() || !clusters.value) return;
    set("clusters", clusters.value === "2" ? undefined : clusters.value);
    ask();
  });
  const clusterField = labelled(t.where.clusters, clusters);
  clusterField.hidden = get("colour") !== "cluster";
  const slider = layerSlider(app, (layer) => {
    set("layer", layer);
    show();
  });
  const plot = scatterPlot(say);
  const legend = h("ul", { class: "legend" });
  const said = h("p", { class: "caption sentence", role: "status", lang: app.textLang });
  const count = h("p", { class: "note" });
  const separation = h("ul", { class: "bars" });
  const separationTitle = h("h3");
  const result = h(
    "div",
    { class: "result", hidden: true },
    slider.root,
    legend,
    plot.root,
    said,
    count,
    separationTitle,
    separation,
  );
  const left = h(
    "div",
    { class: "column side" },
    labelled(t.where.examples, choice),
    labelled(t.where.word, wordInput),
    field,
    labelled(t.where.colour, colour),
    clusterField,
  );
  frame.body.append(
    h("div", { class: "columns wide" }, left, h("div", { class: "column" }, result)),
  );
  let answer = null;
  let asked = [];

  function refill() {
    choice.value = chosenSet();
    wordInput.value = word();
    lines.value = text();
  }

  function body() {
    const number = Number(get("clusters") ?? 2);
    return {
      sentences: readLines(text()),
      word: word().trim(),
      clusters: number,
      model: app.model.name,
    };
  }

  function ask(delay = undefined) {
    const request = body();
    if (!request.word || !request.sentences.length) {
      frame.drop("scatter");
      frame.request = null;
      frame.tell(t.where.empty);
      return;
    }
    frame.ask(
      "scatter",
      "/scatter",
      request,
      (given) => {
        answer = given;
        asked = request.sentences;
        show();
      },
      delay,
    );
  }

  const nameOf = (point) =>
    get("colour") === "cluster"
      ? t.where.cluster(point.cluster + 1)
      : (point.label ?? t.where.noLabel);

  function show() {
    if (answer === null) return;
    const layers = layerNames(answer.points[0]?.layers ?? {});
    if (!layers.length) {
      frame.request = null;
      frame.tell(t.where.none(word()));
      result.hidden = true;
      return;
    }
    const layer = chosenLayer(layers, get("layer"));
    slider.show(layers, layer);
    const names = [...new Set(answer.points.map(nameOf))].sort();
    const points = answer.points.map((point) => ({
      x: point.layers[layer][0],
      y: point.layers[layer][1],
      group: names.indexOf(nameOf(point)),
      name: t.where.point(nameOf(point), asked[point.sentence].text),
    }));
    plot.show(points, t.where.plot(word(), layerName(t, layer)));
    showLegend(names);
    said.replaceChildren(h("span", { class: "quiet" }, t.where.choose));
    count.textContent = `${t.where.found(points.length, answer.missing.length)} · ${t.where.axes}`;
    const scores = Object.entries(answer.silhouette ?? {}).filter(([, value]) => value !== null);
    const labels = new Set(answer.points.map((point) => point.label).filter(Boolean));
    separationTitle.hidden = !scores.length;
    separationTitle.textContent = t.where.separation(labels.size > 1);
    const least = Math.min(0, ...scores.map(([, value]) => value));
    bars(
      separation,
      layerNames(Object.fromEntries(scores)).map((name) => ({
        name: layerName(t, name),
        value: answer.silhouette[name],
        text: fixed(answer.silhouette[name]),
        chosen: name === layer,
      })),
      [least, 1],
    );
    result.hidden = false;
    frame.request = {
      route: "/scatter",
      body: body(),
      shown: [
        `[(point["label"], point["layers"]["${layer}"]) for point in answer["points"]]`,
        'answer["silhouette"]',
      ],
    };
  }

  function showLegend(names) {
    const entry = select(legend)
      .selectAll("li")
      .data(names)
      .join((enter) => {
        const item = enter.append("li");
        item
          .append("svg")
          .attr("viewBox", "-9 -9 18 18")
          .attr("aria-hidden", "true")
          .append("path");
        item.append("span");
        return item;
      });
    entry.attr("class", (_, group) => `g${group % 8}`);
    entry.select("path").attr("d", (_, group) => SHAPES[group % SHAPES.length]);
    entry.select("span").text((name) => name);
  }

  function say(place) {
    const point = answer.points[place];
    const group = [...new Set(answer.points.map(nameOf))].sort().indexOf(nameOf(point));
    said.replaceChildren(
      h("strong", { class: `tag g${group % 8}` }, nameOf(point)),
      " ",
      asked[point.sentence].text,
    );
  }

  refill();
  ask(0);
  return frame;
}
