// What the server answers, in the one shape that the rest of the page knows. Whatever is missing is empty here, so nobody else
// has to ask.

/** The answer of `/v1/grammar/check`. */
export function readCheck(answer) {
  const automaton = answer.automaton ?? null;
  return {
    ok: answer.ok === true,
    diagnostics: [...list(answer.diagnostics), ...list(answer.error?.problems), ...list(answer.warnings).map(asWarning)],
    report: Array.isArray(answer.report) ? answer.report.map(readEntry) : null,
    rules: list(answer.rules).filter((rule) => typeof rule?.name === "string").map((rule) => ({ name: rule.name, text: rule.text ?? "" })),
    rulesTotal: answer.rules_total ?? answer.size?.rules ?? list(answer.rules).length,
    automaton: automaton && list(automaton.states).length > 0 ? automaton : null,
    size: answer.size ?? {},
    micros: answer.micros ?? {},
  };
}

/** The answer of `/v1/explain`. */
export function readExplain(answer) {
  return {
    tokens: list(answer.tokens).map((token) => ({ ...token, text: String(token.text ?? "") })),
    rejected: answer.rejected ?? null,
    complete: answer.complete === true,
    vocabulary: answer.vocabulary ?? null,
    why: list(answer.why).map((token) => ({ ...token, text: String(token.text ?? "") })),
    next: answer.next ? { ...answer.next, tokens: list(answer.next.tokens).map((token) => ({ ...token, text: String(token.text ?? "") })) } : null,
  };
}

/** An error of a request as a diagnostic, so that it is shown where problems are shown. */
export function asDiagnostic(error) {
  return { severity: "error", message: error.message, pointer: error.param?.startsWith?.("/") ? error.param : null };
}

function readEntry(entry) {
  // "note: …" is one word and a remark.
  const [word, ...rest] = String(entry.coverage).split(": ");
  return { pointer: entry.pointer ?? "", coverage: word, note: entry.note ?? (rest.join(": ") || null) };
}

function asWarning(warning) {
  return typeof warning === "string" ? { severity: "warning", message: warning } : { severity: "warning", ...warning };
}

function list(value) {
  return Array.isArray(value) ? value : [];
}
