// What went wrong, said where it did, and what can be done about it.

import { Refusal, Unreachable } from "./api.js";
import { element } from "./dom.js";

export class Trouble {
  /** @param {HTMLElement} place  role=alert */
  constructor(place, { onRetry, onKey }) {
    Object.assign(this, { place, onRetry, onKey });
  }

  clear() {
    this.place.hidden = true;
    this.place.replaceChildren();
  }

  /** While it is tried again by itself. The text stays the same for screen readers; the seconds are for the eye. */
  waiting(error, seconds) {
    const why = error instanceof Refusal && error.status === 429 ? "Too many requests just now." : "The service is busy.";
    const said = seconds === null ? "No network. Goes on when it is back." : `${why} Trying again.`;
    if (this.place.firstChild?.textContent !== said) this.tell(said);
    if (seconds === null) return;
    const clock = this.place.querySelector(".clock") ?? element("span", { class: "clock", "aria-hidden": "true" });
    clock.textContent = ` in ${seconds} s`;
    this.place.append(clock);
  }

  failed(error) {
    if (error instanceof Refusal && error.status === 403) this.onKey();
    const again = error instanceof Unreachable || (error instanceof Refusal && (error.status >= 500 || error.status === 429));
    const known = error instanceof Refusal || error instanceof Unreachable;
    this.tell(known ? error.message : "Something in this page went wrong.");
    if (!known) console.error(error);
    if (again || !known) this.place.append(element("button", { type: "button", onclick: this.onRetry }, "Try again"));
  }

  tell(text) {
    this.place.hidden = false;
    this.place.replaceChildren(element("span", {}, text));
  }
}
