/** Elements made from text, never from markup. */

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

/** Make an element. `on…` attributes are listeners; null and false leave an attribute out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') {
      element.addEventListener(name.slice(2), value as unknown as EventListener);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  element.append(...children.filter((child): child is Node | string => !!child));
  return element;
}

/** Set a text only if it is another one: nothing moves, selections stay. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

/** Set or remove an attribute. */
export function setAttribute(element: Element, name: string, value: string | null): void {
  if (value === null) {
    element.removeAttribute(name);
  } else if (element.getAttribute(name) !== value) {
    element.setAttribute(name, value);
  }
}

/** Split a sentence: names in backticks become `<code>`. */
export function rich(text: string): (Node | string)[] {
  const parts = text.split('`');
  if (parts.length % 2 === 0) {
    return [text]; // An odd backtick is only text.
  }
  return parts.map((part, at) => (at % 2 ? h('code', {}, part) : part));
}

/** A button that looks like a link. */
export function link(label: string, press: () => void): HTMLButtonElement {
  return h('button', { type: 'button', class: 'jp-Pai-link', onclick: press }, label);
}

/** A button that says why it cannot be pressed now, also to those who reach it by keyboard. */
export class Button {
  readonly node: HTMLButtonElement;

  constructor(
    label: string,
    private readonly title: string,
    press: () => void,
    className = ''
  ) {
    this.node = h('button', { type: 'button', class: `jp-Pai-button ${className}`, title }, label);
    this.node.addEventListener('click', event => {
      event.preventDefault();
      if (this.reason === '') {
        press();
      }
    });
  }

  get reason(): string {
    return this._reason;
  }

  /** Say why it cannot be pressed; empty: it can. */
  set reason(reason: string) {
    this._reason = reason;
    setAttribute(this.node, 'aria-disabled', reason ? 'true' : null);
    setAttribute(this.node, 'title', reason || this.title);
  }

  private _reason = '';
}

const SVG = 'http://www.w3.org/2000/svg';

/** Draw the course of a metric. */
export function sparkline(values: (number | null)[], width = 72, height = 16): SVGElement | null {
  const finite = values.filter((value): value is number => value !== null && Number.isFinite(value));
  if (finite.length < 2) {
    return null;
  }
  // Halves, for the span of the largest floats is none itself.
  const low = Math.min(...finite) / 2;
  const span = Math.max(...finite) / 2 - low || 1;
  const points = finite.map((value, at) => {
    const x = 1 + (at / (finite.length - 1)) * (width - 2);
    const y = height - 2 - ((value / 2 - low) / span) * (height - 4);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  const svg = document.createElementNS(SVG, 'svg');
  const line = document.createElementNS(SVG, 'polyline');
  line.setAttribute('points', points.join(' '));
  svg.setAttribute('class', 'jp-Pai-spark');
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  svg.setAttribute('width', String(width));
  svg.setAttribute('height', String(height));
  svg.setAttribute('aria-hidden', 'true');
  svg.append(line);
  return svg;
}
