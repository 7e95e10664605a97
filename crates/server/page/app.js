// The page: what it holds, and who is told when something changes.
//
// There is one state (the constraint, the text, the settings of the model) and it lives in the fields of the page. A change of
// the constraint asks the server to check it; a good constraint, or a change of the text, asks how the text goes through it.
// An answer that comes after a newer question is dropped.

import { gotoRule, showCoverage, showProblems, showRules, usedBy } from "./about.js";
import { createAllowed, PAGE_SIZE } from "./allowed.js";
import { asDiagnostic, readCheck, readExplain } from "./answers.js";
import { ApiError, get, hasKey, post, setKey } from "./api.js";
import { byId, counted, debounced, duration, element, several } from "./dom.js";
import { draw } from "./drawing.js";
import { createEditor } from "./editor.js";
import { Answer } from "./generate.js";
import { constraint, hasSchemas, KINDS, reading, WHITESPACE, words } from "./kinds.js";
import { told } from "./document.js";
import { schemasIn } from "./import.js";
import { indexOfByte, placesOfPointers } from "./places.js";
import { asCurl, asPython, asRust, chatRequest } from "./request.js";
import { pack, unpack } from "./share.js";
import { createTabs, createTheme } from "./frame.js";
import { classOf, createTokens, described, sparkline } from "./tokens.js";
import { prose, shownToken, unseen } from "./visible.js";

const page = {
  kind: byId("kind"), example: byId("example"), text: byId("text"), prompt: byId("prompt"), temperature: byId("temperature"),
  maxTokens: byId("max-tokens"), seed: byId("seed"), compare: byId("compare"), finish: byId("finish"), mass: byId("mass"), whitespace: byId("whitespace"),
  keyOrder: byId("key-order"),
};

// What was typed in each language, so that switching between them loses nothing.
const drafts = new Map();
let language = null; // The one that the editor shows.

let model = null;
let checked = null; // The last answer of the check, if it is about what is in the editor.
let explained = null; // The last answer about the text, likewise.
let answers = [];

const editor = createEditor(byId("editor"), {
  id: "source", label: "The constraint", words: (text) => words(page.kind.value, text), changed: () => constraintChanged(),
});
const details = createTabs(["coverage", "rules", "network"]);
const tabs = createTabs(["check", "generate"]);
const tokens = createTokens(byId("tokens"), showDetail);
const allowed = createAllowed({ root: byId("next"), query: byId("next-query"), count: byId("next-count") }, { fetchPage: nextPage, chosen: insert });

// ----- The constraint -----

const checkSoon = debounced(250, check);

function constraintChanged() {
  checked = null;
  outdated();
  verdict("checking…", "");
  checkSoon();
}

async function check() {
  const asked = latest("check");
  const [kind, source] = [page.kind.value, editor.value];
  if (source.trim() === "") {
    verdict("empty", "");
    showCheck(null, source);
    return;
  }
  try {
    const answer = await post("/v1/grammar/check", { constraint: constraint(kind, source), maskwright: reading(kind, currentReading()) }, asked);
    showCheck(readCheck(answer), source);
  } catch (error) {
    if (isOld(error)) return;
    refuse(error);
    showCheck({ ...readCheck({}), diagnostics: [asDiagnostic(error)] }, source);
  }
}

function showCheck(answer, source) {
  checked = answer;
  const pointers = placesOfPointers(source);
  const goto = (place) => editor.select(place);
  byId("coverage-count").textContent = answer?.report ? counted(answer.report.length) : "";
  byId("rules-count").textContent = answer?.ok && answer.rulesTotal > 0 ? counted(answer.rulesTotal) : "";
  editor.mark(showProblems(byId("problems"), answer?.diagnostics ?? [], source, pointers, goto));
  if (!answer?.ok) {
    if (answer) verdict("refused", "error");
    for (const name of ["coverage", "rules", "network"]) byId(name).replaceChildren(element("p", { class: "quiet" }, "Nothing until the constraint is accepted."));
    explain();
    return;
  }
  verdict(Number.isFinite(answer.micros.compile) ? `compiled in ${duration(answer.micros.compile)}` : "accepted", "good");
  showCoverage(byId("coverage"), answer.report, pointers, goto);
  showRules(byId("rules"), answer.rules, answer.rulesTotal);
  showDrawing(answer);
  explain();
}

