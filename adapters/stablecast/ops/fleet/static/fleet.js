// Renew the page's content every two seconds. Without scripts the page has the same content and does not update.
"use strict";

const PAUSE = 2000;

// Only sections that changed are touched, and none with the cursor or a selection in it: people copy commands.
function update(here, next) {
  const selected = getSelection();
  const busy = (one) => one.contains(document.activeElement) || (!selected.isCollapsed && selected.containsNode(one, true));
  for (const old of [...here.children]) if (!next.querySelector(`#${old.id}`)) old.remove();
  [...next.children].forEach((fresh, at) => {
    const old = here.querySelector(`#${fresh.id}`);
    if (!old) here.insertBefore(fresh, here.children[at] ?? null);
    else if (!old.isEqualNode(fresh) && !busy(old)) {
      old.className = fresh.className;
      old.innerHTML = fresh.innerHTML;
    }
  });
  here.dataset.surveys = next.dataset.surveys;
}

async function renew() {
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = fresh.getElementById("fleet");
    if (next) {
      update(document.getElementById("fleet"), next);
      document.title = fresh.title;
    }
  } catch {
    document.title = "no connection \u00b7 fleet \u00b7 stablecast";
    const problems = document.getElementById("problems");
    if (!problems.dataset.lost) {
      problems.className = "banner l3";
      problems.querySelector("h1").textContent =
        `No connection since ${new Date().toLocaleTimeString()}: this page shows old figures. Is stablecast fleet --serve still running?`;
      problems.dataset.lost = "1";
    }
    return void setTimeout(renew, PAUSE);
  }
  delete document.getElementById("problems").dataset.lost;
  setTimeout(renew, PAUSE);
}

setTimeout(renew, PAUSE);
