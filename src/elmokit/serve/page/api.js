/** Requests to the service, and the rule that only the newest answer counts. */

const KEY = "elmokit-api-key";
const MOST_KEPT = 40; // answers
const kept = new Map();

/** Why a request failed; `kind` chooses the sentence in the language of the page. */
export class ServiceError extends Error {
  constructor(kind, sentence, status = 0) {
    super(sentence);
    this.kind = kind;
    this.status = status;
  }
}

/** The address of a route, also behind a proxy that serves the page under a path. */
export function address(route) {
  return new URL(route.replace(/^\//, ""), document.baseURI.split("#")[0]).href;
}

export function apiKey() {
  return sessionStorage.getItem(KEY);
}

/** Keep the key until the tab is closed. */
export function setApiKey(key) {
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
}

/** Send a request; without a body it is a GET. The service answers equal requests equally. */
export async function call(route, body = null, signal = undefined) {
  const text = body === null ? null : JSON.stringify(body);
  const name = `${route} ${text}`;
  if (text !== null && kept.has(name)) return kept.get(name);
  const headers = { Accept: "application/json" };
  if (text !== null) headers["Content-Type"] = "application/json";
  if (apiKey()) headers.Authorization = `Bearer ${apiKey()}`;
  let response;
  try {
    const method = text === null ? "GET" : "POST";
    response = await fetch(address(route), { method, headers, body: text, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError("unreachable", error.message);
  }
  const answer = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    return null;
  });
  if (!response.ok) {
    const kind = answer?.error_type ?? (response.status === 401 ? "unauthorized" : "backend");
    throw new ServiceError(kind, answer?.error ?? response.statusText, response.status);
  }
  if (text !== null) keep(name, answer);
  return answer;
}

function keep(name, answer) {
  kept.set(name, answer);
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
}

/** One question at a time: asking again drops the question before, sent or not. */
export class Latest {
  #number = 0;
  #timer = 0;
  #controller = null;

  /** Ask after `delay` milliseconds without another question. */
  ask(route, body, delay, { done, failed, busy }) {
    this.drop();
    const number = this.#number;
    const current = () => number === this.#number;
    this.#timer = setTimeout(async () => {
      this.#controller = new AbortController();
      busy(true);
      try {
        const answer = await call(route, body, this.#controller.signal);
        if (current()) done(answer);
      } catch (error) {
        if (current() && error.name !== "AbortError") failed(error);
      } finally {
        if (current()) busy(false);
      }
    }, delay);
  }

  /** Forget the last question; its answer will not be used. */
  drop() {
    this.#number += 1;
    clearTimeout(this.#timer);
    this.#controller?.abort();
    this.#controller = null;
  }
}
