// The tokens that may come next: a list that can be searched, and whose entries can be put into the text.

import { counted, debounced, element, several } from "./dom.js";
import { isPartOfCharacter, shownToken } from "./visible.js";

export const PAGE_SIZE = 150;
const FEW_BLANKS = 4;

/**
 * Fills `root`. `fetchPage(query, offset)` gives `{ total, matching, end, tokens }` or nothing, `chosen(token)` is told what was
 * clicked.
 */
export function createAllowed({ root, query, count }, { fetchPage, chosen }) {
  let shown = [];
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", "Tokens that may come next");

  const option = (token) => {
    const canInsert = !token.special && !isPartOfCharacter(token) && token.text !== "";
    const why = token.special ? "a special token, which no text stands for" : "part of a character, which cannot be typed";
    return element("button", {
      type: "button", class: "token option", tabindex: "-1",
      title: canInsert ? `id ${token.id}: put it into the text` : `id ${token.id}: ${why}`,
      disabled: !canInsert, onclick: () => chosen(token),
    }, shownToken(token));
  };

  const show = (next) => {
    shown = next?.tokens ?? [];
    root.replaceChildren(...shown.filter((token) => !isBlank(token)).map(option));
    addBlanks(shown.filter(isBlank));
    addMore(next);
    rove(0, false);
    count.textContent = next ? summary(next, query.value) : "";
  };
  // White space comes in dozens of lengths: it is one entry that opens.
  const addBlanks = (blanks) => {
    root.querySelector(".blanks")?.remove();
    if (blanks.length === 0) return;
    const few = blanks.length < FEW_BLANKS;
    if (few) root.prepend(...blanks.map(option));
    else root.prepend(element("details", { class: "blanks" }, element("summary", {}, `${counted(blanks.length)} of white space`), element("div", {}, ...blanks.map(option))));
  };
  const addMore = (next) => {
    const left = (next?.matching ?? next?.total ?? 0) - shown.length;
    if (left <= 0) return;
    const more = element("button", { type: "button", class: "more", tabindex: "-1", onclick: () => loadMore(more) }, `${counted(left)} more…`);
    root.append(more);
  };
  const loadMore = async (button) => {
    button.disabled = true;
    const next = await fetchPage(query.value, shown.length);
    if (!next || !button.isConnected) return;
    const from = shown.length;
    shown = [...shown, ...next.tokens];
    button.replaceWith(...next.tokens.filter((token) => !isBlank(token)).map(option));
    addBlanks(shown.filter(isBlank));
    addMore(next);
    rove(from, true);
  };

  const search = debounced(150, async () => {
    const asked = query.value;
    const next = await fetchPage(asked, 0);
    if (next && query.value === asked) show(next);
  });
  query.addEventListener("input", () => search());
  query.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      rove(0, true);
    } else if (event.key === "Enter") {
      (root.querySelector(":scope > button:not(:disabled)") ?? root.querySelector("button:not(:disabled)"))?.click();
    }
  });

  const reachable = () => [...root.querySelectorAll("button:not(:disabled)")].filter((button) => button.checkVisibility());
  // One of the buttons is in the order of the Tab key, and arrows move among them.
  const rove = (index, focus) => {
    const buttons = reachable();
    buttons.forEach((button, at) => (button.tabIndex = at === index ? 0 : -1));
    if (focus) (buttons[index] ?? query).focus();
  };
  root.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const buttons = reachable();
    const index = buttons.indexOf(document.activeElement) + step;
    if (index < 0) query.focus();
    else rove(Math.min(index, buttons.length - 1), true);
  });

  return {
    /** Shows a first page; `null` empties the list. */
    show,
    /** Shows what matches the search, if there is one. */
    refresh(next) {
      if (query.value === "" || !next) show(next);
      else search.now();
    },
  };
}

function isBlank(token) {
  return !token.special && token.text !== "" && /^[ \t\r\n]+$/.test(token.text);
}

function summary(next, query) {
  const end = next.end ? " · the text may end here" : "";
  const matching = query && Number.isFinite(next.matching) ? `${counted(next.matching)} of ` : "";
  return `${matching}${several(next.total, "token")}${end}`;
}
