// The request for an answer: for the page itself, and as people take it home.

import { chatFields, reading } from "./kinds.js";

/** The body of a chat request. `limited` is `{ kind, source }`, or nothing for an answer without a constraint. */
export function chatRequest({ model, prompt, temperature, maxTokens, seed, finish, mass, whitespace, keyOrder }, limited) {
  const request = { ...(model === null ? {} : { model }), messages: [{ role: "user", content: prompt }], temperature, max_tokens: maxTokens };
  if (seed !== null) request.seed = seed;
  if (!limited) return request;
  const own = { ...reading(limited.kind, { whitespace, keyOrder }), finish, ...(mass ? { mass } : {}) };
  return { ...request, ...chatFields(limited.kind, limited.source), maskwright: own };
}

/** A command for a shell. */
export function asCurl(origin, request) {
  const body = JSON.stringify(request, null, 2).replaceAll("'", "'\\''");
  return `curl ${origin}/v1/chat/completions -H 'Content-Type: application/json' -d '${body}'\n`;
}

// What the SDK has arguments for; the rest goes along as it is.
const KNOWN = new Set(["model", "messages", "temperature", "max_tokens", "seed"]);

/** A program for the SDK of OpenAI. */
export function asPython(origin, request) {
  const known = Object.entries({ model: "any", ...request }).filter(([name]) => KNOWN.has(name));
  const others = Object.entries(request).filter(([name]) => !KNOWN.has(name));
  const lines = known.map(([name, value]) => `    ${name}=${python(value, 4)},`);
  if (others.length > 0) lines.push(`    extra_body=${python(Object.fromEntries(others), 4)},`);
  return [
    "from openai import OpenAI", "", `client = OpenAI(base_url=${python(`${origin}/v1`, 0)}, api_key="none")`,
    "answer = client.chat.completions.create(", ...lines, ")", "print(answer.choices[0].message.content)", "",
  ].join("\n");
}

/** A JSON value as Python writes it. */
function python(value, indent) {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return typeof value === "string" ? quoted(value) : String(value);
  const inner = " ".repeat(indent + 4);
  const items = Array.isArray(value)
    ? value.map((item) => python(item, indent + 4))
    : Object.entries(value).map(([name, item]) => `${quoted(name)}: ${python(item, indent + 4)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return items.length === 0 ? open + close : `${open}\n${items.map((item) => `${inner}${item},\n`).join("")}${" ".repeat(indent)}${close}`;
}

/** JSON and Python have the same strings, but for halves of a character, which JSON may escape alone. */
function quoted(text) {
  return JSON.stringify(text);
}
