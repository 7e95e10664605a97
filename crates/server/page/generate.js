// The model writes: under the constraint, and beside it without.

import { readExplain } from "./answers.js";
import { post, stream } from "./api.js";
import { several, duration, element } from "./dom.js";
import { constraint, reading } from "./kinds.js";
import { massLine } from "./mass.js";
import { chatRequest } from "./request.js";
import { classOf, sparkline, tokenElement } from "./tokens.js";

/**
 * One answer that is being written, in a column of its own. `settings` are those of `chatRequest`;
 * `limited` is `{ kind, source }`, or nothing for an answer without a constraint; `judged` is the constraint by which an answer is judged.
 */
export class Answer {
  constructor(title, settings, limited, judged, { use, copy }) {
    this.settings = settings;
    this.limited = limited;
    this.judged = judged;
    this.tokens = [];
    this.text = ""; // Not the texts of the tokens: a character may be cut into several of them.
    this.abort = new AbortController();
    this.state = element("span", { class: "chip", role: "status" }, "waiting");
    this.output = element("div", { class: "tokens output", "aria-label": title, tabindex: "0", role: "group" });
    this.numbers = element("p", { class: "quiet numbers" }, "\u00a0");
    this.spark = element("div", { class: "spark" });
    this.mass = element("div", { class: "spark mass" });
    this.use = element("button", { type: "button", class: "link", hidden: true, onclick: () => use(this.text) }, "Check this text");
    this.reason = element("p", { class: "reason", hidden: true });
    this.copy = element("button", { type: "button", class: "link", hidden: true, onclick: () => copy(this.text) }, "Copy");
    this.element = element("section", { class: "answer", "aria-label": title },
      element("div", { class: "bar" }, element("h2", {}, title), this.state, element("span", { class: "grow" })),
      this.output, this.reason, element("div", { class: "foot" }, this.numbers, this.copy, this.use), this.mass, this.spark);
  }

  stop() {
    this.abort.abort();
  }

  /** Asks, shows what comes, and judges it at the end. Errors are shown, not thrown. */
  async run() {
    let finish = "stopped";
    try {
      finish = await this.listen();
    } catch (error) {
      if (error.name !== "AbortError") {
        this.fail(error);
        return;
      }
    }
    this.use.hidden = this.copy.hidden = this.tokens.length === 0;
    this.tell();
    await this.judge(finish);
  }

  async listen() {
    const asked = chatRequest(this.settings, this.limited);
    const request = { ...asked, stream: true, stream_options: { include_usage: true }, maskwright: { ...asked.maskwright, tokens: true } };
    let finish = "stop";
    this.began = 0;
    for await (const chunk of stream("/v1/chat/completions", request, { signal: this.abort.signal })) {
      const choice = chunk.choices?.[0];
      this.text += choice?.delta?.content ?? "";
      const pieces = chunk.maskwright?.tokens ?? plain(choice?.delta?.content);
      if (pieces.length > 0) this.write(pieces);
      if (choice?.finish_reason) finish = choice.finish_reason;
      this.isSqueezed ||= chunk.maskwright?.squeezed === true;
      if (chunk.usage) this.usage = { ...chunk.usage, ...chunk.maskwright };
    }
    return finish;
  }

  write(pieces) {
    const now = performance.now();
    if (this.tokens.length === 0) {
      this.began = now;
      this.first = pieces.length;
      this.label("writing", "");
    }
    this.last = now;
    const follows = this.output.scrollTop + this.output.clientHeight >= this.output.scrollHeight - 8;
    for (const piece of pieces) {
      // Until the constraint is asked about it, a token is neither good nor bad.
      const token = { ...piece, text: piece.text ?? "", micros: piece.mask_micros, allowed: this.limited ? true : null };
      this.tokens.push(token);
      this.output.append(...tokenElement(token));
    }
    if (follows) this.output.scrollTop = this.output.scrollHeight;
    massLine(this.mass, this.tokens);
    this.tell();
  }

