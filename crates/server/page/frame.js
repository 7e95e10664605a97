// What surrounds the work: tabs, and the colours of the page.

import { byId } from "./dom.js";

/** Tabs whose panels have these ids, and whose buttons are `tab-` and the id. Arrow keys move among them. */
export function createTabs(ids) {
  const buttons = ids.map((id) => byId(`tab-${id}`));
  const tabs = {
    selected: ids[0],
    select(id) {
      tabs.selected = id;
      ids.forEach((other, index) => {
        byId(other).hidden = other !== id;
        buttons[index].setAttribute("aria-selected", String(other === id));
        buttons[index].tabIndex = other === id ? 0 : -1;
      });
    },
  };
  buttons.forEach((button, index) => {
    button.addEventListener("click", () => tabs.select(ids[index]));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = (index + step + ids.length) % ids.length;
      tabs.select(ids[next]);
      buttons[next].focus();
    });
  });
  tabs.select(ids[0]);
  return tabs;
}

const STORED = "maskwright-theme";
const THEMES = new Map([["auto", "as the system"], ["light", "light"], ["dark", "dark"]]);

/** A button that goes round the themes, and remembers. */
export function createTheme(button) {
  const names = [...THEMES.keys()];
  const apply = (name) => {
    document.documentElement.dataset.theme = name;
    button.textContent = `◐ ${name[0].toUpperCase()}${name.slice(1)}`;
    button.setAttribute("aria-label", `Colours: ${THEMES.get(name)}`);
  };
  apply(stored());
  button.addEventListener("click", () => {
    const name = names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length];
    apply(name);
    try {
      localStorage.setItem(STORED, name);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
  });
}

function stored() {
  try {
    const name = localStorage.getItem(STORED);
    return THEMES.has(name) ? name : "auto";
  } catch {
    return "auto";
  }
}