function showDrawing({ rules, automaton }) {
  const root = byId("network");
  if (automaton) {
    const order = automaton.states.map((state, index) => state.state ?? state.id ?? index);
    const start = order.indexOf(automaton.start);
    const at = (name) => order.indexOf(name);
    // The start is drawn first.
    const places = [start, ...order.keys()].filter((index, n, all) => index >= 0 && all.indexOf(index) === n);
    const nodes = places.map((index) => ({ name: String(order[index]), isEnd: automaton.states[index].accepting }));
    const edges = automaton.edges.map(({ from, to, label }) => ({ from: places.indexOf(at(from)), to: places.indexOf(at(to)), label }));
    draw(root, { nodes, edges }, { round: true, describe: "The automaton: states, and the bytes between them" });
    return;
  }
  const names = new Map(rules.map((rule, index) => [rule.name, index]));
  const edges = rules.flatMap((rule, from) => [...usedBy(rule, names)].map((name) => ({ from, to: names.get(name) })));
  const chosen = (name) => {
    details.select("rules");
    gotoRule(byId("rules"), name, rules);
  };
  draw(root, { nodes: rules.map(({ name }) => ({ name })), edges }, { describe: "Which rule uses which", chosen });
}

function verdict(text, name) {
  byId("verdict").textContent = text;
  byId("verdict").className = `chip ${name}`;
}

// ----- The text -----

const explainSoon = debounced(120, explain);

page.text.addEventListener("input", () => {
  byId("hidden-characters").textContent = hiddenOf(page.text.value);
  outdated();
  explainSoon();
});

/** What is shown about the text is about another one now. */
function outdated() {
  questions.get("explain")?.abort();
  byId("check").setAttribute("aria-busy", "true");
}

async function explain() {
  explainSoon.cancel();
  if (checked === null && editor.value.trim() !== "") return; // The check will ask when it is done.
  outdated();
  const asked = latest("explain");
  try {
    const text = page.text.value;
    showText({ ...readExplain(await post("/v1/explain", question({ query: "", offset: 0 }), asked)), text });
  } catch (error) {
    if (isOld(error)) return;
    refuse(error);
    showText(null);
    byId("judgement").replaceChildren(element("span", { class: "error" }, error.message));
  }
}

/** Without a good constraint the text is only cut into tokens. */
function question({ query, offset }) {
  const kind = page.kind.value;
  const limits = checked?.ok ? { constraint: constraint(kind, editor.value), maskwright: reading(kind, currentReading()) } : {};
  return { ...limits, text: page.text.value, query, offset, limit: PAGE_SIZE, ...(checked?.ok && query !== "" ? { why: query } : {}) };
}

function showText(answer) {
  explained = answer;
  byId("check").setAttribute("aria-busy", "false");
  byId("hidden-characters").textContent = hiddenOf(page.text.value);
  tokens.show(answer?.tokens ?? []);
  showDetail(-1);
  byId("judgement").replaceChildren(...judgement(answer));
  const steps = answer?.tokens.filter((token) => Number.isFinite(token.mask_size)) ?? [];
  sparkline(byId("spark"), steps.map((token) => ({ value: token.mask_size, class: classOf(token) })), {
    top: answer?.vocabulary, unit: "tokens", describe: `Tokens allowed at each of ${several(steps.length, "step")}`,
    pointed: (index) => {
      tokens.select(index);
    },
  });
  byId("why").hidden = true;
  allowed.refresh(answer?.next ?? null);
}

