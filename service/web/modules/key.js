// The API key, if the service requires one. It is stored as long as the tab is open.

import { load, save } from "./storage.js";

export class Key {
  constructor(form, onChange) {
    this.form = form;
    this.field = form.querySelector("input");
    this.value = load("key", "", () => sessionStorage);
    this.field.value = this.value;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.value = this.field.value.trim();
      save("key", this.value || null, () => sessionStorage);
      onChange();
    });
  }

  ask() {
    this.form.hidden = false;
  }
}
