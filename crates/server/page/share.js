// The state of the page as a fragment of its address.
//
// `#1.` and the state as JSON, deflated, in base64url. The part of an address behind `#` is not sent to any server. What comes from a
// link was written by a stranger: it is read with limits, and each field is checked.

import { KINDS, WHITESPACE } from "./kinds.js";

const VERSION = "1.";
const LONGEST_FRAGMENT = 400_000;
const LONGEST_STATE = 2 << 20;

const FIELDS = {
  kind: (value) => KINDS.has(value),
  source: isText,
  text: isText,
  prompt: isText,
  temperature: (value) => Number.isFinite(value) && value >= 0 && value <= 2,
  maxTokens: (value) => Number.isInteger(value) && value >= 1 && value <= 4096,
  seed: (value) => value === null || (Number.isInteger(value) && value >= 0 && value <= 4294967295),
  compare: (value) => typeof value === "boolean",
  finish: (value) => typeof value === "boolean",
  mass: (value) => typeof value === "boolean",
  whitespace: (value) => WHITESPACE.has(value),
  keyOrder: (value) => value === "schema" || value === "any",
  tab: (value) => value === "check" || value === "generate",
};

/** The fragment of a state, without `#`. */
export async function pack(state) {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  const packed = await through(bytes, new CompressionStream("deflate-raw"), Infinity);
  let binary = "";
  for (const byte of packed) binary += String.fromCharCode(byte);
  return VERSION + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The state of a fragment: its good fields. `null` if it is no state at all. */
export async function unpack(fragment) {
  const text = fragment.replace(/^#/, "");
  if (!text.startsWith(VERSION) || text.length > LONGEST_FRAGMENT) return null;
  try {
    const binary = atob(text.slice(VERSION.length).replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const bytes = await through(packed, new DecompressionStream("deflate-raw"), LONGEST_STATE);
    return checked(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)));
  } catch {
    return null;
  }
}

function checked(value) {
  if (typeof value !== "object" || value === null) return null;
  const fields = Object.entries(FIELDS).filter(([name, isGood]) => Object.hasOwn(value, name) && isGood(value[name]));
  return Object.fromEntries(fields.map(([name]) => [name, value[name]]));
}

function isText(value) {
  return typeof value === "string";
}

/** Sends bytes through a transformer, and gives up when more than `limit` bytes come out. */
async function through(bytes, transformer, limit) {
  const reader = new Blob([bytes]).stream().pipeThrough(transformer).getReader();
  const parts = [];
  let length = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > limit) {
      await reader.cancel();
      throw new Error("The state is too long.");
    }
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
