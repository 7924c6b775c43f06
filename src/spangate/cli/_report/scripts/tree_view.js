"use strict";
// Draws the rows of a tree that are in sight, and moves through it by keys and pointer. However long the run is, the
// page holds some screens of rows.

const OVERSCAN = 12;
const LEAST_BAND = 0.01; // narrower ones would be lines, and say nothing
const MAX_INDENT = 24;
const MAX_PRINTED = 2000;
const FLAGS = { fail: "✕", warn: "!", not_evaluable: "?" };
const FLAG_WORDS = { fail: "fails", warn: "warning", not_evaluable: "not evaluable" };
const SIGNS = { same: "", changed: "~", added: "+", dropped: "−" };
const MILD = new Set(["cancelled", "control_flow"]);

function unseen(text) {
  return el("span", { class: "unseen" }, text);
}

// A mark that a screen reader need not spell: what it means is said in words.
function sign(kind, text) {
  return el("span", { class: kind, "aria-hidden": "true" }, text);
}

class TreeView {
  // `onChoose` is told of the row that was chosen, and whether that was asked for (Enter, a click) or came by moving.
  constructor(tree, run, name, onChoose) {
    Object.assign(this, { tree, run, onChoose, active: 0, chosen: -1, window: [0, tree.length], drawn: new Map() });
    this.list = el("div", { role: "tree", class: "tree", tabindex: "0", "aria-label": `Spans of ${name}` });
    this.bands = el("div", { class: "bands", "aria-hidden": "true" });
    this.scroller = el("div", { class: "scroller" }, this.bands, this.list);
    this.ticks = el("span", { class: "ticks" });
    this.element = el("div", { class: "frame" }, this.axis(), this.scroller);
    this.scroller.addEventListener("scroll", () => this.soon(), { passive: true });
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.list.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.soon()).observe(this.scroller);
    this.refresh();
  }

  axis() {
    return el("div", { class: "axis", "aria-hidden": "true" }, el("span", {}, "Span"), el("span", { class: "figures" }, "Took"), this.ticks);
  }

  // Draws what stands above and behind the rows, for the stretch of time that is shown.
  scale() {
    const [begin, length] = this.window;
    const since = [0.25, 0.5, 0.75, 1].map((part) => (begin ? "+" : "") + duration(length * part));
    this.ticks.replaceChildren(...[begin ? duration(begin) : "0", ...since].map((time) => el("span", {}, time)));
    const lane = el("div", { class: "lane" });
    for (const hole of this.tree.data.holes) {
      if (hole.length > LEAST_BAND * length) lane.append(this.bar("band", hole.start, hole.length) ?? "");
    }
    this.bands.replaceChildren(lane);
  }

  // A bar at its place in the stretch of time that is shown, null if it lies outside.
  bar(kind, start, length) {
    const [begin, whole] = this.window;
    const [first, last] = [Math.max(0, start - begin), Math.min(whole, start + length - begin)];
    if (first > whole || last < 0) return null;
    const made = el("span", { class: kind });
    made.style.left = `${(100 * first) / whole}%`;
    made.style.width = `${(100 * Math.max(0, last - first)) / whole}%`;
    return made;
  }

  get isZoomed() {
    return this.window[1] < this.tree.length;
  }

  // Shows the time that a row took, or, if that is what is shown, all of it.
  zoom(row = this.active) {
    const side = this.tree.side(row);
    const took = side.took[row] ?? this.tree.length - side.start[row];
    const wanted = [side.start[row] ?? 0, Math.max(1, took)];
    this.window = this.isZoomed && this.window.every((edge, place) => edge === wanted[place]) ? [0, this.tree.length] : wanted;
    this.refresh();
    announce(this.isZoomed ? `Time line of ${this.tree.name(row)}` : "Time line of the whole run");
  }

  // Works out which rows there are, after something was opened, closed or searched.
  refresh() {
    this.rows = this.tree.visible();
    this.height = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row")) || 30;
    if (!this.rows.includes(this.active)) this.active = this.nearest(this.active);
    this.list.style.height = `${Math.max(1, this.rows.length) * this.height}px`;
    this.scale();
    this.draw();
  }

  nearest(row) {
    for (let above = row; above >= 0; above = this.tree.parent[above]) if (this.rows.includes(above)) return above;
    return this.rows[0] ?? -1;
  }

  soon() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      const height = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row"));
      if (height !== this.height) this.refresh();
      else this.draw();
    });
  }

  // The part of the list that is drawn: what is in sight with some rows around it, when printed all of it.
  span() {
    if (this.isPrinting) return [0, Math.min(this.rows.length, MAX_PRINTED)];
    const first = Math.floor(this.scroller.scrollTop / this.height) - OVERSCAN;
    const sight = Math.ceil((this.scroller.clientHeight || innerHeight) / this.height);
    return [Math.max(0, first), Math.min(this.rows.length, first + sight + 2 * OVERSCAN)];
  }

  draw() {
    const [first, last] = this.span();
    const kept = this.drawn;
    this.drawn = new Map();
    for (let place = first; place < last; place++) this.keep(kept, this.rows[place], place);
    const at = this.rows.indexOf(this.active);
    if (at >= 0 && !this.drawn.has(this.active)) this.keep(kept, this.active, at); // a screen reader stands on it
    const elements = [...this.drawn.values()].map((one) => one.element);
    if (elements.length !== this.list.childElementCount || elements.some((one, place) => one !== this.list.children[place])) {
      this.list.replaceChildren(...elements);
    }
    if (at >= 0) this.list.setAttribute("aria-activedescendant", this.id(this.active));
    else this.list.removeAttribute("aria-activedescendant");
  }

  // Takes a row as it was drawn before if nothing about it has changed, so that it stays the same element.
  keep(kept, row, place) {
    const state = [place, row === this.active, row === this.chosen, this.tree.isExpanded(row), this.tree.kept !== null, ...this.window].join();
    const before = kept.get(row);
    this.drawn.set(row, before?.state === state ? before : { state, element: this.row(row, place) });
  }

  id(row) {
    return `${this.run}-row-${row}`;
  }

  row(row, place) {
    const { tree } = this;
    const made = el("div", {
      role: "treeitem",
      id: this.id(row),
      class: `row role-${tree.role(row)} ${tree.standing(row)}${row === this.active ? " active" : ""}`,
      "data-row": row,
      "aria-level": tree.data.depth[row] + 1,
      "aria-posinset": tree.kept ? null : tree.place[row],
      "aria-setsize": tree.kept ? null : tree.siblings[tree.parent[row] < 0 ? tree.size : tree.parent[row]],
      "aria-selected": String(row === this.chosen),
      "aria-expanded": tree.hasChildren(row) ? String(tree.isExpanded(row)) : null,
    });
    const took = tree.side(row).took[row];
    const figures = el("span", { class: "figures" }, unseen(took === null ? ", still " : ", took "), duration(took));
    made.append(this.label(row), figures, unseen(`, ${this.more(row)}`), this.lane(row));
    made.style.top = `${place * this.height}px`;
    return made;
  }

  label(row) {
    const { tree } = this;
    const depth = tree.data.depth[row];
    const twisty = tree.hasChildren(row) ? (tree.isExpanded(row) ? "▾" : "▸") : "";
    const made = el("span", { class: "label" });
    if (tree.data.standing) made.append(sign("standing", SIGNS[tree.standing(row)]));
    made.append(sign("twisty", twisty));
    if (depth > MAX_INDENT) made.append(sign("tokens", `[${depth}]`));
    for (const level of this.levels(row)) made.append(sign(`flag ${level === "not_evaluable" ? "gap" : level}`, FLAGS[level]));
    made.append(el("span", { class: "role" }, `${tree.role(row)} `), el("span", { class: "name" }, bdi(tree.name(row))));
    for (const [kind, text] of this.remarks(row)) made.append(unseen(", "), el("span", { class: kind }, text));
    made.style.paddingLeft = `calc(${Math.min(depth, MAX_INDENT)} * var(--indent))`;
    return made;
  }

  // What stands behind the name: what became of the span, what it used, what is not in the page.
  remarks(row) {
    const { tree } = this;
    const outcome = tree.outcome(row);
    const folded = tree.data.folded[row];
    return [
      [`outcome${MILD.has(outcome) ? " mild" : ""}`, outcome === "ok" || tree.side(row).took[row] === null ? "" : outcome.replace("_", " ")],
      ["tokens", this.tokens(row)],
      ["below", folded ? `${folded.toLocaleString("en")} folded` : ""],
    ].filter(([, text]) => text);
  }

  levels(row) {
    const levels = new Set((this.tree.marks.get(row) ?? []).map((mark) => mark.level));
    return Object.keys(FLAGS).filter((level) => levels.has(level));
  }

  tokens(row) {
    const side = this.tree.side(row);
    const said = [[side.input[row], "in"], [side.output[row], "out"]].filter(([number]) => number !== null);
    const text = said.map(([number, way]) => `${number.toLocaleString("en")} ${way}`).join(", ");
    return text && this.tree.role(row) !== "generation" ? `sum ${text}` : text;
  }

  lane(row) {
    const { data } = this.tree;
    const made = el("span", { class: `lane${data.base ? " both" : ""}`, "aria-hidden": "true" });
    for (const [side, kind] of [[data, "span"], [data.base, "span base"]]) {
      if (!side || side.start[row] === null) continue;
      const isOpen = side.took[row] === null;
      const took = isOpen ? this.tree.length - side.start[row] : side.took[row];
      made.append(this.bar(isOpen ? `${kind} open` : kind, side.start[row], took) ?? "");
    }
    return made;
  }

  // What is seen of a row by its place and its signs, in words for whoever hears it.
  more(row) {
    const { tree } = this;
    const marks = (tree.marks.get(row) ?? []).map((mark) => `${FLAG_WORDS[mark.level] ?? ""}: ${mark.code}`);
    const standing = tree.standing(row) === "same" ? "" : tree.standing(row);
    return [`begins at ${duration(tree.side(row).start[row] ?? 0)}`, standing, ...marks].filter(Boolean).join(", ");
  }

  click(event) {
    const found = event.target.closest(".row");
    if (!found) return;
    const row = Number(found.dataset.row);
    if (event.target.closest(".twisty") && this.tree.hasChildren(row)) {
      this.active = row;
      this.toggle(row);
    } else {
      this.choose(row, true);
    }
  }

  toggle(row, open = !this.tree.isExpanded(row)) {
    if (this.tree.kept) return;
    this.tree.isOpen[row] = open ? 1 : 0;
    this.refresh();
  }

  choose(row, isAsked) {
    this.active = row;
    this.chosen = row;
    this.onChoose(row, isAsked);
    this.show(row);
  }

  move(row) {
    this.active = row;
    if (this.chosen >= 0) {
      this.chosen = row;
      this.onChoose(row, false);
    }
    this.show(row);
  }

  // Brings a row into sight; all above it are opened.
  show(row) {
    if (!this.rows.includes(row)) {
      this.tree.kept = null;
      this.tree.reveal(row);
      this.refresh();
    }
    const top = this.rows.indexOf(row) * this.height;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top + this.height > scrollTop + clientHeight) this.scroller.scrollTop = top + this.height - clientHeight;
    this.draw();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.active < 0) return;
    const action = this.actions()[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  actions() {
    const { tree, rows, active } = this;
    const at = rows.indexOf(active);
    const to = (place) => this.move(rows[Math.min(rows.length - 1, Math.max(0, place))]);
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.height) - 1);
    const isOpen = tree.hasChildren(active) && tree.isExpanded(active);
    return {
      ArrowDown: () => to(at + 1),
      ArrowUp: () => to(at - 1),
      PageDown: () => to(at + page),
      PageUp: () => to(at - page),
      Home: () => to(0),
      End: () => to(rows.length - 1),
      ArrowRight: () => (isOpen ? to(at + 1) : tree.hasChildren(active) && this.toggle(active, true)),
      ArrowLeft: () => {
        if (isOpen && !tree.kept) this.toggle(active, false);
        else if (tree.parent[active] >= 0) this.move(tree.parent[active]);
      },
      "*": () => this.openSiblings(),
      Enter: () => this.choose(active, true),
      " ": () => this.choose(active, true),
      n: () => this.jump(1),
      p: () => this.jump(-1),
      z: () => this.zoom(),
    };
  }

  openSiblings() {
    const above = this.tree.parent[this.active];
    for (const row of this.rows) if (this.tree.parent[row] === above) this.tree.isOpen[row] = 1;
    this.refresh();
  }

  jump(step) {
    const row = this.tree.next(this.active, step);
    if (row >= 0) this.choose(row, true);
  }

  print(isPrinting) {
    this.isPrinting = isPrinting;
    this.element.classList.toggle("printing", isPrinting);
    this.draw();
  }
}