function judgement(answer) {
  if (!answer) return ["\u00a0"];
  const { rejected, complete, tokens: cut } = answer;
  if (!checked?.ok) return [element("span", { class: "quiet" }, `${several(cut.length, "token")}, and no constraint to judge them by.`)];
  if (rejected) {
    const reason = rejected.reason ?? rejected.message ?? "This token is not allowed.";
    const inside = rejected.rules?.[0]?.length ? ` In ${rejected.rules[0].slice(0, 4).join(" in ")}.` : "";
    const plain = documented(rejected);
    const expected = rejected.expected && !reason.includes(rejected.expected) ? ` Expected: ${rejected.expected}.` : "";
    return [element("span", { class: "error" }, `✗ Token ${rejected.index + 1}`), " ", ...(plain ? [element("b", {}, ...prose(`${plain}.`)), " "] : []), ...prose(`${sentence(reason)}${expected}${inside}`)];
  }
  if (complete) return [element("span", { class: "good" }, "✓ Complete"), ` The whole text fits the constraint, in ${several(cut.length, "token")}.`];
  return [element("span", { class: "good" }, cut.length === 0 ? "Begin" : "✓ So far"), cut.length === 0 ? " with one of the tokens below." : " The text fits, but it cannot end here."];
}

/** The same in the terms of the document, if it is one of a schema. */
function documented({ byte }) {
  if (page.kind.value !== "json_schema" || !Number.isInteger(byte)) return null;
  const at = indexOfByte(page.text.value, byte);
  return told(editor.value, page.text.value.slice(0, at), page.text.value.slice(at));
}

