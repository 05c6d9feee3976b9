// Draw the diagrams of a page, in the colours of its theme. The script is loaded only where there is a diagram.
(function () {
  const found = document.querySelectorAll("pre.mermaid");
  if (!found.length) return;
  const place = document.currentScript.src.replace(/diagrams\.js.*$/, "mermaid.min.js");
  const script = document.createElement("script");
  script.src = place;
  script.onload = function () {
    const theme = document.body.dataset.theme;
    const dark = theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
    mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "neutral" });
    mermaid.run({ nodes: found });
  };
  document.head.append(script);
})();