  /** What the numbers say: how many, how fast, how many forced, how long a mask took. */
  tell() {
    const parts = [several(this.usage?.completion_tokens ?? this.tokens.length, "token")];
    const seconds = (this.last - this.began) / 1000;
    // The first piece came when the clock started, so only what came later was timed.
    const timed = this.tokens.length - this.first;
    const speed = this.usage?.tokens_per_second ?? (seconds > 0 && timed > 0 ? timed / seconds : 0);
    if (speed > 0) parts.push(`${speed.toFixed(1)} tokens/s`);
    const forced = this.tokens.filter((token) => token.forced).length;
    if (forced > 0) parts.push(`${forced} forced (${Math.round((100 * forced) / this.tokens.length)} %)`);
    // While the model wrote, if the server told it; otherwise as it was measured for the judgement.
    const { masks, mask_micros: spent } = this.usage ?? {};
    const times = this.tokens.map((token) => token.micros).filter(Number.isFinite).sort((a, b) => a - b);
    if (masks > 0 && Number.isFinite(spent)) parts.push(`${duration(spent / masks)} a mask`);
    else if (times.length > 0) parts.push(`${duration(times[times.length >> 1])} a mask (median)`);
    this.numbers.textContent = parts.join(" · ");
  }

  /** Asks the constraint about the answer: where it leaves it, and what masks cost on the way. */
  async judge(finish) {
    if (this.tokens.length === 0) {
      this.label(finish === "stopped" ? "stopped" : "empty", "");
      return;
    }
    if (!this.judged) {
      this.label(ENDINGS[finish] ?? finish, "");
      return;
    }
    let verdict;
    try {
      verdict = await this.explain();
    } catch (error) {
      this.label(`not judged: ${error.message}`, "warning");
      return;
    }
    if (verdict.rejected) {
      this.label("breaks the constraint", "error");
      this.reason.hidden = false;
      this.reason.textContent = `Token ${verdict.rejected.index + 1}: ${verdict.rejected.reason ?? "not allowed here"}`;
    } else if (verdict.complete) this.label(this.isSqueezed ? "fits, squeezed into the tokens" : "fits the constraint", "good");
    else this.label(finish === "length" ? "cut off at the token limit" : "not finished", "warning");
    this.paint(verdict.tokens);
  }

  /** By its own tokens if they are known: cut anew, the text could have others. */
  async explain() {
    const ids = this.tokens.map((token) => token.id);
    const what = ids.every(Number.isInteger) ? { tokens: ids } : { text: this.text };
    const { kind, source } = this.judged;
    const body = { constraint: constraint(kind, source), maskwright: reading(kind, this.settings), ...what, limit: 0 };
    return readExplain(await post("/v1/explain", body, { signal: AbortSignal.timeout(20_000) }));
  }

  paint(judgements) {
    const isSame = judgements.length >= this.tokens.length && this.tokens.every((token, n) => token.id === undefined || token.id === judgements[n].id);
    if (isSame) {
      this.tokens = this.tokens.map((token, n) => ({ ...judgements[n], ...token, micros: token.micros ?? judgements[n].micros, allowed: judgements[n].allowed }));
    } else {
      this.tokens = judgements;
    }
    this.output.replaceChildren(...this.tokens.flatMap(tokenElement));
    if (!this.limited) return;
    const timed = this.tokens.filter((token) => Number.isFinite(token.micros));
    if (timed.length === 0) return;
    sparkline(this.spark, timed.map((token) => ({ value: token.micros, class: classOf(token) })), {
      unit: "µs", describe: "Time of the mask for each token",
    });
    this.tell();
  }

  fail(error) {
    this.label("failed", "error");
    this.output.append(element("p", { class: "error" }, error.message));
  }

  label(text, name) {
    this.state.textContent = text;
    this.state.className = `chip ${name}`;
  }
}

const ENDINGS = { stop: "finished", length: "cut off at the token limit", stopped: "stopped" };

function plain(content) {
  return content ? [{ text: content }] : [];
}
