// Values that this browser stores. Without storage (private windows), nothing is stored.

const PREFIX = "translate.";

export function load(name, fallback, store = () => localStorage) {
  try {
    const text = store().getItem(PREFIX + name);
    return text === null ? fallback : JSON.parse(text);
  } catch {
    return fallback;
  }
}

export function save(name, value, store = () => localStorage) {
  try {
    if (value === null) store().removeItem(PREFIX + name);
    else store().setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // Full or forbidden: the page goes on, and forgets.
  }
}
