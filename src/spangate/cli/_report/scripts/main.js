"use strict";
// Which run is shown: the address after the # says it, as #run-3 or #run-3/12, a span of it.

const Main = {
  traces: new Map(),

  start() {
    Theme.wire(document.getElementById("theme"));
    this.runs = [...document.querySelectorAll("article.run")];
    this.overview = document.getElementById("overview");
    this.title = document.title;
    window.addEventListener("hashchange", () => this.route(true));
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
    this.route(false);
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  },

  route(isMove) {
    const [, key, row] = /^#([\w-]+?)(?:\/(\d+))?$/.exec(location.hash) ?? [];
    const run = this.runs.find((one) => one.id === key) ?? (this.overview ? null : this.runs[0]);
    if (key && key !== "overview" && !run) return;
    const isNew = run !== this.shown;
    if (isNew) this.show(run);
    if (row !== undefined && run) this.traces.get(run.id).go(Number(row));
    else if (isMove && isNew) this.focus(run ?? this.overview);
  },

  show(run) {
    this.shown = run;
    if (this.overview) this.overview.hidden = run !== null;
    for (const one of this.runs) one.hidden = one !== run;
    document.title = run && this.overview ? `${run.querySelector(".title").innerText} · spangate report` : this.title;
    if (run && !this.traces.has(run.id)) this.traces.set(run.id, new Trace(run.querySelector(".viewer")));
  },

  focus(section) {
    scrollTo(0, 0);
    section.querySelector("h1, h2").focus({ preventScroll: true });
  },

  print(isPrinting) {
    if (this.shown) this.traces.get(this.shown.id).view.print(isPrinting);
  },
};

Main.start();
