// Talking to the server: JSON in and out, server-sent events, and errors in the shape of the OpenAI API.

const KEY = "maskwright-key";
// A server that answers with an endless line must not fill the memory.
const LONGEST_EVENT = 4 << 20;

/** What the server says when it says no. */
export class ApiError extends Error {
  constructor(status, { message, param, code } = {}) {
    super(message || `The server answered with status ${status}.`);
    this.name = "ApiError";
    this.status = status;
    this.param = param ?? null;
    this.code = code ?? null;
  }
}

/** Whether a key was given. */
export function hasKey() {
  return "authorization" in headers();
}

/** Keeps an API key for this tab. */
export function setKey(key) {
  memory.key = key;
  try {
    sessionStorage.setItem(KEY, key);
  } catch {
    // Without storage the key lives as long as the page.
  }
}

/** GET, as JSON. */
export async function get(path, { signal } = {}) {
  return (await ask(path, { headers: headers(), signal })).json();
}

/** POST, JSON to JSON. A string is a body that is written already. */
export async function post(path, body, { signal } = {}) {
  return (await ask(path, request(body, signal))).json();
}

/** POST, and the data of each event of the answer, until `[DONE]`. */
export async function* stream(path, body, { signal } = {}) {
  const response = await ask(path, request(body, signal));
  for await (const data of events(response.body)) {
    if (data === "[DONE]") return;
    const event = JSON.parse(data);
    if (event.error) throw new ApiError(response.status, event.error);
    yield event;
  }
}

/** The data of each server-sent event in a stream of bytes, however it is cut. */
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let data = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      rest += done ? "\n\n" : value;
      if (rest.length > LONGEST_EVENT) throw new Error("The server sent an event that is too long.");
      // A carriage return at the end of a piece may be the first half of a line end.
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
        else if (line === "" && data.length > 0) {
          yield data.join("\n");
          data = [];
        }
      }
      if (done) return;
    }
  } finally {
    // Nobody listens any more, so the server may stop writing.
    reader.cancel().catch(() => {});
  }
}

const memory = { key: null };

function headers() {
  if (memory.key === null) {
    try {
      memory.key = sessionStorage.getItem(KEY) ?? "";
    } catch {
      memory.key = "";
    }
  }
  return memory.key ? { authorization: `Bearer ${memory.key}` } : {};
}

function request(body, signal) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { method: "POST", headers: { ...headers(), "content-type": "application/json" }, body: text, signal };
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { message: "The server cannot be reached. Is it still running?" });
  }
  if (!response.ok) throw new ApiError(response.status, await errorOf(response));
  return response;
}

async function errorOf(response) {
  try {
    const answer = await response.json();
    return typeof answer.error === "string" ? { message: answer.error } : (answer.error ?? {});
  } catch {
    return {};
  }
}
