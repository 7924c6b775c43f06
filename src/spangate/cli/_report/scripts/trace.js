"use strict";
// The part of the page that shows what happened in one run: tool bar, tree, and details. Made when the run is shown.

const LEGEND = ["agent", "generation", "tool", "process"];
const KEYS = [
  ["↑ ↓", "move through the spans"],
  ["→ ←", "open and close, or go to the children and the parent"],
  ["Enter", "show what was recorded about the span"],
  ["n p", "next and previous finding"],
  ["z", "stretch the time line over the span, and back"],
  ["* Home End", "open all siblings, go to the first and the last span"],
  ["Esc", "close the details"],
];

class Trace {
  constructor(place) {
    const { run, name } = place.dataset;
    const data = PageData.tree(run);
    this.tree = new SpanTree(data);
    this.view = new TreeView(this.tree, run, name, (row, isAsked) => this.choose(row, isAsked));
    this.details = new SpanDetails(this.tree, PageData.details(run, data.chunk), run, {
      onClose: () => this.close(),
      onZoom: (row) => this.view.zoom(row),
    });
    this.stage = el("div", { class: "stage" }, this.view.element, this.details.element);
    place.append(this.toolbar(run), this.stage, this.legend(), this.keys());
    this.view.refresh();
  }

  toolbar(run) {
    this.found = el("span", { class: "found", role: "status" });
    const input = el("input", {
      type: "search",
      id: `${run}-search`,
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "Name, role, id or finding",
    });
    input.addEventListener("input", () => this.search(input.value));
    input.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "Enter") {
        event.preventDefault();
        this.view.list.focus();
      }
    });
    this.input = input;
    return el(
      "div",
      { class: "toolbar" },
      el("div", { class: "find" }, el("label", { for: `${run}-search` }, "Search"), input),
      this.found,
      el("span", { class: "spring" }),
      ...this.jumps(),
      this.button("Open all", () => this.setAll(true)),
      this.button("Close all", () => this.setAll(false)),
    );
  }

  jumps() {
    const what = this.tree.data.standing ? "finding or change" : "finding";
    const number = this.tree.stops().length;
    if (!number) return [];
    return [
      this.button(`Previous ${what}`, () => this.jump(-1)),
      this.button(`Next ${what} (${number.toLocaleString("en")})`, () => this.jump(1), "next"),
    ];
  }

  button(text, act, kind = "") {
    const made = el("button", { type: "button", class: `button ${kind}` }, text);
    made.addEventListener("click", act);
    return made;
  }

  legend() {
    const swatch = (kind, text) =>
      el("span", { class: kind.startsWith("role-") ? kind : "" }, el("i", { class: `swatch ${kind}` }), text);
    const parts = LEGEND.map((role) => swatch(`role-${role}`, role === "agent" ? "agent, workflow" : role));
    if (this.tree.data.holes.length) parts.push(swatch("hole", "untraced: no model call, tool or program"));
    if (this.tree.data.base) parts.push(swatch("base", "the other run"));
    return el("div", { class: "legend" }, ...parts);
  }

  keys() {
    const list = el("dl");
    for (const [keys, act] of KEYS) {
      const names = keys.split(" ").flatMap((key) => [el("kbd", {}, key), " "]);
      list.append(el("dt", {}, ...names), el("dd", {}, act));
    }
    return el("details", { class: "keys" }, el("summary", {}, "Keys in the tree"), list);
  }

  search(text) {
    const found = this.tree.search(text);
    this.view.scroller.scrollTop = 0;
    this.view.refresh();
    this.found.textContent = text.trim() ? (found ? counted(found, "span") : "No span") : "";
  }

  setAll(open) {
    this.tree.setAll(open);
    this.view.refresh();
  }

  jump(step) {
    this.view.jump(step);
    this.view.list.focus({ preventScroll: true });
    const row = this.view.active;
    const stops = this.tree.stops();
    const place = `${stops.indexOf(row) + 1} of ${stops.length}`;
    announce(`${this.tree.name(row)}, ${this.view.maker.more(row)}. ${place}`);
  }

  choose(row, isAsked) {
    if (this.input.value && !this.tree.kept) this.clear();
    this.stage.classList.add("with-details");
    this.details.show(row);
    if (isAsked) history.replaceState(null, "", `#${this.view.run}/${row}`);
  }

  clear() {
    this.input.value = "";
    this.found.textContent = "";
  }

  close() {
    this.stage.classList.remove("with-details");
    this.details.hide();
    this.view.chosen = -1;
    this.view.refresh();
    this.view.list.focus();
  }

  go(row) {
    if (!(row >= 0 && row < this.tree.size)) return;
    this.view.choose(row, false);
    this.view.list.focus({ preventScroll: true });
    this.view.element.scrollIntoView({ block: "nearest" });
  }
}
