// How well a page can be seen; WCAG 2.2 AA: a contrast of 4.5 for text, of 3 for large text, for the edges of controls,
// for what only a color shows, and for the ring around what has the focus.
(() => {
  const CONTROLS = "button, .button, input:not([type=checkbox], [type=radio], [type=range]), select, textarea, [role=slider], .drop, .strip";
  const MARKS = ".segment, .head, #now, .meter";

  const parse = (text) => {
    const [red, green, blue, alpha = 1] = text.match(/rgba?\(([^)]*)\)/)[1].match(/[\d.]+/g).map(Number);
    return { rgb: [red, green, blue], alpha };
  };
  const over = (front, back) => front.rgb.map((value, index) => value * front.alpha + back[index] * (1 - front.alpha));
  const light = (rgb) => {
    const [red, green, blue] = rgb.map((value) => value / 255).map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  // What may be behind an element: one color, or black and white where a picture is.
  const behind = (element) => {
    const layers = [];
    for (let place = element; place !== null; place = place.parentElement) {
      const color = parse(getComputedStyle(place).backgroundColor);
      if (color.alpha > 0) layers.push(color);
      if (color.alpha === 1 && !place.matches(".screen, .picture, .heat")) break;
      if (place.matches(".screen, .picture, .heat")) return [[0, 0, 0], [255, 255, 255]].map((back) => layers.slice(0, -1).reverse().reduce((under, layer) => over(layer, under), back));
    }
    return [layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255])];
  };
  const opacity = (element) => {
    let all = 1;
    for (let place = element; place !== null; place = place.parentElement) all *= Number(getComputedStyle(place).opacity);
    return all;
  };
  const isSeen = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && element.checkVisibility({ visibilityProperty: true }) && box.right > 0;
  };
  const name = (element) => {
    const kind = element.tagName.toLowerCase() + (element.id ? `#${element.id}` : "") + [...element.classList].map((one) => `.${one}`).join("");
    return `${kind} "${(element.textContent || element.getAttribute("aria-label") || "").trim().slice(0, 30)}"`;
  };
  const check = (what, colors, backs, least) => {
    const best = Math.min(...backs.map((back) => Math.max(...colors.map((color) => contrast(over(color, back), back)))));
    return best < least ? [`${what}: ${best.toFixed(2)}, needs ${least}`] : [];
  };

  /** What cannot be seen well: lines that say what, its contrast, and what it needs. */
  const faults = () => {
    const found = [];
    for (const element of document.body.querySelectorAll("*")) {
      if (!isSeen(element) || element.closest(":disabled, svg")) continue;
      const style = getComputedStyle(element);
      const ownText = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
      const written = ownText || element.matches("input, select, textarea");
      if (written) {
        const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
        const color = parse(style.color);
        color.alpha *= opacity(element);
        found.push(...check(`text of ${name(element)}`, [color], behind(element), large ? 3 : 4.5));
        if (element.placeholder) found.push(...check(`placeholder of ${name(element)}`, [parse(getComputedStyle(element, "::placeholder").color)], behind(element), 4.5));
      }
      const outside = behind(element.parentElement);
      const border = parse(style.borderBottomColor);
      const hasBorder = parseFloat(style.borderBottomWidth) > 0 && style.borderBottomStyle !== "none" && border.alpha > 0;
      const fill = parse(style.backgroundColor);
      if (element.matches(CONTROLS) && hasBorder) found.push(...check(`edge of ${name(element)}`, [border, fill], outside, 3));
      if (element.matches(MARKS)) found.push(...check(`mark ${name(element)}`, hasBorder ? [border, fill] : [fill], outside, 3));
    }
    // What is drawn on a canvas or by ::before takes its colors from these.
    const theme = getComputedStyle(document.documentElement);
    const surface = behind(document.querySelector(".panel, main"));
    for (const word of ["run0", "run1", "run2", "run3", "run4", "run5", "hard", "dissolve", "fade", "wipe", "gradual", "accent", "segment", "mirror", "quiet"]) {
      const value = theme.getPropertyValue(`--${word}`).trim();
      if (value) found.push(...check(`color --${word}`, [{ rgb: [1, 3, 5].map((at) => parseInt(value.slice(at, at + 2), 16)), alpha: 1 }], surface, word === "quiet" ? 4.5 : 3));
    }
    return found;
  };

  /** What is wrong with how the page shows its focus, in one line; empty if nothing is. */
  const focusFault = () => {
    const ring = (element) => getComputedStyle(element).outlineStyle !== "none" && parseFloat(getComputedStyle(element).outlineWidth) >= 2;
    // Some controls are too small or too large for a ring; what they are in has it.
    const focused = document.activeElement;
    const place = [focused, focused.closest(".drop, .card")].find((element) => element && isSeen(element) && ring(element));
    if (place === undefined) return `no ring around ${name(focused)}`;
    const style = getComputedStyle(place);
    const far = parseFloat(style.outlineWidth) + parseFloat(style.outlineOffset);
    const box = place.getBoundingClientRect();
    for (let around = place.parentElement; around !== null; around = around.parentElement) {
      if (getComputedStyle(around).overflowX === "visible" || around === document.documentElement) continue;
      const edge = around.getBoundingClientRect();
      if ([edge.left - box.left, edge.top - box.top, box.right - edge.right, box.bottom - edge.bottom].some((less) => less + far > 0.5))
        return `the ring around ${name(place)} is cut off by ${name(around)}`;
    }
    const colors = [style.outlineColor, ...(style.boxShadow === "none" ? [] : [style.boxShadow])].map(parse);
    return check(`ring around ${name(place)}`, colors, behind(place.parentElement), 3)[0] ?? "";
  };

  /** What the Tab key must reach. */
  const stops = () =>
    [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")].filter(
      (element) => !element.matches(":disabled, [tabindex='-1']") && element.checkVisibility({ visibilityProperty: true }),
    );
  return { faults, focusFault, stops };
})()
