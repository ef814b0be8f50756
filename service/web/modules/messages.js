// The texts of the page in the language of the interface: web/messages has a file for each language of `data-languages`.

import { byId, element } from "./dom.js";
import { save } from "./storage.js";

const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;
const ATTRIBUTES = ["aria-label", "content", "placeholder", "title"];

/** The language of the interface, which initial.js chose. */
export const language = document.documentElement.lang;

const messages = await (await fetch(`web/messages/${language}.json`)).json();
const plural = new Intl.PluralRules(language);

/**
 * Returns a text of the page: `localized("memory.sentences", { count: 2 })`. Numbers are written as in the language; `count`
 * selects among the forms of a text.
 */
export function localized(key, values = {}) {
  const message = messages[key];
  if (message === undefined) throw new Error(`web/messages/${language}.json has no ${key}`);
  const text = typeof message === "string" ? message : (message[plural.select(values.count)] ?? message.other);
  const written = (value) => (typeof value === "number" ? value.toLocaleString(language) : isolated(value));
  return text.replace(/\{(\w+)\}/g, (_, name) => written(values[name]));
}

/** Returns a text, isolated if it is written from right to left: it does not change the order of the text around it. */
export function isolated(text) {
  return RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text;
}

/** Returns the name of a language in the language of the interface; `fallback` if the browser does not know it. */
export function languageName(code, fallback) {
  try {
    return new Intl.DisplayNames([language], { type: "language", fallback: "none" }).of(code) ?? fallback;
  } catch {
    return fallback; // not a code of a language
  }
}

/** Returns a text that begins with a capital letter, as in a list; French names of languages do not. */
export function capitalized(text) {
  const [first = ""] = text;
  return first.toLocaleUpperCase(language) + text.slice(first.length);
}

/**
 * Writes the texts of index.html: `data-message` names the text of an element, `data-message-title` that of an attribute.
 * Offers the languages of the interface. @param {() => void} onChange  called before the page begins anew in another one
 */
export function startMessages(onChange) {
  for (const target of document.querySelectorAll("[data-message]")) target.textContent = localized(target.dataset.message);
  for (const name of ATTRIBUTES) {
    const key = `data-message-${name}`;
    for (const target of document.querySelectorAll(`[${key}]`)) target.setAttribute(name, localized(target.getAttribute(key)));
  }
  const select = byId("interface");
  for (const code of document.documentElement.dataset.languages.split(" ")) {
    const name = new Intl.DisplayNames([code], { type: "language" }).of(code);
    select.append(element("option", { value: code, lang: code }, capitalized(name)));
  }
  select.value = language;
  select.addEventListener("change", () => {
    save("interface", select.value);
    onChange();
    location.reload();
  });
}
