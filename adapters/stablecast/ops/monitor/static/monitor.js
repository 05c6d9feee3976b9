// Replace the blocks that changed. Without scripts the pages have the same content and do not update.
"use strict";

const live = document.getElementById("live");
const theme = document.getElementById("theme");
const THEMES = ["", "dark", "light"];

function wear(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
}

wear(localStorage.getItem("theme") || "");
theme.addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(localStorage.getItem("theme") || "") + 1) % THEMES.length];
  localStorage.setItem("theme", next);
  wear(next);
});

function say(state, text) {
  live.className = "pulse " + state;
  live.textContent = text;
}

function busy(block) {
  const at = document.activeElement;
  return block.contains(at) && at.matches("input, select, button");
}

const feed = new EventSource("/live?" + new URLSearchParams({ page: location.pathname + location.search }));
feed.addEventListener("open", () => say("on", "live"));
feed.addEventListener("error", () => say("off", "no connection"));
feed.addEventListener("gone", () => { say("off", "gone"); feed.close(); });
feed.addEventListener("blocks", (event) => {
  for (const [id, html] of Object.entries(JSON.parse(event.data))) {
    const block = document.getElementById(id);
    if (block && !busy(block)) block.innerHTML = html;
  }
  say("on", "live");
  document.body.dataset.updates = Number(document.body.dataset.updates || 0) + 1;
});
