/** A request as Python or curl, which a reader can run as it is. The key itself is never copied. */

import { address, apiKey } from "./api.js";

/** A value as Python writes it. */
function literal(value, indent = "") {
  const deeper = `${indent}    `;
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "number") return String(value);
  if (typeof value === "string") return JSON.stringify(value); // escapes are the same in Python
  if (Array.isArray(value)) {
    if (!value.length) return "[]";
    return `[\n${value.map((each) => `${deeper}${literal(each, deeper)},\n`).join("")}${indent}]`;
  }
  const items = Object.entries(value).map(
    ([name, each]) => `${deeper}${JSON.stringify(name)}: ${literal(each, deeper)},\n`,
  );
  return `{\n${items.join("")}${indent}}`;
}

/** Python with the standard library alone; `shown` is what to print of `answer`. */
export function asPython({ route, body, shown }) {
  const key = apiKey();
  return [
    "import json",
    key ? "import os" : null,
    "import urllib.request",
    "",
    `body = ${literal(body)}`,
    'headers = {"Content-Type": "application/json"}',
    key ? 'headers["Authorization"] = f"Bearer {os.environ[\'ELMOKIT_API_KEY\']}"' : null,
    `url = ${JSON.stringify(address(route))}`,
    "request = urllib.request.Request(url, json.dumps(body).encode(), headers)",
    "with urllib.request.urlopen(request) as response:",
    "    answer = json.load(response)",
    shown.map((each) => `print(${each})`).join("\n"),
    "",
  ]
    .filter((line) => line !== null)
    .join("\n");
}

function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** A curl command for a POSIX shell. */
export function asCurl({ route, body }) {
  const lines = [`curl -sS ${quoted(address(route))}`, "-H 'Content-Type: application/json'"];
  if (apiKey()) lines.push('-H "Authorization: Bearer $ELMOKIT_API_KEY"');
  lines.push(`--data-raw ${quoted(JSON.stringify(body))}`);
  return `${lines.join(" \\\n  ")}\n`;
}

/** Put a text on the clipboard; false where the browser does not allow it. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // no clipboard outside localhost and https
  }
}
