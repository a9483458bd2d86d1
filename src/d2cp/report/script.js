"use strict";
// Everything works on what is in the page: no request is ever made.

const byId = (id) => document.getElementById(id);
const payload = JSON.parse(byId("payload").textContent);

function make(tag, text, attributes = {}) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function download(name, type, text) {
  const link = make("a", undefined, { download: name });
  link.href = URL.createObjectURL(new Blob([text], { type }));
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// --- images: filters, arrow keys, large view -----------------------------------------------

const PAGE = 72;
const images = (n) => `${n} ${n === 1 ? "image" : "images"}`;
const flips = new Map(); // image id → { name, value, was }
let unsaved = false;

function setUpImages() {
  const grid = byId("grid");
  if (!grid) return;
  const items = [...grid.children];
  const filters = ["class", "value", "answer", "kind", "split"]
    .map((key) => [key, byId(`filter-${key}`)])
    .filter(([, select]) => select);
  let shown = items; // all that fit the filters
  let limit = PAGE; // how many of them are laid out

  function focusable(item) {
    // One stop for the Tab key; arrows move within the grid.
    for (const other of items) other.firstElementChild.tabIndex = other === item ? 0 : -1;
  }

  function apply() {
    shown = items.filter((item) =>
      filters.every(([key, select]) => !select.value || item.dataset[key] === select.value),
    );
    limit = PAGE;
    layOut();
    if (shown.length) focusable(shown[0]);
  }

  function layOut() {
    const visible = new Set(shown.slice(0, limit));
    for (const item of items) item.hidden = !visible.has(item);
    const rest = shown.length - visible.size;
    byId("shown").textContent =
      images(shown.length) + (rest > 0 ? `, the first ${visible.size} shown` : "");
    byId("more").hidden = rest <= 0;
    byId("more").textContent = `Show ${Math.min(PAGE, rest)} more`;
    byId("empty").hidden = shown.length > 0;
  }

  function reveal(item) {
    limit = Math.max(limit, shown.indexOf(item) + 1);
    layOut();
    focusable(item);
    item.firstElementChild.focus();
  }

  for (const [, select] of filters) select.addEventListener("change", apply);
  byId("filter-clear").addEventListener("click", () => {
    for (const [, select] of filters) select.value = "";
    apply();
  });
  byId("more").addEventListener("click", () => {
    const first = shown[limit];
    limit += PAGE;
    reveal(first);
  });

  function columns() {
    const top = shown[0].offsetTop;
    const second = shown.findIndex((item) => item.offsetTop !== top);
    return second < 0 ? shown.length : second;
  }

  grid.addEventListener("keydown", (event) => {
    const here = shown.indexOf(event.target.closest("li"));
    const steps = {
      ArrowLeft: -1,
      ArrowRight: 1,
      ArrowUp: -columns(),
      ArrowDown: columns(),
      Home: -here,
      End: shown.length - 1 - here,
    };
    if (here < 0 || !(event.key in steps)) return;
    const next = shown[here + steps[event.key]];
    event.preventDefault();
    if (!next) return;
    reveal(next);
  });

  setUpViewer(grid, () => shown, reveal);
  apply();
}

function setUpViewer(grid, shownItems, reveal) {
  const viewer = byId("viewer");
  const radios = [...viewer.querySelectorAll("input[name=viewer-value]")];
  let current = null;

  function fact(name, value) {
    if (!value) return;
    const row = make("div");
    const text = make("dd");
    text.append(make("bdi", value));
    row.append(make("dt", name), text);
    byId("viewer-list").append(row);
  }

  function show(item) {
    current = item;
    const d = item.dataset;
    const image = byId("viewer-image");
    image.src = item.querySelector("img").src;
    image.alt = `Image ${d.name}`;
    image.classList.toggle("pixels", item.querySelector("img").naturalWidth <= 64);
    byId("viewer-title").replaceChildren(make("bdi", d.name));
    byId("viewer-list").replaceChildren();
    fact("Class", d.label);
    fact("True attribute", d.attribute);
    fact("Answer before", [d.before, d.beforeP].filter(Boolean).join(", "));
    fact("Answer after", [d.after, d.afterP].filter(Boolean).join(", "));
    fact("Score", d.score);
    fact("Split", d.split);
    showValue();
    const list = shownItems();
    byId("viewer-previous").disabled = list[0] === item;
    byId("viewer-next").disabled = list[list.length - 1] === item;
  }

  function showValue() {
    if (!radios.length) return;
    const mark = flips.get(current.dataset.id);
    const value = mark ? mark.value : Number(current.dataset.value);
    for (const radio of radios) radio.checked = Number(radio.value) === value;
    byId("viewer-hint").textContent = mark
      ? `Corrected: it was value ${mark.was}.`
      : "Choose another one if this is wrong.";
  }

  function move(step) {
    const list = shownItems();
    const next = list[list.indexOf(current) + step];
    if (next) show(next);
  }

  grid.addEventListener("click", (event) => {
    const item = event.target.closest("li");
    if (!item) return;
    show(item);
    viewer.showModal();
    // Not on the first control, a radio button: an arrow key would change the image's value.
    viewer.firstElementChild.focus();
  });
  for (const radio of radios) {
    radio.addEventListener("change", () => {
      mark(current, Number(radio.value));
      showValue();
    });
  }
  byId("viewer-previous").addEventListener("click", () => move(-1));
  byId("viewer-next").addEventListener("click", () => move(1));
  byId("viewer-close").addEventListener("click", () => viewer.close());
  viewer.addEventListener("keydown", (event) => {
    // Arrows change the value while one of the radio buttons has the focus.
    if (event.target.name === "viewer-value") return;
    if (event.key === "ArrowLeft") move(-1);
    if (event.key === "ArrowRight") move(1);
  });
  viewer.addEventListener("click", (event) => {
    if (event.target === viewer) viewer.close();
  });
  viewer.addEventListener("close", () => reveal(current));
}

// --- corrections ---------------------------------------------------------------------------

function mark(item, value) {
  const { id, name } = item.dataset;
  const was = Number(item.dataset.value);
  if (value === was) flips.delete(id);
  else flips.set(id, { name, value, was });
  item.classList.toggle("flipped", flips.has(id));
  unsaved = true;
  listFlips();
}

function listFlips() {
  const entries = [...flips].map(([id, flip]) => {
    const entry = make("li");
    const remove = make("button", "Undo", { type: "button" });
    remove.setAttribute("aria-label", `Undo the correction of ${flip.name}`);
    remove.addEventListener("click", () => {
      const item = [...byId("grid").children].find((other) => other.dataset.id === id);
      mark(item, flip.was);
    });
    entry.append(make("bdi", flip.name), ` value ${flip.was} → ${flip.value} `, remove);
    return entry;
  });
  byId("flips").replaceChildren(...entries);
  byId("no-flips").hidden = flips.size > 0;
  tellCount();
}

function marked(name) {
  return [...document.querySelectorAll(`input[name=${name}]:checked`)].map((box) =>
    Number(box.value),
  );
}

function tellCount() {
  const total = flips.size + marked("concept").length + marked("finding").length;
  byId("save").textContent = total ? `Save corrections (${total})` : "Save corrections";
  byId("saved").textContent = "";
}

function setUpCorrections() {
  const save = byId("save");
  if (!save) return;
  for (const box of document.querySelectorAll("input[name=concept], input[name=finding]")) {
    box.addEventListener("change", () => {
      unsaved = true;
      tellCount();
    });
  }
  save.addEventListener("click", () => {
    const file = {
      schema: 1,
      data: payload.data,
      concepts_are_class: marked("concept"),
      flip: Object.fromEntries([...flips].map(([id, flip]) => [id, flip.value])),
    };
    const findings = marked("finding");
    if (findings.length) file.findings_are_class = findings;
    download("corrections.json", "application/json", `${JSON.stringify(file, null, 2)}\n`);
    unsaved = false;
    byId("saved").textContent = "Saved as corrections.json in your downloads.";
  });
  window.addEventListener("beforeunload", (event) => {
    if (unsaved) event.preventDefault();
  });
}

function setUpReview() {
  const button = byId("review");
  if (!button) return;
  const quote = (value) => `"${String(value).replaceAll('"', '""')}"`;
  button.addEventListener("click", () => {
    const rows = [["image", "split", "class", "value", "why"], ...payload.review];
    const text = rows.map((row) => row.map(quote).join(",")).join("\r\n");
    download("review.csv", "text/csv", `${text}\r\n`);
  });
}

// --- pictures and tables -------------------------------------------------------------------

function setUpPictures() {
  const dialog = byId("picture");
  if (!dialog) return;
  for (const button of document.querySelectorAll("[data-picture]")) {
    button.addEventListener("click", () => {
      const image = button.querySelector("img");
      byId("picture-image").src = image.src;
      byId("picture-image").alt = image.alt;
      const caption = button.parentElement.querySelector("figcaption").cloneNode(true);
      byId("picture-caption").replaceChildren(...caption.childNodes);
      dialog.showModal();
    });
  }
  byId("picture-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
}

function setUpTables() {
  for (const table of document.querySelectorAll("table[data-sortable]")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = head.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sortRows(table.tBodies[0], column, down);
      });
    });
  }
}

function sortRows(body, column, down) {
  const key = (row) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
  const rows = [...body.rows].sort((one, two) => {
    const [a, b] = [key(one), key(two)];
    if (a === "" || b === "") return (a === "") - (b === ""); // what is unknown stays last
    const [x, y] = [Number(a), Number(b)];
    const order = Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
    return down ? -order : order;
  });
  body.append(...rows);
}

setUpImages();
setUpCorrections();
setUpReview();
setUpPictures();
setUpTables();
