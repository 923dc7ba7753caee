/** Tasks: what the loaded task models say about a text. */

import { dropDown, h, labelled } from "../dom.js";
import { examplesFor } from "../examples.js";
import { Frame } from "../frame.js";
import { grouping, markedWords } from "../marked_words.js";
import { bars, fixed, textField } from "../widgets.js";
import { missing } from "./neighbours.js";

const ADD_TASK = "elmokit serve --task ner --task pos --task srl";
const PAIRS = {
  qa: ["question", "passage"],
  nli: ["premise", "hypothesis"],
  similarity: ["first", "second"],
};

export function build(app) {
  const { t, view, info } = app;
  const frame = new Frame(app, "tasks");
  if (!info.tasks.length) {
    frame.body.append(missing(t.tasks.none, ADD_TASK));
    return frame;
  }
  const get = (name) => view.get("tasks", name);
  const chosen = () => info.tasks.find((each) => each.name === get("task")) ?? info.tasks[0];
  const choice = dropDown(
    info.tasks.map(({ name, task }) => [name, `${name} · ${t.tasks.kinds[task] ?? task}`]),
    chosen().name,
    (name) => {
      view.set("tasks", "task", name);
      for (const each of ["x", "y"]) view.set("tasks", each, undefined);
      refill();
    },
  );
  const fields = h("div", { class: "fields" });
  const output = h("div", { class: "result output", "aria-live": "polite" });
  frame.body.append(labelled(t.tasks.task, choice), fields, output);
  let inputs = [];

  function names() {
    const { task } = chosen();
    return PAIRS[task] ?? [task === "relation" ? "marked" : "text"];
  }

  function refill() {
    const { task } = chosen();
    const examples = examplesFor(app.model).tasks;
    const kind = { relation: "marked", sentiment: "classify" }[task] ?? task;
    const given = examples[kind] ?? examples.text;
    inputs = names().map((name, place) => {
      const key = ["x", "y"][place];
      return textField(
        app,
        t.tasks.fields[name],
        get(key) ?? given[place],
        (value) => {
          view.set("tasks", key, value === given[place] ? undefined : value);
          ask();
        },
        name === "passage" ? 5 : 2,
      );
    });
    fields.replaceChildren(...inputs);
    output.replaceChildren();
    ask(0);
  }

  function ask(delay = undefined) {
    const texts = inputs.map((field) => field.querySelector("textarea").value);
    if (texts.some((text) => !text.trim())) {
      frame.drop("task");
      frame.request = null;
      frame.tell(t.empty);
      output.replaceChildren();
      return;
    }
    const { name, task } = chosen();
    const route = `/predict/${encodeURIComponent(name)}`;
    // a tab separates the texts of a pair, so there must be no other
    const body = { inputs: texts.map((text) => text.replaceAll("\t", " ")).join("\t") };
    frame.ask(
      "task",
      route,
      body,
      (given) => {
        output.replaceChildren(
          h("h3", {}, t.tasks.result),
          ...shown(t, task, given.predictions[0], texts),
        );
        frame.request = { route, body, shown: ['answer["predictions"][0]'] };
      },
      delay,
    );
  }

  refill();
  return frame;
}

/** The elements of a prediction. */
function shown(t, task, found, texts) {
  if (found.entities)
    return spans(
      t,
      found.words,
      found.entities.map((each) => ({ ...each, label: each.type })),
    );
  if (found.frames)
    return found.frames.length
      ? found.frames.flatMap((frame) => roles(found, frame))
      : [nothing(t)];
  if (found.clusters) return clusters(t, found);
  if (found.tags) {
    const tags = found.tags.map((label, start) => ({ start, end: start + 1, label }));
    return spans(t, found.words, tags);
  }
  if (found.probabilities) return probabilities(found);
  if (task === "qa") return answered(t, found, texts[1]);
  if (typeof found.score === "number") {
    return [h("p", {}, `${t.tasks.score}: `, h("strong", { class: "number" }, fixed(found.score)))];
  }
  return [h("pre", { tabindex: 0 }, JSON.stringify(found, null, 2))];
}

const nothing = (t) => h("p", { class: "note" }, t.tasks.noSpans);

function spans(t, words, found) {
  const group = grouping();
  const marks = found.map((each) => ({ ...each, group: group(each.label) }));
  return [markedWords(words, marks), ...(marks.length ? [] : [nothing(t)])];
}

/** The sentence of a predicate, with its roles. */
function roles({ words, sentences = [words.length] }, frame) {
  const order = grouping();
  const at = frame.predicate;
  let first = 0;
  let number = 0;
  while (first + sentences[number] <= at) first += sentences[number++];
  const marks = frame.roles.map(({ start, end, role }) => ({
    start: start - first,
    end: end - first,
    label: role,
    group: order(role),
  }));
  if (!frame.roles.some(({ start, end }) => start <= at && at < end)) {
    marks.push({ start: at - first, end: at - first + 1, label: "V", group: order("V") });
  }
  const sentence = words.slice(first, first + sentences[number]);
  return [h("h4", {}, words[at]), markedWords(sentence, marks)];
}

function clusters(t, { sentences, clusters: found }) {
  const marks = found.flatMap((mentions, group) =>
    mentions.map(([start, last]) => ({ start, end: last + 1, label: String(group + 1), group })),
  );
  return [markedWords(sentences.flat(), marks), ...(marks.length ? [] : [nothing(t)])];
}

function probabilities({ label, probabilities: all }) {
  const list = h("ul", { class: "bars" });
  const rows = Object.entries(all).sort((x, y) => y[1] - x[1]);
  bars(
    list,
    rows.map(([name, value]) => ({
      name,
      value,
      text: fixed(value),
      chosen: name === label,
    })),
  );
  return [list];
}

function answered(t, { answer, start, end, probability }, passage) {
  if (answer === null || answer === "") return [h("p", { class: "note" }, t.tasks.noAnswer)];
  const characters = [...passage]; // the service counts characters, not UTF-16 units
  const part = (from, to) => characters.slice(from, to).join("");
  return [
    h(
      "p",
      { class: "marked", dir: "auto" },
      part(0, start),
      h("mark", { class: "g0" }, part(start, end)),
      part(end),
    ),
    h("p", { class: "note" }, t.tasks.probability(fixed(probability))),
  ];
}
