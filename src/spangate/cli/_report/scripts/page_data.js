"use strict";
// What the page holds of each run, read when it is asked for; and how times and elements are written.

const PageData = {
  read(id) {
    const block = document.getElementById(id);
    return block ? JSON.parse(block.textContent) : null;
  },

  tree(run) {
    return this.read(`${run}-tree`);
  },

  // Details of spans lie in chunks; of a large run only those are parsed that somebody looks at.
  details(run, chunkSize) {
    const chunks = new Map();
    return (row) => {
      const number = Math.floor(row / chunkSize);
      if (!chunks.has(number)) chunks.set(number, this.read(`${run}-details-${number}`) ?? []);
      return chunks.get(number)[row % chunkSize] ?? null;
    };
  },
};

const STEPS = [
  [86_400e9, "d"],
  [3_600e9, "h"],
  [60e9, "min"],
  [1e9, "s"],
];

function duration(ns) {
  if (ns === null) return "open";
  const step = STEPS.find(([size]) => Math.abs(ns) >= size);
  if (step) return `${(ns / step[0]).toFixed(1).replace(/\.0$/, "")} ${step[1]}`;
  if (Math.abs(ns) >= 1e6) return `${Math.round(ns / 1e6)} ms`;
  return ns ? `${Math.round(ns / 1e3)} µs` : "0 s";
}

function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

// Makes an element. Texts become text nodes, always: nothing that was recorded is ever read as markup.
function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

function bdi(text) {
  return el("bdi", {}, text);
}

function announce(text) {
  document.getElementById("announcements").textContent = text;
}