function sentence(text) {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

function showDetail(index) {
  const token = explained?.tokens[index];
  byId("token-detail").textContent = token ? `${index + 1}. ${described(token, explained.vocabulary)}` : "";
}

function hiddenOf(text) {
  const found = unseen(text);
  return found ? `Characters that cannot be seen: ${found}` : "";
}

async function nextPage(query, offset) {
  if (!checked?.ok) return null;
  try {
    const answer = readExplain(await post("/v1/explain", question({ query, offset }), latest("next")));
    showWhy(query, answer.why);
    return answer.next;
  } catch (error) {
    if (!isOld(error)) refuse(error);
    return null;
  }
}

/** What is searched for may not come next: why not? */
function showWhy(query, why) {
  const line = byId("why");
  const refused = query === "" ? [] : why.filter((token) => token.allowed === false);
  line.hidden = refused.length === 0 || refused.length < why.length;
  if (line.hidden) return;
  line.replaceChildren(element("span", { class: "error" }, "Why not "), element("span", { class: "token bad" }, shownToken(refused[0])), element("span", { class: "error" }, "?"), " ",
    ...prose(sentence(refused[0].reason ?? "it is not allowed here")));
}

/** Puts a token behind what is accepted; what was rejected makes room for it. */
function insert(token) {
  if (explained?.text !== page.text.value) return; // The list is about another text; a new one is on its way.
  const { rejected } = explained;
  const kept = rejected ? page.text.value.slice(0, acceptedLength(rejected)) : page.text.value;
  page.text.value = kept + token.text;
  byId("next-query").value = "";
  explain();
}

function acceptedLength({ index, token_byte: byte }) {
  if (Number.isInteger(byte)) return indexOfByte(page.text.value, byte);
  return explained.tokens.slice(0, index).map((token) => token.text).join("").length;
}

// ----- The model -----

byId("settings").addEventListener("submit", (event) => {
  event.preventDefault();
  generate();
});
byId("stop").addEventListener("click", () => answers.forEach((answer) => answer.stop()));

/** The constraint of the page, if there is one. */
function currentConstraint() {
  return editor.value.trim() === "" ? null : { kind: page.kind.value, source: editor.value };
}

async function copy(text, done) {
  try {
    await navigator.clipboard.writeText(text);
    say(done);
  } catch {
    say("The browser does not let this page copy");
  }
}

async function generate() {
  if (!byId("settings").reportValidity()) return;
  answers.forEach((answer) => answer.stop());
  if (checked && !checked.ok) {
    byId("answers").replaceChildren(element("p", { class: "error" }, "The constraint is refused: fix it first. An empty one constrains nothing."));
    return;
  }
  const state = currentState();
  const judged = currentConstraint();
  const settings = { model, ...state };
  const use = (text) => {
    tabs.select("check");
    page.text.value = text;
    explain();
  };
  const takes = { use, copy: (text) => copy(text, "Answer copied") };
  const mine = [new Answer(judged ? "With the constraint" : "Without a constraint", settings, judged, judged, takes)];
  if (judged && state.compare) mine.push(new Answer("Without it", settings, null, judged, takes));
  answers = mine;
  byId("answers").replaceChildren(...mine.map((answer) => answer.element));
  running(true);
  await Promise.all(mine.map((answer) => answer.run()));
  if (answers === mine) running(false);
}

function running(is) {
  byId("go").hidden = is;
  byId("stop").hidden = !is;
}

// ----- The page itself -----

function currentState() {
  return {
    kind: page.kind.value, source: editor.value, text: page.text.value, prompt: page.prompt.value,
    temperature: page.temperature.valueAsNumber, maxTokens: page.maxTokens.valueAsNumber,
    seed: page.seed.value === "" ? null : page.seed.valueAsNumber, compare: page.compare.checked, finish: page.finish.checked, mass: page.mass.checked, tab: tabs.selected,
    ...currentReading(),
  };
}

function currentReading() {
  return { whitespace: page.whitespace.value, keyOrder: page.keyOrder.value };
}

/** The editor shows another language, with what was last typed in it. */
function speak(kind, source) {
  if (language !== null) drafts.set(language, editor.value);
  language = kind;
  page.kind.value = kind;
  byId("reading").hidden = !hasSchemas(kind);
  editor.set(source ?? drafts.get(kind) ?? "");
}

function restore(state) {
  speak(state.kind ?? page.kind.value, state.source);
  for (const name of ["text", "prompt", "temperature", "maxTokens", "whitespace", "keyOrder"]) if (state[name] !== undefined) page[name].value = state[name];
  if (state.seed !== undefined) page.seed.value = state.seed ?? "";
  if (state.compare !== undefined) page.compare.checked = state.compare;
  if (state.finish !== undefined) page.finish.checked = state.finish;
  if (state.mass !== undefined) page.mass.checked = state.mass;
  if (state.tab) tabs.select(state.tab);
  byId("next-query").value = "";
  constraintChanged();
  checkSoon.now();
}

async function share() {
  history.replaceState(null, "", `#${await pack(currentState())}`);
  try {
    await navigator.clipboard.writeText(location.href);
    say("Link copied");
  } catch {
    say("The address now holds everything");
  }
}

function say(text) {
  byId("said").textContent = text;
  setTimeout(() => (byId("said").textContent = ""), 3000);
}

const questions = new Map();

/** A signal for a question; the question of before, if it is still open, is given up. */
function latest(name) {
  questions.get(name)?.abort();
  const controller = new AbortController();
  questions.set(name, controller);
  return { signal: controller.signal };
}

function isOld(error) {
  return error.name === "AbortError";
}

/** A server that wants a key gets one; everything else is shown by who asked. */
function refuse(error) {
  const dialog = byId("key-dialog");
  byId("key-wrong").hidden = !hasKey();
  if (error instanceof ApiError && error.status === 401 && !dialog.open && !dialog.dataset.declined) dialog.showModal();
}

async function connect() {
  try {
    const { data } = await get("/v1/models");
    model = data?.[0]?.id ?? null;
    byId("model").textContent = model ?? "no model is loaded";
  } catch (error) {
    refuse(error);
    byId("model").textContent = error.message;
  }
}

async function loadExamples() {
  const examples = await get("/static/examples.json");
  const groups = new Map();
  examples.forEach((example, index) => {
    if (!drafts.has(example.kind)) drafts.set(example.kind, example.source.join("\n"));
    const label = KINDS.get(example.kind)?.label ?? example.kind;
    if (!groups.has(label)) groups.set(label, element("optgroup", { label }));
    groups.get(label).append(element("option", { value: index }, example.name));
  });
  page.example.append(...groups.values());
  page.example.addEventListener("change", () => {
    const example = examples[page.example.value];
    if (example) restore(fromExample(example));
  });
  return examples;
}

function fromExample({ kind, source, text, prompt }) {
  return { kind, source: source.join("\n"), text, prompt };
}

/** The dialog that takes schemas out of other files. */
function createImport() {
  const [dialog, text, which, wrong, names] = ["import-dialog", "import-text", "import-which", "import-wrong", "import-name"].map(byId);
  let found = [];
  const read = () => {
    found = [];
    wrong.hidden = which.hidden = true;
    if (text.value.trim() === "") return;
    try {
      found = schemasIn(text.value);
    } catch (error) {
      wrong.textContent = error.message;
      wrong.hidden = false;
      return;
    }
    names.replaceChildren(...found.map(({ name }, index) => element("option", { value: index }, name)));
    which.hidden = found.length < 2;
  };
  text.addEventListener("input", read);
  byId("import-file").addEventListener("change", async (event) => {
    const file = event.target.files?.[0];
    if (!file) return;
    text.value = await file.text();
    read();
  });
  byId("import").addEventListener("click", () => dialog.showModal());
  byId("import-cancel").addEventListener("click", () => dialog.close());
  byId("import-form").addEventListener("submit", (event) => {
    const chosen = found[Number(names.value) || 0];
    if (!chosen) {
      event.preventDefault();
      read();
      return;
    }
    restore({ kind: "json_schema", source: chosen.source, text: "" });
    page.example.value = "";
  });
}

async function start() {
  page.kind.append(...[...KINDS].map(([value, { label }]) => element("option", { value }, label)));
  page.whitespace.append(...[...WHITESPACE].map(([value, label]) => element("option", { value }, label)));
  page.kind.addEventListener("change", () => {
    speak(page.kind.value);
    page.example.value = "";
    constraintChanged();
  });
  for (const field of [page.whitespace, page.keyOrder]) field.addEventListener("change", constraintChanged);
  byId("as-curl").addEventListener("click", () => copy(asCurl(location.origin, chatRequest({ model, ...currentState() }, currentConstraint())), "Command copied"));
  byId("as-python").addEventListener("click", () => copy(asPython(location.origin, chatRequest({ model, ...currentState() }, currentConstraint())), "Program copied"));
  byId("as-rust").addEventListener("click", () => copy(asRust(currentState()), "Program copied"));
  createImport();
  createTheme(byId("theme"));
  byId("share").addEventListener("click", share);
  byId("key-cancel").addEventListener("click", () => {
    byId("key-dialog").dataset.declined = "yes";
    byId("key-dialog").close();
  });
  byId("key-form").addEventListener("submit", () => {
    setKey(byId("key").value);
    byId("key").value = "";
    connect();
    constraintChanged();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !byId("stop").hidden) answers.forEach((answer) => answer.stop());
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    tabs.select("generate");
    generate();
  });
  const open = async () => {
    const state = location.hash.length > 1 ? await unpack(location.hash) : null;
    if (state) restore(state);
    else if (location.hash.length > 1) say("The link cannot be read");
    return state;
  };
  window.addEventListener("hashchange", open);
  const [examples] = await Promise.all([loadExamples(), connect()]);
  if (!(await open()) && examples.length > 0) {
    page.example.value = "0";
    restore(fromExample(examples[0]));
  }
}

start().catch((error) => {
  byId("model").textContent = error.message;
});
