"""How well texts can be read: the contrast of WCAG 2, measured in the page.

At least 4.5, and 3 for large texts (24 px, or 18.66 px and bold). Hidden and disabled things do
not count, nor does what stands on a picture.
"""

from __future__ import annotations

#: A function of an element: the texts in it that stand out too little.
FAINT = """root => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const colour = text => {  // any way of writing a colour, as red, green, blue, opacity
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3]));
  const light = rgb => {
    const straight = c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = rgb.map(c => straight(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const style = getComputedStyle(e);
      if (style.backgroundImage.includes("url(")) return null;
      const layer = colour(style.backgroundColor);
      layers.push(layer);
      if (layer[3] === 1) break;
    }
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    const page = dark ? [0, 0, 0] : [255, 255, 255];
    return layers.reduceRight((below, layer) => over(layer, below), page);
  };
  const found = [];
  const seen = new Set();
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const elements = [...root.querySelectorAll("input:not([type=hidden]), select, textarea")];
  while (texts.nextNode()) {
    if (texts.currentNode.data.trim()) elements.push(texts.currentNode.parentElement);
  }
  for (const element of elements) {
    const hidden = !element.checkVisibility({visibilityProperty: true, opacityProperty: true});
    if (hidden || seen.has(element) || element.matches(":disabled")) continue;
    seen.add(element);
    const box = element.getBoundingClientRect();
    if (box.width <= 1 || box.height <= 1) continue;  // for screen readers only
    const back = behind(element);
    if (!back) continue;
    const style = getComputedStyle(element);
    const text = over(colour(style.color), back);
    const [low, high] = [light(text), light(back)].sort((a, b) => a - b);
    const contrast = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight) >= 700);
    if (contrast < (large ? 3 : 4.5)) found.push({
      text: (element.textContent || element.value).trim().slice(0, 40),
      where: element.tagName.toLowerCase() + "." + element.className,
      contrast: Math.round(contrast * 100) / 100,
    });
  }
  return found;
}"""
