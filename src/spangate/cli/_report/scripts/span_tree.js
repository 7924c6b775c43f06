"use strict";
// The tree of one run as numbers: which row is whose parent, which are open, which match a search.

const STANDINGS = ["same", "changed", "added", "dropped"];
const EXPANDED_AT_FIRST = 400;

class SpanTree {
  constructor(data) {
    this.data = data;
    this.size = data.depth.length;
    this.parent = new Int32Array(this.size).fill(-1);
    this.end = new Int32Array(this.size); // the row behind the last one below
    this.place = new Int32Array(this.size); // among its siblings, from 1
    this.siblings = new Int32Array(this.size + 1); // how many children each row has; the last: how many tops there are
    this.isOpen = new Uint8Array(this.size);
    this.kept = null; // while a search is on: the rows that match, or have a match below
    this.marks = new Map();
    this.link();
    for (const mark of data.marks) this.marks.set(mark.row, [...(this.marks.get(mark.row) ?? []), mark]);
    this.marked = [...this.marks.keys()].sort((one, other) => one - other);
    this.length = this.extent();
    this.openAtFirst();
  }

  link() {
    const way = [];
    const { depth } = this.data;
    for (let row = 0; row < this.size; row++) {
      while (way.length > depth[row]) this.end[way.pop()] = row;
      this.parent[row] = way.length ? way[way.length - 1] : -1;
      const family = this.parent[row] < 0 ? this.size : this.parent[row];
      this.place[row] = ++this.siblings[family];
      way.push(row);
    }
    for (const row of way) this.end[row] = this.size;
  }

  // How long the time line is: until the last end, of the run and of the one beside it.
  extent() {
    let last = 1;
    for (const side of [this.data, this.data.base]) {
      for (let row = 0; side && row < this.size; row++)
        last = Math.max(last, (side.start[row] ?? 0) + (side.took[row] ?? 0));
    }
    return last;
  }

  openAtFirst() {
    if (this.size <= EXPANDED_AT_FIRST) {
      this.isOpen.fill(1);
      return;
    }
    for (let row = 0; row < this.size; row++) this.isOpen[row] = this.data.depth[row] < 2 ? 1 : 0;
    for (const row of this.marked.slice(0, EXPANDED_AT_FIRST)) this.reveal(row);
  }

  hasChildren(row) {
    return this.end[row] > row + 1;
  }

  isExpanded(row) {
    return this.kept !== null || this.isOpen[row] === 1;
  }

  reveal(row) {
    for (let above = this.parent[row]; above >= 0; above = this.parent[above]) this.isOpen[above] = 1;
  }

  setAll(open) {
    this.isOpen.fill(open ? 1 : 0);
  }

  visible() {
    const rows = [];
    for (let row = 0; row < this.size;) {
      if (this.kept && !this.kept[row]) {
        row++;
      } else {
        rows.push(row);
        row = this.isExpanded(row) ? row + 1 : this.end[row];
      }
    }
    return rows;
  }

  // Keeps rows whose name, role, id, outcome, standing or findings hold the text. Returns how many do.
  search(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) {
      this.kept = null;
      return 0;
    }
    const kept = new Uint8Array(this.size);
    let found = 0;
    for (let row = 0; row < this.size; row++) {
      if (!this.words(row).includes(wanted)) continue;
      found++;
      for (let up = row; up >= 0 && !kept[up]; up = this.parent[up]) kept[up] = 1;
    }
    this.kept = kept;
    return found;
  }

  words(row) {
    const marks = (this.marks.get(row) ?? []).map((mark) => mark.code);
    const told = [this.outcome(row), this.standing(row)].filter((word) => word !== "ok" && word !== "same");
    return [this.role(row), this.name(row), this.data.id[row], ...told, ...marks].join("\n").toLowerCase();
  }

  role(row) {
    return this.data.texts[this.data.role[row]];
  }

  name(row) {
    return this.data.texts[this.data.name[row]];
  }

  // The side that a row's figures are of: the run's own, or the other's where the span is there only.
  side(row) {
    return this.data.start[row] === null && this.data.base ? this.data.base : this.data;
  }

  outcome(row) {
    return this.data.texts[this.side(row).outcome[row]];
  }

  standing(row) {
    return this.data.standing ? STANDINGS[this.data.standing[row]] : "same";
  }

  // The next row, after or before this one, that something was found about, or that is not the same in both runs.
  next(row, step) {
    const stops = this.stops();
    if (!stops.length) return -1;
    if (step > 0) return stops.find((stop) => stop > row) ?? stops[0];
    return stops.findLast((stop) => stop < row) ?? stops[stops.length - 1];
  }

  stops() {
    if (!this.data.standing) return this.marked;
    if (!this.known) {
      const differs = new Set(this.marked);
      this.data.standing.forEach((standing, row) => standing && differs.add(row));
      this.known = [...differs].sort((one, other) => one - other);
    }
    return this.known;
  }
}
