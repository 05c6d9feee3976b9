// Replace the page's content every two seconds. Without scripts the page has the same content and does not update.
"use strict";

const PAUSE = 2000;

async function renew() {
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const here = document.getElementById("fleet"), next = fresh.getElementById("fleet");
    if (next && !here.contains(document.activeElement)) {
      here.replaceWith(next);
      document.title = fresh.title;
    }
  } catch {
    document.title = "no connection · fleet · stablecast";
  }
  setTimeout(renew, PAUSE);
}

setTimeout(renew, PAUSE);
