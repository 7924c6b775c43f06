"use strict";
// Light or dark: as the system has it, until somebody says otherwise. Stands in the head, so that nothing flashes.

const Theme = {
  key: "spangate.theme",

  start() {
    document.documentElement.classList.remove("plain");
    const kept = this.kept();
    if (kept) document.documentElement.dataset.theme = kept;
  },

  kept() {
    try {
      return localStorage.getItem(this.key);
    } catch {
      return null; // a page from disk may have no storage
    }
  },

  isDark() {
    const said = document.documentElement.dataset.theme;
    return said ? said === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  },

  set(theme) {
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(this.key, theme);
    } catch {
      // it holds until the page is left
    }
  },

  wire(button) {
    const label = () => {
      button.textContent = this.isDark() ? "Light theme" : "Dark theme";
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      this.set(this.isDark() ? "light" : "dark");
      label();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
    label();
  },
};

Theme.start();
